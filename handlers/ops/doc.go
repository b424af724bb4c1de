// Package ops is the admin listener, for operators, probes and scrapers.
//
//	GET /healthz   200 while the process is alive and its loops tick, else 503 with the reason
//	GET /readyz    200 while new work is welcome, else 503; reasons and a recovery's progress
//	GET /metrics   the registry of this engine in Prometheus text
//	GET /version   the build as JSON
//	GET /store     what is durable, how far it is written, and how much room there is, as JSON
//	GET /overview  what a look at the whole server shows, as JSON
//	GET /monitor   the frames of one connection (conn=ID) as they pass, as lines of JSON
//	GET /reload    the outcome of the last order to read the settings again, as JSON
//	GET /exacta/…  the page that shows projects, of another room
//	GET /console/…  the web console, of another room; browsers are led there from /
//	GET /debug/pprof/…  profiles, only with admin.pprof
//
// It answers GET and HEAD only, and changes nothing, but for the web console, which takes POST. Who
// may read is one rule for all routes: with tokens (admin.console_token_file) everything but probes
// needs one. Without tokens it binds to loopback, unless the operator insists
// (admin.insecure_bind). On a loopback address the Host header must name
// this machine, but for probes and scrapers. At most maxConnections are open; further ones
// wait in the backlog.
package ops
