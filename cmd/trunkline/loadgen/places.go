package loadgen

// flight is a request on its way: a place of a connection.
type flight struct {
	start      int64  // when it was due, in nanoseconds of the run
	seq        int64  // its number in the run
	stamp      uint64 // of its id, so that a late reply to the place's earlier request is known
	prev, next int16  // in the order sent; none at the ends
	share      uint8
	state      flightState
}

type flightState uint8

const (
	empty flightState = iota
	flying
	overdue // given up, but its reply is still to come: only where replies are matched by their order
)

const none = -1

// places are the requests in flight on one connection: at most as many as it is deep. Those in use
// are linked in the order sent, so that the oldest is at hand. With inOrder the place of a request
// that timed out is kept until its reply comes, for the replies behind it are found by counting.
type places struct {
	all        []flight
	unused     []int16
	head, tail int16
	live       int // requests flying
	inOrder    bool
}

func newPlaces(depth int, inOrder bool) places {
	p := places{all: make([]flight, depth), inOrder: inOrder}
	p.clear()
	return p
}

// clear makes all places free.
func (p *places) clear() {
	p.head, p.tail, p.live = none, none, 0
	p.unused = p.unused[:0]
	for i := len(p.all) - 1; i >= 0; i-- {
		p.all[i].state = empty
		p.unused = append(p.unused, int16(i))
	}
}

func (p *places) full() bool { return len(p.unused) == 0 }

// take fills a free place, of which there must be one.
func (p *places) take(start int64, stamp uint64, share uint8) (at int16) {
	last := len(p.unused) - 1
	at = p.unused[last]
	p.unused = p.unused[:last]
	p.all[at] = flight{start: start, stamp: stamp, share: share, state: flying, prev: p.tail, next: none}
	if p.tail == none {
		p.head = at
	} else {
		p.all[p.tail].next = at
	}
	p.tail = at
	p.live++
	return at
}

// find returns the place that a reply belongs to; none if it has been given up.
func (p *places) find(place int, stamp uint64) int16 {
	if place >= len(p.all) || p.all[place].state != flying || p.all[place].stamp != stamp {
		return none
	}
	return int16(place)
}

// free ends a request and makes its place free.
func (p *places) free(at int16) {
	f := &p.all[at]
	if f.state == flying {
		p.live--
	}
	f.state = empty
	if f.prev == none {
		p.head = f.next
	} else {
		p.all[f.prev].next = f.next
	}
	if f.next == none {
		p.tail = f.prev
	} else {
		p.all[f.next].prev = f.prev
	}
	p.unused = append(p.unused, at)
}

// giveUp ends a request whose reply may still come.
func (p *places) giveUp(at int16) {
	if !p.inOrder {
		p.free(at)
		return
	}
	p.all[at].state = overdue
	p.live--
}

// oldest returns the request that flies longest; none if none flies.
func (p *places) oldest() int16 {
	at := p.head
	for at != none && p.all[at].state != flying {
		at = p.all[at].next
	}
	return at
}
