package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
)

// The timers of elections are variables of the library that it has no options for. All are
// multiples of the shortest time after which a follower that hears no leader asks for votes.

//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

//go:linkname minCampaignTimeout github.com/nats-io/nats-server/v2/server.minCampaignTimeout
var minCampaignTimeout time.Duration

//go:linkname maxCampaignTimeout github.com/nats-io/nats-server/v2/server.maxCampaignTimeout
var maxCampaignTimeout time.Duration

//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
var hbInterval time.Duration

//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
var lostQuorumInterval time.Duration

//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
var lostQuorumCheck time.Duration

// hasTimers reports whether the library has all of these variables. One that it does not have is a
// variable of this package alone, and 0 when the process starts.
var hasTimers = !slices.Contains([]time.Duration{
	minElectionTimeout, maxElectionTimeout, minCampaignTimeout, maxCampaignTimeout,
	hbInterval, lostQuorumInterval, lostQuorumCheck,
}, 0)

// libraryTimeout is minElectionTimeout as the library has it.
const libraryTimeout = 4 * time.Second

// longestElection returns the longest time after which a follower that hears no leader asks for
// votes, from the shortest.
func longestElection(shortest time.Duration) time.Duration {
	return cmp.Or(shortest, libraryTimeout) * 9 / 4
}

// timers counts the servers of this process that run with the timers in force: those of the whole
// process, which no lock of the library guards. They change while none runs.
var timers struct {
	sync.Mutex
	running int
}

// holdTimers sets the timers for one more server, until releaseTimers. base is the shortest time to
// an election, 0 the library's. Without hasTimers it changes none.
func holdTimers(base time.Duration) error {
	base = cmp.Or(base, libraryTimeout)
	timers.Lock()
	defer timers.Unlock()
	if hasTimers && base != minElectionTimeout {
		if timers.running > 0 {
			return fmt.Errorf("cannot elect after %v: a server of this process does after %v", base, minElectionTimeout)
		}
		minElectionTimeout, maxElectionTimeout = base, longestElection(base)
		minCampaignTimeout, maxCampaignTimeout = base/40, base/5
		hbInterval = base / 4
		lostQuorumInterval, lostQuorumCheck = base*10/4, base*10/4
	}
	timers.running++
	return nil
}

func releaseTimers() {
	timers.Lock()
	timers.running--
	timers.Unlock()
}

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
