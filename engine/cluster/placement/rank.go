package placement

import "math/bits"

// choice is a node that pick found for a copy.
type choice struct {
	node    int32
	newZone bool // no other copy is in its zone
	within  bool // it has less than the bound that was asked for
}

// salt is the part of a partition in the ranks of its nodes, score the rank of a node for it: the
// highest is the first (rendezvous hashing). The constants are arbitrary, and odd.
func salt(p int) uint64 { return fold(uint64(p)^0x9e3779b97f4a7c15, 0xe7037ed1a0b428db) }

func (b *board) score(salt uint64, node int32) uint64 {
	return fold(b.hash[node]^salt, 0xa0761d6478bd642f)
}

// fold multiplies, and takes both halves of the product.
func fold(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	return high ^ low
}

// pick finds the node for one more copy of a partition that keeps its copies but for seat without,
// among some able nodes. It prefers a new zone, then a node with fewer copies than its bound, then
// the highest rank. Among nodes beyond their bounds it prefers the least so.
func (b *board) pick(p, without int, among []int32, bound []int) (best choice, ok bool) {
	r, salt := &b.parts[p], salt(p)
	var top uint64
	for _, i := range among {
		s := b.score(salt, i)
		if ok && best.newZone && best.within && s <= top || r.find(i) >= 0 {
			continue
		}
		c := choice{i, b.isNewZone(r.all(), i, without), b.copies.has[i] < bound[i]}
		if ok {
			switch over := b.copies.has[i] - bound[i] - b.copies.has[best.node] + bound[best.node]; {
			case c.newZone != best.newZone:
				if best.newZone {
					continue
				}
			case c.within != best.within:
				if best.within {
					continue
				}
			case !c.within && over != 0:
				if over > 0 {
					continue
				}
			case s <= top:
				continue
			}
		}
		best, top, ok = c, s, true
	}
	return best, ok
}

// pickOwner finds the node that rebuilds a partition of which no able node has a copy.
func (b *board) pickOwner(p int) (best int32) {
	var top uint64
	best = -1
	salt, within := salt(p), false
	for _, i := range b.ables {
		w, s := b.owners.has[i] < b.owners.high[i], b.score(salt, i)
		if best < 0 || w && !within || w == within && s > top {
			best, top, within = i, s, w
		}
	}
	return best
}

// isNewZone reports whether no copy but that of seat without is in the zone of the node.
func (b *board) isNewZone(copies []seat, node int32, without int) bool {
	for k, s := range copies {
		if k != without && b.keeps(s) && b.zone[s.node] == b.zone[node] {
			return false
		}
	}
	return true
}

// keeps reports whether a copy is one of those that the partition is to have.
func (b *board) keeps(s seat) bool { return b.able[s.node] && s.phase != leaving }
