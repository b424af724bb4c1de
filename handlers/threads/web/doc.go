// Package web serves agent threads over HTTP (threads §2.1): the nine methods as JSON in the
// dialects of both paths, health, readiness and metrics (§4.10), and the read-only extensions
// (§4.11). Streamable MCP and the metadata of the protected resource are mounted as handlers.
//
//	POST /v1/mcp/<method>   legacy dialect
//	POST /v1/<method>       spec dialect
//	GET  /v1/audit /v1/trigger_jobs
//	GET  /health /ready /metrics
//
// A request passes its gates in order, and the first that refuses answers: the token, for every
// path below /v1/ and before the body is read; the route and the HTTP method; the media type and
// the size. What follows, from the decoding of the document on, is decided by a method.Dispatcher.
//
// Where the contract is silent:
//
//   - Failed authentications are counted by peer address. A peer over the limit gets 429 in place
//     of 401, and its valid tokens are accepted all the same: behind a proxy, and on the loopback
//     address, many agents share one address, and one of them must not lock out the others.
//   - A refusal is sent at once. A body that nothing has read is read and dropped behind it, so
//     that the next request can follow. If it is over the limit, or the client waits for 100
//     Continue, the connection ends instead.
//   - GET routes answer HEAD too. An encoded body (Content-Encoding) is an unknown media type.
//   - Malformed HTTP, headers over the limit and headers that do not come in time get the plain
//     answers of net/http. A connection on which nothing came is closed without one.
//   - A server that stops answers what still comes with 503.
package web
