package bus

import "time"

// deadlines is a binary min-heap of the pending queries by deadline; Query.index is a query's place
// in it. All methods need queryTable.mu.
type deadlines []*Query

func (d *deadlines) push(q *Query) {
	q.index = len(*d)
	*d = append(*d, q)
	d.up(q.index)
}

// remove takes the query at place i out.
func (d *deadlines) remove(i int) {
	last := len(*d) - 1
	d.swap(i, last)
	(*d)[last] = nil
	*d = (*d)[:last]
	if i < last {
		d.down(i)
		d.up(i)
	}
}

func (d *deadlines) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !d.before(i, parent) {
			return
		}
		d.swap(i, parent)
		i = parent
	}
}

func (d *deadlines) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(*d) {
			return
		}
		if child+1 < len(*d) && d.before(child+1, child) {
			child++
		}
		if !d.before(child, i) {
			return
		}
		d.swap(i, child)
		i = child
	}
}

func (d *deadlines) before(i, j int) bool { return (*d)[i].deadline.Before((*d)[j].deadline) }

func (d *deadlines) swap(i, j int) {
	h := *d
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// arm makes the one timer fire no later than the earliest deadline. An earlier timer stays: it
// finds nothing due and arms itself again, which costs less than moving it with every answered
// query. The caller holds mu.
func (t *queryTable) arm(b *Bus) {
	if len(t.deadlines) == 0 {
		return
	}
	earliest := t.deadlines[0].deadline
	if !t.armed.IsZero() && !earliest.Before(t.armed) {
		return
	}
	t.armed = earliest
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(earliest), b.expire)
		return
	}
	t.timer.Reset(time.Until(earliest))
}

// expire ends the queries whose deadline has come. It runs on the timer's goroutine.
func (b *Bus) expire() {
	for _, q := range b.queries.due(b, time.Now()) {
		q.done(Answer{Status: TimedOut})
	}
}

// due removes and returns the queries whose deadline is not after now, and arms the timer again.
func (t *queryTable) due(b *Bus, now time.Time) []*Query {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = time.Time{}
	var late []*Query
	for len(t.deadlines) > 0 && !t.deadlines[0].deadline.After(now) {
		q := t.deadlines[0]
		t.remove(q)
		late = append(late, q)
	}
	t.arm(b)
	return late
}
