// Package ipc serves the kernel protocol (kernel-ipc): length-prefixed MessagePack frames.
//
// A Service is the state of one endpoint; Open makes the session of one connection. methods.txt is
// the method table. Each group of methods has a file: process.go, quota.go, rate.go, list.go,
// status.go (service kernel), publish.go, query.go, streams.go (commbus). session.go moves bytes,
// turn.go takes a request to its handler, args.go has the typing rules of request bodies.
//
// A handler runs on the goroutine that read the request and never waits. What must wait comes back
// through the session's mailbox: an answered query, a long listing.
package ipc
