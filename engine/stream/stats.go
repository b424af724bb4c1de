package stream

import (
	"sync/atomic"

	"trunkline/engine/link"
)

// Departure is why a connection left its event loop for a pair of goroutines.
type Departure uint8

// The departures, in the order of Snapshot.Left.
const (
	LeftWrite   Departure = iota // the socket did not take a write whole
	LeftEOF                      // the peer half-closed with answers outstanding
	LeftBlocked                  // bytes piled up behind a blocked session
	LeftBehind                   // bytes piled up behind the session's share of turns
	departures
)

// String returns the departure's name as used in logs and metric labels.
func (d Departure) String() string { return [...]string{"write", "eof", "blocked", "behind"}[d] }

// Stats counts what happens to connections. Any goroutine may call its methods; none allocates.
type Stats struct {
	Accepted, Refused atomic.Int64
	BytesIn, BytesOut atomic.Int64
	left              [departures]atomic.Int64
	closed            [link.Reasons]atomic.Int64
}

// countLeft counts a connection that left its loop.
func (s *Stats) countLeft(d Departure) { s.left[d].Add(1) }

// CountClosed counts a closed connection.
func (s *Stats) CountClosed(r link.Reason) { s.closed[r].Add(1) }

// Snapshot is one reading of Stats and the gate, of one counter after the other.
type Snapshot struct {
	Accepted, Refused, Open int64
	// BytesIn and BytesOut lag by up to half a second for connections on an event loop.
	BytesIn, BytesOut int64
	Left              [departures]int64
	Closed            [link.Reasons]int64
}

// Snapshot reads the counters; open is the caller's count of open connections.
func (s *Stats) Snapshot(open int) Snapshot {
	r := Snapshot{
		Accepted: s.Accepted.Load(), Refused: s.Refused.Load(), Open: int64(open),
		BytesIn: s.BytesIn.Load(), BytesOut: s.BytesOut.Load(),
	}
	for i := range s.left {
		r.Left[i] = s.left[i].Load()
	}
	for i := range s.closed {
		r.Closed[i] = s.closed[i].Load()
	}
	return r
}
