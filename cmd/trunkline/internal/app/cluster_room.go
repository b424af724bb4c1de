package app

import (
	"context"
	"time"
)

// roomEvery is how often a node looks whether its disk has room for changes. Two looks have to find
// none: a write may be held up for a moment.
const roomEvery = 2 * time.Second

// watchRoom has other nodes own what this one owns while its disk has no room for changes. Where
// none of them can, this one stays the owner, and answers what it is asked to read.
func (s *server) watchRoom() {
	c, why := s.options.cluster, ""
	for was := false; pause(c.closed, roomEvery); {
		now := s.full()
		c.full.Store(now && was)
		if was = now; !c.full.Load() {
			why = ""
			continue
		}
		if s.standing().Owned == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(c.closed, carryOutWithin)
		err := s.giveWay(ctx)
		cancel()
		if err != nil && err.Error() != why { // once, as it goes on for long
			why = err.Error()
			s.log.Warn("the disk of this node has no room for changes, and it owns what no other node takes over", "error", err)
		}
	}
}

// giveWay hands over what this node owns.
func (s *server) giveWay(ctx context.Context) error {
	next, err := s.nextOwners(ctx)
	if err != nil {
		return err
	}
	if err = s.handOverAll(ctx, next); err == nil {
		s.log.Warn("the disk of this node has no room for changes: other nodes own what it owned", "next", next)
	}
	return err
}
