package control

import (
	"context"
	"time"

	"trunkline/engine/link"
)

// spaceEvery is how often a node checks whether its disk has space for changes. Two checks have to
// find none: a write may be held up for a moment.
const spaceEvery = 2 * time.Second

// watchSpace has other nodes own what this one owns while its disk has no space for changes. Where
// none of them can, this one stays the owner, and answers what it is asked to read.
func (n *Node) watchSpace() {
	why := ""
	for was := false; link.Pause(n.closed, spaceEvery); {
		now := n.host.Full()
		n.full.Store(now && was)
		if was = now; !n.full.Load() {
			why = ""
			continue
		}
		if n.Standing().Owned == 0 {
			continue
		}
		ctx, cancel := context.WithTimeout(n.closed, carryOutWithin)
		err := n.giveWay(ctx)
		cancel()
		if err != nil && err.Error() != why { // once, as it goes on for long
			why = err.Error()
			n.log.Warn("the disk of this node has no room for changes, and it owns what no other node takes over", "error", err)
		}
	}
}

// giveWay hands over what this node owns.
func (n *Node) giveWay(ctx context.Context) error {
	next, err := n.nextOwners(ctx)
	if err != nil {
		return err
	}
	if err = n.handOverAll(ctx, next); err == nil {
		n.log.Warn("the disk of this node has no room for changes: other nodes own what it owned", "next", next)
	}
	return err
}
