// Package ipc serves the kernel protocol: length-prefixed MessagePack frames carrying requests to the services kernel and
// commbus (kernel-ipc).
//
// A Service is one endpoint's worth of state; Open makes the session of one connection. The way of a request:
//
//	Feed ─► frame.Split ─► mpack.ParseRequest ─► methods[service][method] ─► mpack.ParseFields ─► handler ─► kernel / bus
//	                                                                                           └─► reply appended to out
//
// methods.go holds the method table, the single source for routing, counting and listing. Each group of methods has a file of
// its own: process.go, quota.go, rate.go, list.go, status.go (service kernel), publish.go, query.go, streams.go (service
// commbus). session.go moves bytes, turn.go holds the scratch state of one Feed, args.go the typing rules of request bodies.
//
// A handler runs on the goroutine that read the request and never waits. What must wait comes back through the session's
// mailbox: an answered query, a long listing.
package ipc
