package loadgen

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of every latency histogram, in nanoseconds, and its precision in decimal digits. Longer
// latencies count as HighestLatency.
const (
	LowestLatency  = 1
	HighestLatency = int64(time.Hour)
	latencyDigits  = 3
)

// The kinds of Sample.Errors that come from no server.
const (
	ErrorTimeout     = "timeout"           // no reply within Plan.Timeout of the intended start
	ErrorLost        = "connection lost"   // it ended with the request in flight
	ErrorUnconnected = "cannot connect"    // no connection to send it on within Plan.Timeout
	errorProtocol    = "malformed reply"   // the reply could not be read; its connection is closed
	otherErrors      = "other error codes" // codes beyond maxErrorKinds
)

// When a generator has missed its schedule.
const (
	lagTolerance = time.Millisecond
	lagShare     = 100
)

// NewHistogram returns an empty histogram of latencies.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(LowestLatency, HighestLatency, latencyDigits)
}

// Bytes counts what went over the connections, encryption aside.
type Bytes struct{ Sent, Received int64 }

// MethodSample is one method's part of a Sample.
type MethodSample struct {
	Name         string
	Done, Failed int64
	// Latency is nil in Result.Intervals.
	Latency *hdrhistogram.Histogram
}

// Sample is what one interval, or the whole run, gave. Latencies are of answered requests, errors
// replied included, in nanoseconds and from the intended start, so that there is no coordinated
// omission; timeouts count in it with the time they were given.
type Sample struct {
	// From and To are since the start of measuring; negative while warming up. Of two joined
	// intervals they span both.
	From, To time.Duration
	// Due counts the requests whose intended start lies in the sample, Sent those written, Done
	// those answered well, Failed those that ended in an error reply, a timeout or a lost
	// connection. A request counts where it happens: Done of one interval may have been Due in an
	// earlier one. For the whole run Due is Done + Failed, but for requests given up at its end.
	Due, Sent, Done, Failed int64
	// Resent counts how often requests were kept to be sent again (Plan.Resend).
	Resent int64
	// InFlight is the number of requests sent and not ended, at the end of the sample.
	InFlight int64
	// Lost counts connections that ended unannounced, Late the replies to requests that were given
	// up before.
	Lost, Late int64
	Bytes      Bytes
	// Latency belongs to the receiver.
	Latency *hdrhistogram.Histogram
	// Methods has every share of the mix, in its order.
	Methods []MethodSample
	// Errors counts Failed by code, at most maxErrorKinds and otherErrors.
	Errors map[string]int64
}

// Result is a whole run.
type Result struct {
	Plan Plan
	// Start is when measuring began.
	Start time.Time
	// Total covers what was measured, without warming up.
	Total Sample
	// Intervals are those of observe from the start of measuring, in order, each from where the one
	// before it ended; at most keptIntervals, so those of a long run are longer than Plan.Interval,
	// all alike but for the last two. A rest of less than half an interval is part of the last one.
	Intervals []Sample
	// MissedSchedule is set when the generator itself could not keep up: it sent more than one
	// request in lagShare later than lagTolerance, though their connections had places free.
	// LatestLag is by how much at most. The latencies hold that lag.
	MissedSchedule bool
	LatestLag      time.Duration
	// Stopped is set when the context ended the run before its time: what was due then and not
	// answered counts nowhere but in Due.
	Stopped bool
	// Watched is what the subscriptions have received.
	Watched *Watched
}

// shard takes what the connections that belong to it have to count. A connection takes its lock
// once per batch.
type shard struct {
	mu       sync.Mutex
	accounts [2]*account // of warming up and of what is measured
	inFlight int64
}

// Which account a request belongs to is decided by its intended start.
const (
	warming   = 0
	measuring = 1
)

// account is what one shard counts between two samples.
type account struct {
	Sample                    // without times and the latencies of all methods together; a histogram that is empty may be nil
	codes   map[string]string // those of Errors but for otherErrors, so that counting one more allocates nothing
	behind  int64             // requests the generator itself sent later than lagTolerance
	longest int64             // the longest of those lags, of any request, in nanoseconds
}

func newAccount(shares []Share) *account {
	a := &account{codes: make(map[string]string)}
	a.Errors = make(map[string]int64)
	a.Methods = newMethods(shares)
	return a
}

// observe counts a latency. It allocates for the first one of a method.
func (a *account) observe(share uint8, latency int64) {
	m := &a.Methods[share]
	if m.Latency == nil {
		m.Latency = NewHistogram()
	}
	_ = m.Latency.RecordValue(min(max(latency, LowestLatency), HighestLatency)) // the range is limited here
}

// fail counts a failure; it allocates for the first one of a code only.
func fail[T ~string | ~[]byte](a *account, share uint8, code T) {
	a.Failed++
	a.Methods[share].Failed++
	kind, known := a.codes[string(code)]
	if !known {
		kind = otherErrors
		if len(a.codes) < maxErrorKinds {
			kind = string(code)
			a.codes[kind] = kind
		}
	}
	a.Errors[kind]++
}

// clear makes an account empty, but keeps its memory.
func (a *account) clear() {
	for i := range a.Methods {
		m := &a.Methods[i]
		m.Done, m.Failed = 0, 0
		if m.Latency != nil {
			m.Latency.Reset()
		}
	}
	clear(a.Errors)
	clear(a.codes)
	*a = account{Sample: Sample{Methods: a.Methods, Errors: a.Errors}, codes: a.codes}
}

func newMethods(shares []Share) []MethodSample {
	methods := make([]MethodSample, len(shares))
	for i, share := range shares {
		methods[i].Name = share.Name
	}
	return methods
}

// NewSample returns an empty sample with these methods.
func NewSample(shares []Share) Sample {
	s := Sample{Latency: NewHistogram(), Methods: newMethods(shares), Errors: make(map[string]int64)}
	for i := range s.Methods {
		s.Methods[i].Latency = NewHistogram()
	}
	return s
}

// Add adds a later sample of the same methods to one that ends where the other begins. Methods and
// histograms that s does not have are left out.
func (s *Sample) Add(next *Sample) {
	s.To = next.To
	s.Due += next.Due
	s.Sent += next.Sent
	s.Done += next.Done
	s.Failed += next.Failed
	s.InFlight = next.InFlight
	s.Bytes.Sent += next.Bytes.Sent
	s.Bytes.Received += next.Bytes.Received
	s.Lost += next.Lost
	s.Late += next.Late
	s.Resent += next.Resent
	merge(s.Latency, next.Latency)
	for i := range min(len(s.Methods), len(next.Methods)) {
		mine, m := &s.Methods[i], &next.Methods[i]
		mine.Done += m.Done
		mine.Failed += m.Failed
		merge(mine.Latency, m.Latency)
	}
	for code, n := range next.Errors {
		kinds := len(s.Errors)
		if _, has := s.Errors[otherErrors]; has {
			kinds--
		}
		if _, known := s.Errors[code]; !known && kinds >= maxErrorKinds {
			code = otherErrors
		}
		s.Errors[code] += n
	}
}

// merge adds a histogram to another one, where there are both.
func merge(into, from *hdrhistogram.Histogram) {
	if into != nil && from != nil && from.TotalCount() > 0 {
		into.Merge(from)
	}
}

// collector makes samples of what the shards counted.
type collector struct {
	g      *generator
	spare  []*account // one per shard
	from   int64      // where the next sample begins, in nanoseconds of the run
	which  int        // account
	behind int64
	result *Result
	kept   keeper
}

// collect observes the run until done.
func (g *generator) collect(done <-chan struct{}, observe func(Sample)) *Result {
	c := &collector{g: g, result: &Result{Plan: g.plan, Start: g.begin.Add(g.plan.Warmup), Total: NewSample(g.plan.Mix)}}
	for range g.shards {
		c.spare = append(c.spare, newAccount(g.plan.Mix))
	}
	if g.warm == 0 {
		c.which = measuring
	}
	if observe == nil {
		observe = func(Sample) {}
	}
	timer := time.NewTimer(time.Duration(c.boundary() - g.now()))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			observe(c.turn(g.now()))
			timer.Reset(time.Duration(c.boundary() - g.now()))
		case <-done:
			if g.now() >= g.warm && c.which == warming {
				observe(c.turn(g.now()))
			}
			s := c.turn(g.now())
			if s.From < g.plan.Duration && s.To > s.From || s.Sent+s.Done+s.Failed > 0 { // else a moment in which the last ones ended
				observe(s)
			}
			c.result.Intervals = c.kept.all(g.plan.Interval / 2)
			c.result.MissedSchedule = c.behind*lagShare > c.result.Total.Sent
			c.result.Stopped = g.cut.Load()
			return c.result
		}
	}
}

// boundary is when the sample that has begun ends: at a multiple of the interval from the start of
// measuring, as the last one of warming up does.
func (c *collector) boundary() int64 {
	every := int64(c.g.plan.Interval)
	passed := (c.from - c.g.warm) % every
	if passed < 0 {
		passed += every
	}
	return c.from + every - passed
}

// turn takes the sample that ends now.
func (c *collector) turn(now int64) Sample {
	if c.which == warming && now >= c.g.warm {
		now = c.g.warm
	}
	if end := c.g.finished.Load(); end > 0 {
		now = min(now, end)
	}
	now = max(now, c.from)
	s := c.sample(now)
	if c.which == measuring && (s.To > s.From || s.Sent+s.Done+s.Failed > 0) {
		c.result.Total.Add(&s)
		c.kept.add(&s)
	}
	if now >= c.g.warm {
		c.which = measuring
	}
	c.from = now
	return s
}

func (c *collector) sample(now int64) Sample {
	g := c.g
	s := NewSample(g.plan.Mix)
	var flying int64
	for i, shard := range g.shards {
		shard.mu.Lock()
		a := shard.accounts[c.which]
		shard.accounts[c.which] = c.spare[i] // an empty one
		flying += shard.inFlight
		shard.mu.Unlock()
		s.Add(&a.Sample)
		if c.which == measuring {
			c.behind += a.behind
			c.result.LatestLag = max(c.result.LatestLag, time.Duration(a.longest))
		}
		a.clear()
		c.spare[i] = a
	}
	s.From, s.To, s.InFlight = time.Duration(c.from-g.warm), time.Duration(now-g.warm), flying
	for _, m := range s.Methods {
		s.Latency.Merge(m.Latency)
	}
	s.Due = s.Sent
	if g.table != nil {
		s.Due = g.table.before(now) - g.table.before(c.from)
	}
	return s
}

// keeper keeps at most keptIntervals samples of a run of any length.
type keeper struct {
	list  []Sample
	group int // samples that one of the list stands for
	n     int // samples in the last one
}

func (k *keeper) add(s *Sample) {
	if k.n < k.group {
		k.list[len(k.list)-1].Add(s)
		k.n++
		return
	}
	if len(k.list) == keptIntervals { // neighbours are joined
		for i := range len(k.list) / 2 {
			k.list[2*i].Add(&k.list[2*i+1])
			k.list[i] = k.list[2*i]
		}
		clear(k.list[len(k.list)/2:])
		k.list = k.list[:len(k.list)/2]
		k.group = 2 * max(k.group, 1)
	}
	one := *s // without the histograms of its methods
	one.Latency, one.Methods, one.Errors = s.Latency.Clone(), slices.Clone(s.Methods), maps.Clone(s.Errors)
	for i := range one.Methods {
		one.Methods[i].Latency = nil
	}
	k.list, k.n = append(k.list, one), 1
}

// all returns the list. A last sample below the shortest that may stand alone joins the one before:
// the rate of a moment is none.
func (k *keeper) all(shortest time.Duration) []Sample {
	if last := len(k.list) - 1; last > 0 && k.list[last].To-k.list[last].From < shortest {
		k.list[last-1].Add(&k.list[last])
		k.list = k.list[:last]
	}
	return k.list
}
