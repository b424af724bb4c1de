package obs

import (
	"sync"
	"sync/atomic"
	"time"
)

// slowLog keeps the newest requests that took at least threshold. Requests of one method that came
// and were answered together are one entry, whose id is that of the last of them.
type slowLog struct {
	threshold atomic.Int64 // ns; 0: off
	most      int

	mu    sync.Mutex
	total uint64
	ring  []Slow // the oldest is at next once it is full
	next  int
}

// add notes n requests that took ns nanoseconds each.
func (l *slowLog) add(protocol, method string, ns, n int64, from Peer) {
	e := Slow{
		At: time.Now(), Protocol: protocol, Method: method, Conn: from.Name(), Peer: from.Remote(),
		Seconds: float64(ns) / 1e9,
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total += uint64(n)
	e.ID = l.total
	if len(l.ring) < l.most {
		l.ring = append(l.ring, e)
		return
	}
	l.ring[l.next] = e
	l.next = (l.next + 1) % l.most
}

// count returns how many requests were slow.
func (l *slowLog) count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// read returns a copy, newest first.
func (l *slowLog) read() SlowLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := SlowLog{ThresholdSeconds: float64(l.threshold.Load()) / 1e9, Total: l.total, Entries: make([]Slow, 0, len(l.ring))}
	for i := range l.ring {
		s.Entries = append(s.Entries, l.ring[(l.next+len(l.ring)-1-i)%len(l.ring)])
	}
	return s
}
