package placement

// load is how many of something each node has, and the bounds of that.
type load struct {
	has                    []int
	low, floor, ceil, high []int
}

// divide divides each partition's pieces among the able nodes by weight. What a zone cannot have,
// because the pieces of a partition are to be in different zones, goes to the others.
func (b *board) divide(partitions, pieces int) load {
	n := len(b.nodes)
	l := load{has: make([]int, n), low: make([]int, n), floor: make([]int, n), ceil: make([]int, n), high: make([]int, n)}
	zones := b.zoneShares(partitions, pieces)
	for _, i := range b.ables {
		z := zones[b.zone[i]]
		x := z.pieces * b.nodes[i].Weight // over z.weight
		l.floor[i] = min(x/z.weight, partitions)
		l.ceil[i] = min(ceilDiv(x, z.weight), partitions)
		l.low[i] = min(l.floor[i], ceilDiv(x*(100-b.opts.Slack), 100*z.weight))
		l.high[i] = max(l.ceil[i], min(x*(100+b.opts.Slack)/(100*z.weight), partitions))
	}
	return l
}

// zoneShare is what a zone has of all pieces: pieces are divided among a weight, that of the zone
// if it has all that it can have, else that of all zones that have less.
type zoneShare struct {
	pieces, weight int
	nodes, own     int // own is the weight of its nodes
	full           bool
}

func (b *board) zoneShares(partitions, pieces int) map[int32]*zoneShare {
	zones := make(map[int32]*zoneShare)
	weight := 0
	for _, i := range b.ables {
		z := zones[b.zone[i]]
		if z == nil {
			z = new(zoneShare)
			zones[b.zone[i]] = z
		}
		z.nodes++
		z.own += b.nodes[i].Weight
		weight += b.nodes[i].Weight
	}
	most := ceilDiv(pieces, max(1, len(zones))) // pieces of one partition in one zone
	for rest, again := partitions*pieces, true; again; {
		again = false
		before, over := rest, weight
		for _, z := range zones {
			if limit := partitions * min(z.nodes, most); !z.full && before*z.own > limit*over {
				z.full, again = true, true
				z.pieces, z.weight = limit, z.own
				rest -= limit
				weight -= z.own
			}
		}
		for _, z := range zones {
			if !z.full {
				z.pieces, z.weight = rest, weight
			}
		}
	}
	return zones
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
