// Package ipc serves the kernel protocol (kernel-ipc): length-prefixed MessagePack frames.
//
// A Service is the state of one endpoint; Open makes the session of one connection. methods.txt is
// the method table. Each group of methods has a file: process.go, quota.go, rate.go, list.go,
// status.go, ping.go (service kernel), publish.go, query.go, streams.go (commbus), engine.go,
// orchestration.go. session.go moves bytes, turn.go takes a request to its handler, args.go has the
// typing rules of request bodies. deferral.go keeps replies back until the journal is durable up to
// what they show; journal.go joins the store.
//
// A handler runs on the goroutine that read the request and never waits. What must wait comes back
// through the session's mailbox: an answered query, a long listing.
package ipc
