package node

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/nats-io/nats-server/v2/server"
)

// The library answers for what a stream has as a whole. These show what its server in this process
// keeps, which no option of the library does.

//go:linkname lookupStream github.com/nats-io/nats-server/v2/server.(*Account).lookupStream
func lookupStream(a *server.Account, name string) (unsafe.Pointer, error)

//go:linkname streamState github.com/nats-io/nats-server/v2/server.(*stream).state
func streamState(stream unsafe.Pointer) server.StreamState

//go:linkname streamMessage github.com/nats-io/nats-server/v2/server.(*stream).getMsg
func streamMessage(stream unsafe.Pointer, seq uint64) (*server.StoredMsg, error)

// errNoReplica means that this process keeps nothing of a stream, or not now.
var errNoReplica = errors.New("this process has no copy of the stream")

// local returns what the server of this process has of a stream.
func (n *Node) local(stream string) (unsafe.Pointer, error) {
	e, ok := n.server.(*embedded)
	if !ok || !e.server.Running() || !e.server.JetStreamEnabled() {
		return nil, errNoReplica
	}
	s, err := lookupStream(e.server.GlobalAccount(), stream)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoReplica, err)
	}
	return s, nil
}

// Leads reports whether the server of this process leads a stream.
func (n *Node) Leads(stream string) bool {
	e, ok := n.server.(*embedded)
	return ok && e.server.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream)
}

// Held returns the first and the last sequence of what this process keeps of a stream, and how many
// messages between them it does not have. errNoReplica is in the error where it keeps nothing.
func (n *Node) Held(stream string) (first, last uint64, deleted int, err error) {
	s, err := n.local(stream)
	if err != nil {
		return 0, 0, 0, err
	}
	st := streamState(s)
	return st.FirstSeq, st.LastSeq, st.NumDeleted, nil
}

// Load returns one message of what this process keeps of a stream, read and checked there. The
// caller keeps it. An error without errNoReplica means that it is missing or not what was written.
func (n *Node) Load(stream string, seq uint64) (subject string, header, data []byte, err error) {
	s, err := n.local(stream)
	if err != nil {
		return "", nil, nil, err
	}
	m, err := streamMessage(s, seq)
	switch {
	case errors.Is(err, server.ErrStoreClosed):
		return "", nil, nil, fmt.Errorf("%w: %w", errNoReplica, err)
	case err != nil:
		return "", nil, nil, err
	}
	return m.Subject, m.Header, m.Data, nil
}
