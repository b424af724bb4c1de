package loadgen

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

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
	methods        []tally
	errors         map[string]*int64
	others         int64 // errors beyond MaxErrorKinds
	sent           int64
	bytesOut       int64
	bytesIn        int64
	lost           int64
	late           int64 // replies after their request was given up
	behind         int64 // requests the generator itself sent later than lagTolerance
	longest        int64 // the longest of those lags, of any request, in nanoseconds
	done, failures int64
}

type tally struct {
	done, failed int64
	latency      *hdrhistogram.Histogram // nil until something is in it
}

func newAccount(shares int) *account {
	return &account{methods: make([]tally, shares), errors: make(map[string]*int64)}
}

// observe counts a latency. It allocates for the first one of a method.
func (a *account) observe(share uint8, latency int64) {
	t := &a.methods[share]
	if t.latency == nil {
		t.latency = NewHistogram()
	}
	// The range is limited here, so there is no error.
	_ = t.latency.RecordValue(min(max(latency, LowestLatency), HighestLatency))
}

// succeed counts an answer.
func (a *account) succeed(share uint8, latency int64) {
	a.done++
	a.methods[share].done++
	a.observe(share, latency)
}

// fail counts a failure; it allocates for the first one of a code only.
func fail[T ~string | ~[]byte](a *account, share uint8, code T) {
	a.failures++
	a.methods[share].failed++
	if n := a.errors[string(code)]; n != nil {
		*n++
		return
	}
	if len(a.errors) >= MaxErrorKinds {
		a.others++
		return
	}
	n := int64(1)
	a.errors[string(code)] = &n
}

// mergeInto adds the account to a sample, but for the latencies of all methods together.
func (a *account) mergeInto(s *Sample, shares []Share) {
	s.Sent += a.sent
	s.Done += a.done
	s.Failed += a.failures
	s.Bytes.Sent += a.bytesOut
	s.Bytes.Received += a.bytesIn
	s.Lost += a.lost
	s.Late += a.late
	for i := range a.methods {
		t := &a.methods[i]
		m := s.ByMethod[shares[i].Name]
		m.Done += t.done
		m.Failed += t.failed
		merge(m.Latency, t.latency)
	}
	for code, n := range a.errors {
		addError(s.Errors, code, *n)
	}
	if a.others > 0 {
		s.Errors[OtherErrors] += a.others
	}
}

// addError adds to a code's count, or to that of all others once there are MaxErrorKinds.
func addError(errors map[string]int64, code string, n int64) {
	kinds := len(errors)
	if _, has := errors[OtherErrors]; has {
		kinds--
	}
	if _, known := errors[code]; !known && kinds >= MaxErrorKinds {
		code = OtherErrors
	}
	errors[code] += n
}

// take empties an account of the shard: it returns it and leaves another, empty one.
func (s *shard) take(which int, next *account) (a *account, inFlight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, s.accounts[which] = s.accounts[which], next
	return a, s.inFlight
}

// clear makes an account empty, but keeps its memory.
func (a *account) clear() {
	for i := range a.methods {
		t := &a.methods[i]
		t.done, t.failed = 0, 0
		if t.latency != nil {
			t.latency.Reset()
		}
	}
	clear(a.errors)
	*a = account{methods: a.methods, errors: a.errors}
}

// NewSample returns an empty sample with these methods.
func NewSample(shares []Share) Sample {
	s := Sample{Latency: NewHistogram(), ByMethod: make(map[string]*MethodSample, len(shares)), Errors: make(map[string]int64)}
	for _, share := range shares {
		s.ByMethod[share.Name] = &MethodSample{Latency: NewHistogram()}
	}
	return s
}

// Add adds a later sample to one that ends where the other begins. Methods that s does not have yet
// are added, up to MaxShares; histograms that it does not have are left out.
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
	merge(s.Latency, next.Latency)
	for name, m := range next.ByMethod {
		mine := s.ByMethod[name]
		switch {
		case m == nil || mine == nil && len(s.ByMethod) >= MaxShares:
			continue
		case mine == nil:
			mine = &MethodSample{Latency: NewHistogram()}
			s.ByMethod[name] = mine
		}
		mine.Done += m.Done
		mine.Failed += m.Failed
		merge(mine.Latency, m.Latency)
	}
	for code, n := range next.Errors {
		addError(s.Errors, code, n)
	}
}

// merge adds a histogram to another one, where there are both.
func merge(into, from *hdrhistogram.Histogram) {
	if into != nil && from != nil && from.TotalCount() > 0 {
		into.Merge(from)
	}
}
