package node

import "github.com/nats-io/nats-server/v2/server"

// pinned is the version of the library whose unexported variables this package uses. Another
// version needs a look at timers.go, listener.go and status.go first.
const pinned = "2.15.2"

// A build with another version fails here: a constant key is twice in a map.
var _ = map[bool]struct{}{false: {}, server.VERSION == pinned: {}}

// floor is the oldest version of servers of an operator: before it, a write that is synced took a
// sync for each message.
const floor = "2.15.0"
