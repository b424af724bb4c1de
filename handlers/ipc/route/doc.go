// Package route serves clients of kernel IPC on a node of a cluster with several partitions. It is
// a room of handlers/ipc because it shares the method table of that, and nothing else: what it
// sends and gets are the frames of the protocol.
//
//	Router    the listener's side: a session for each client, and its legs
//	session   a client's connection: splits frames, finds partitions, puts replies in order
//	leg       a connection of one session to the owner of one partition, opened when needed
//	call      what comes back out of order: a query, a stream, a part of an op
//	op        a request that several partitions answer
//
// # The way of a request
//
// A request whose row in the method table names a field goes unchanged to the partition of that
// field's hash (placement.Keyspace); the reply comes back unchanged. A leg answers in the order of
// its requests, so a reply belongs to the oldest request of its leg without an answer. The window
// holds the requests of the session in their order: a reply that comes early is parked until those
// before it are there. What is no valid request goes to partition 0, whose service refuses it.
//
// Queries, streams and the parts of an op are answered at any time. Their requests have identifiers
// of the session's own, by which their frames are known:
//
//	nonce of the session, 8 hex digits · number of the call, 8 hex digits · fill
//
// They are at least as long as the client's, so that a frame to the client is no longer than the
// one from the leg. A request within 16 bytes of max_frame_bytes may be refused for that.
//
// While an op goes on, later requests of its connection are not read: they take effect after it.
//
// # Order
//
// Requests of a connection take effect in their order at each partition, and replies leave in the
// order of the requests. Two requests without an answer to different partitions have no order.
//
// # Bounds
//
// A session holds at most MaxInFlight requests without a reply, MaxCalls calls, and, each about
// unsentBytes and one frame: requests that legs do not take, replies in order, parked replies,
// chunks. At any of them it stops to read where the bytes come from.
//
// # A leg that breaks
//
// What an owner refuses as it ends, and what no leg has taken within Config.Hold, is refused with
// noOwner: it had no effect. The client is not read any more then, so that nothing behind it has
// one either, and its connection ends.
//
// A leg without work may end; another one is dialled for the next request. If it had requests
// without an answer, or streams, the client's connection ends behind the replies that came before,
// as that of a client whose server died. Nothing is used that comes from an owner whose context has
// ended.
package route
