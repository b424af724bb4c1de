package client

import "strconv"

// Limits of an order. More projects than a server opens by default are not looked after, and
// correlations beyond the last ones are forgotten.
const (
	maxProjects     = 32
	maxCorrelations = 256
)

// order finds missing events (exacta §3.4).
type order struct {
	next map[string]uint64 // of a project whose events all come: the next stream_seq
	last map[string]uint64 // of a correlation: the last seq
	ring [maxCorrelations]string
	at   int
}

// follow notes that all events of a project come from a stream_seq on. They may be ones that came
// before.
func (o *order) follow(project string, next uint64) {
	if o.next == nil {
		o.next = make(map[string]uint64)
	}
	if _, known := o.next[project]; known || len(o.next) < maxProjects {
		o.next[project] = next
	}
	clear(o.last)
	o.ring, o.at = [maxCorrelations]string{}, 0
}

// forget notes that a project was closed.
func (o *order) forget(project string) { delete(o.next, project) }

// check takes an event: IPC-007 if one is missing before it, or if it comes again. The events of a
// project that is not followed may have gaps.
func (o *order) check(m *Message) *Error {
	next, followed := o.next[m.Project]
	if followed && m.StreamSeq != 0 {
		if m.StreamSeq != next {
			return gap("stream_seq", m.StreamSeq, next)
		}
		o.next[m.Project]++
	}
	if m.Seq == 0 || m.Correlation == "" {
		return nil
	}
	last, known := o.last[m.Correlation]
	if known && (m.Seq <= last || followed && m.Seq != last+1) {
		return gap("seq", m.Seq, last+1)
	}
	if !known {
		o.remember(m.Correlation)
	}
	o.last[m.Correlation] = m.Seq
	return nil
}

// remember makes room for a correlation in the place of the oldest one.
func (o *order) remember(correlation string) {
	if o.last == nil {
		o.last = make(map[string]uint64)
	}
	delete(o.last, o.ring[o.at])
	o.ring[o.at] = correlation
	o.at = (o.at + 1) % maxCorrelations
}

func gap(what string, got, want uint64) *Error {
	return local("IPC-007", what+" "+strconv.FormatUint(got, 10)+" in the place of "+strconv.FormatUint(want, 10))
}
