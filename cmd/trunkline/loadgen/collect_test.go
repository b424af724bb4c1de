package loadgen

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSumIsBounded: whatever samples name, their sum keeps so many errors.
func TestSumIsBounded(t *testing.T) {
	sum := NewSample(nil)
	for i := range 2000 {
		name := string(rune('一' + i))
		sum.Add(&Sample{To: time.Second, Failed: 1, Errors: map[string]int64{name: 1}, Methods: []MethodSample{{Name: name, Done: 1}}})
	}
	if len(sum.Errors) != maxErrorKinds+1 || len(sum.Methods) != 0 || sum.Failed != 2000 ||
		sum.Errors[otherErrors] != 2000-maxErrorKinds {
		t.Errorf("%d kinds of errors, %d of them others, %d methods, %d failed", len(sum.Errors), sum.Errors[otherErrors],
			len(sum.Methods), sum.Failed)
	}
}

func TestLimitOfErrorKinds(t *testing.T) {
	a, b := newAccount([]Share{{Name: "m"}}), newAccount([]Share{{Name: "m"}})
	for i := range maxErrorKinds {
		fail(a, 0, fmt.Sprintf("code %d", i))
	}
	if len(a.Errors) != maxErrorKinds || a.Errors[otherErrors] != 0 {
		t.Fatalf("%d kinds, %d others", len(a.Errors), a.Errors[otherErrors])
	}
	fail(a, 0, "one more")
	fail(a, 0, "code 3")
	fail(b, 0, []byte("of another shard"))
	fail(b, 0, []byte("code 3"))
	shares := []Share{{Name: "m"}}
	s := NewSample(shares)
	s.Add(&a.Sample)
	s.Add(&b.Sample)
	if len(s.Errors) != maxErrorKinds+1 || s.Errors[otherErrors] != 2 || s.Errors["code 3"] != 3 ||
		s.Failed != maxErrorKinds+4 {
		t.Errorf("%d: %v", len(s.Errors), s.Errors)
	}
	total := NewSample(shares)
	total.Add(&s)
	total.Add(&s)
	if len(total.Errors) != maxErrorKinds+1 || total.Errors[otherErrors] != 4 ||
		total.Methods[0].Failed != total.Failed {
		t.Errorf("%d: %v", len(total.Errors), total.Errors)
	}
}

func TestLatenciesStayInRange(t *testing.T) {
	a := newAccount([]Share{{Name: "m"}})
	for _, ns := range []int64{-5, 0, 1, HighestLatency, HighestLatency + 1, never} {
		a.observe(0, ns)
	}
	if h := a.Methods[0].Latency; h.TotalCount() != 6 || h.Max() < HighestLatency || h.Min() != 1 {
		t.Errorf("%d from %d to %d", h.TotalCount(), h.Min(), h.Max())
	}
}

// TestKeptIntervals: however long the run, the list is bounded, has no gap, and loses nothing.
func TestKeptIntervals(t *testing.T) {
	shares := []Share{{Name: "m"}}
	f := func(n, want int) {
		t.Helper()
		var k keeper
		for i := range n {
			s := NewSample(shares)
			s.From, s.To, s.Done = time.Duration(i), time.Duration(i+1), 1
			_ = s.Latency.RecordValue(int64(i + 1))
			s.Methods[0].Done = 1
			s.Errors["e"] = 1
			k.add(&s)
		}
		list := k.all(0)
		if len(list) != want {
			t.Fatalf("%d intervals: %d kept, want %d", n, len(list), want)
		}
		var at time.Duration
		for _, s := range list {
			count := int64(s.To - s.From)
			if s.From != at || s.Done != count || s.Latency.TotalCount() != count || s.Methods[0].Done != count || s.Errors["e"] != count {
				t.Fatalf("from %d to %d behind %d: done %d, %d latencies", s.From, s.To, at, s.Done, s.Latency.TotalCount())
			}
			if got := s.Latency.Max(); got < int64(s.To) || s.Methods[0].Latency != nil {
				t.Fatalf("to %d: slowest %d", s.To, got)
			}
			at = s.To
		}
		if at != time.Duration(n) {
			t.Fatalf("ends at %d of %d", at, n)
		}
	}
	f(0, 0)
	f(1, 1)
	f(keptIntervals-1, keptIntervals-1)
	f(2*keptIntervals+1, keptIntervals/2+1)
}

// TestTheRestOfARun: a last moment does not stand alone, because few requests make a great rate of
// it.
func TestTheRestOfARun(t *testing.T) {
	shares := []Share{{Name: "m"}}
	f := func(shortest time.Duration, spans ...time.Duration) (ends []time.Duration) {
		t.Helper()
		var k keeper
		var at time.Duration
		for _, span := range spans {
			s := NewSample(shares)
			s.From, s.To, s.Done = at, at+span, 1
			_ = s.Latency.RecordValue(int64(span))
			k.add(&s)
			at += span
		}
		done, latencies := int64(0), int64(0)
		for _, s := range k.all(shortest) {
			ends = append(ends, s.To)
			done += s.Done
			latencies += s.Latency.TotalCount()
		}
		if done != int64(len(spans)) || latencies != done || len(ends) == 0 || ends[len(ends)-1] != at {
			t.Errorf("%v: %d done, %d latencies, ends %v", spans, done, latencies, ends)
		}
		return ends
	}
	const s, half = time.Second, time.Second / 2
	for _, c := range []struct {
		rest time.Duration
		want int
	}{{half, 3}, {half - 1, 2}, {0, 2}, {s, 3}} {
		if ends := f(half, s, s, c.rest); len(ends) != c.want {
			t.Errorf("rest %s: %v", c.rest, ends)
		}
	}
	if ends := f(half, half-1); len(ends) != 1 {
		t.Errorf("the only one: %v", ends)
	}
}

// TestBoundaries: samples end at multiples of the interval from the start of measuring, and one
// ends exactly there.
func TestBoundaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		warm := rapid.Int64Range(0, 1e10).Draw(t, "warm")
		every := rapid.Int64Range(1e6, 1e10).Draw(t, "interval")
		c := &collector{g: &generator{warm: warm, plan: Plan{Interval: time.Duration(every)}}}
		crossed := warm == 0
		for range 30 {
			next := c.boundary()
			if next <= c.from || next > c.from+every || (next-warm)%every != 0 {
				t.Fatalf("from %d: %d, warm %d, every %d", c.from, next, warm, every)
			}
			crossed = crossed || next == warm
			if c.from < warm && next > warm {
				t.Fatalf("%d to %d goes over the start of measuring %d", c.from, next, warm)
			}
			c.from = next
		}
		if c.from > warm && !crossed {
			t.Fatalf("no sample ends at %d", warm)
		}
	})
}
