package obs

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// InvalidMethod is the method of what reached none: an invalid frame, line or path.
const InvalidMethod = "invalid"

// StepProtocol is the protocol of the steps of the server itself.
const StepProtocol = "server"

// Peer is the connection that a request came by. A *connection.Port is one.
type Peer interface {
	// Name names the connection among all of the server, such as "ipc-12".
	Name() string
	// Remote is the address of its peer.
	Remote() string
}

// Recorder holds the latencies of all protocols of one server, and its slow log. Any goroutine may
// call its methods. A nil Recorder makes meters that no one reads.
type Recorder struct {
	slow   slowLog
	mu     sync.Mutex
	meters []*Meter
}

// NewRecorder returns a recorder whose slow log keeps the newest entries requests that took
// threshold or longer. A threshold of 0 switches it off.
func NewRecorder(threshold time.Duration, entries int) *Recorder {
	r := &Recorder{slow: slowLog{most: entries}}
	r.SetSlowThreshold(threshold)
	return r
}

// SetSlowThreshold changes the threshold of the slow log for the requests that are answered from
// now on.
func (r *Recorder) SetSlowThreshold(threshold time.Duration) {
	r.slow.threshold.Store(int64(threshold))
}

// Meter returns the meter of the methods of a protocol, whose rows have the index of their name:
// one for all who ask for the same.
func (r *Recorder) Meter(protocol string, methods []string) *Meter {
	m := &Meter{protocol: protocol, methods: methods, rows: make([]meterRow, len(methods))}
	if r == nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.meters {
		if known.protocol == protocol && slices.Equal(known.methods, methods) {
			return known
		}
	}
	m.slow = &r.slow
	r.meters = append(r.meters, m)
	return m
}

// each calls f for every method that was called, by protocol in the order of their meters.
func (r *Recorder) each(f func(m *Meter, row int, rd *reading)) {
	r.mu.Lock()
	meters := slices.Clone(r.meters)
	r.mu.Unlock()
	for _, m := range meters {
		for i := range m.rows {
			if rd := m.rows[i].timing.read(); rd.count > 0 {
				f(m, i, rd)
			}
		}
	}
}

// Latencies returns the rows of all methods that were called, and of the steps, by protocol and
// method.
func (r *Recorder) Latencies() []Latency {
	rows := []Latency{}
	r.each(func(m *Meter, row int, rd *reading) {
		rows = append(rows, rd.latency(m.protocol, m.methods[row], m.rows[row].failed.Load()))
	})
	slices.SortStableFunc(rows, func(a, b Latency) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Method, b.Method))
	})
	return rows
}

// Slow returns the slow log, newest first.
func (r *Recorder) Slow() SlowLog { return r.slow.read() }

// Register adds the metrics of all meters, those that are made later included.
func (r *Recorder) Register(reg *Registry) error {
	put := func(steps bool, put PutTiming) {
		r.each(func(m *Meter, row int, _ *reading) {
			switch {
			case steps != (m.protocol == StepProtocol):
			case steps:
				put(&m.rows[row].timing, m.methods[row])
			default:
				put(&m.rows[row].timing, m.protocol, m.methods[row])
			}
		})
	}
	err := reg.AddTimings("trunkline_request_duration_seconds",
		"Time from the read of a request to its answer, a wait for the disk included, by protocol and method.",
		[]string{"protocol", "method"}, func(p PutTiming) { put(false, p) })
	if err != nil {
		return err
	}
	err = reg.AddTimings("trunkline_step_duration_seconds",
		"Time that steps of the server took, waits included, by step.",
		[]string{"step"}, func(p PutTiming) { put(true, p) })
	if err != nil {
		return err
	}
	return reg.AddGroup([]Family{
		{Name: "trunkline_request_errors_total", Help: "Requests answered with an error, by protocol and method.", Labels: []string{"protocol", "method"}},
		{Name: "trunkline_slow_requests_total", Help: "Requests that took as long as the threshold of the slow log or longer."},
	}, func(put Put) {
		r.each(func(m *Meter, row int, _ *reading) {
			if m.protocol != StepProtocol {
				put(0, float64(m.rows[row].failed.Load()), m.protocol, m.methods[row])
			}
		})
		put(1, float64(r.slow.count()))
	})
}

// Meter counts the requests of one protocol by method, and how long they took. Its memory is fixed.
// Any goroutine may call its methods, which do not allocate unless a request was slow.
type Meter struct {
	protocol string
	methods  []string
	rows     []meterRow
	slow     *slowLog // nil: none
}

type meterRow struct {
	timing Timing
	failed atomic.Uint64
}

// Record counts n requests of the method with that row, failed of them answered with an error, that
// took ns nanoseconds each; from, which may be nil, is where they came from.
func (m *Meter) Record(row int, ns, n, failed int64, from Peer) {
	r := &m.rows[row]
	r.timing.Record(ns, n)
	if failed > 0 {
		r.failed.Add(uint64(failed))
	}
	if m.slow == nil || from == nil {
		return
	}
	if least := m.slow.threshold.Load(); least > 0 && ns >= least {
		m.slow.add(m.protocol, m.methods[row], ns, n, from)
	}
}

// Timing returns the timing of a method.
func (m *Meter) Timing(row int) *Timing { return &m.rows[row].timing }

// maxPending bounds the entries of a Pending, one of each method aside; keptPending is the room for
// entries that it keeps.
const (
	maxPending  = 256
	keptPending = 32
)

// Pending are requests of one session that have their answers but not given them yet: those of the
// turn, and those whose replies wait for the journal. The zero Pending has none. It belongs to the
// goroutine that serves the session, and allocates only to grow.
type Pending struct{ rows []pendingRow }

type pendingRow struct {
	begun, n, failed int64
	row              int
}

// Add notes n requests of a method that came when begun was the time, in nanoseconds of any clock
// that Record is given too. Beyond maxPending entries they count as come when those before them
// did, never as later.
func (p *Pending) Add(row int, begun, n, failed int64) {
	for i := len(p.rows) - 1; i >= 0 && (p.rows[i].begun == begun || len(p.rows) >= maxPending); i-- {
		if r := &p.rows[i]; r.row == row {
			r.n += n
			r.failed += failed
			return
		}
	}
	p.rows = append(p.rows, pendingRow{begun, n, failed, row})
}

// Record counts them as answered now, and forgets them. It does not allocate.
func (p *Pending) Record(m *Meter, now int64, from Peer) {
	for i := range p.rows {
		r := &p.rows[i]
		m.Record(r.row, now-r.begun, r.n, r.failed, from)
	}
	if p.rows = p.rows[:0]; cap(p.rows) > keptPending {
		p.rows = nil
	}
}

// Empty reports whether there are none.
func (p *Pending) Empty() bool { return len(p.rows) == 0 }

// Len returns how many requests there are.
func (p *Pending) Len() (n int64) {
	for i := range p.rows {
		n += p.rows[i].n
	}
	return n
}

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
