package cluster

import (
	"time"

	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// seat is where a node has one life over a partition after the other. The end of its process is
// that of all its lives; what ends one of them alone leaves the others.
type seat struct {
	n    *node
	part *partition
	disk *memstore.Disk
	dice *dice // for the time between two lives

	// mu of the node guards what follows.
	life  *life // nil between two
	lives int
	cut   memstream.Cut
}

// run starts one life after the other.
func (s *seat) run() {
	for s.n.w.open() {
		time.Sleep(s.dice.upTo(term / 2))
		if l := s.start(); l != nil {
			l.serve()
			l.bury()
		}
	}
}

// start makes the next life, nil while there is to be none.
func (s *seat) start() *life {
	n := s.n
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held || !n.w.open() {
		return nil
	}
	s.lives++
	l := newLife(s, s.lives)
	l.net.SetFaults(n.faults)
	l.net.Part(s.cut)
	s.life = l
	return l
}

// alive returns the life, nil for none.
func (s *seat) alive() *life {
	s.n.mu.Lock()
	defer s.n.mu.Unlock()
	return s.life
}

// kill ends the life at once.
func (s *seat) kill(power bool) {
	s.n.mu.Lock()
	l := s.life
	s.life = nil
	s.n.mu.Unlock()
	if l == nil {
		return
	}
	l.net.Kill()
	if power {
		s.disk.Crash()
	} else {
		s.disk.Kill()
	}
	l.end()
}
