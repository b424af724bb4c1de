package node

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
	_ "unsafe" // for go:linkname
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
