package obs

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"pgregory.net/rapid"
)

// theirs returns the native bucket in which client_golang counts seconds; zero: the zero bucket.
func theirs(t rapid.TB, seconds float64) (index int, zero bool) {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "x", NativeHistogramBucketFactor: 1.19, NativeHistogramZeroThreshold: boundOf(0),
	})
	h.Observe(seconds)
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	if got := m.Histogram.GetSchema(); got != schema {
		t.Fatalf("schema %d", got)
	}
	if m.Histogram.GetZeroCount() == 1 {
		return 0, true
	}
	return int(m.Histogram.PositiveSpan[0].GetOffset()), false
}

// TestBucketsAreThoseOfNativeHistograms: a duration is counted where client_golang counts it.
func TestBucketsAreThoseOfNativeHistograms(t *testing.T) {
	check := func(t rapid.TB, ns int64) {
		got := bucketOf(ns)
		want, zero := theirs(t, float64(ns)/1e9)
		switch {
		case zero:
			want = 0
		case want > lastBound:
			want = numBuckets - 1
		default:
			want -= firstBound
		}
		if got != want {
			t.Fatalf("%d ns are in bucket %d, want %d", ns, got, want)
		}
	}
	for i := range numBuckets - 1 { // around each bound
		at := int64(boundOf(i) * 1e9)
		for _, ns := range []int64{at - 1, at, at + 1, at + 2} {
			check(t, ns)
		}
	}
	for _, ns := range []int64{0, 1, 953, 954, 955, 1e9, 64e9, 64e9 + 1, math.MaxInt64} {
		check(t, ns)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.Int64Range(0, 100e9).Draw(t, "ns")) })
}

func TestTimingCounts(t *testing.T) {
	var timing Timing
	timing.Record(2e6, 98) // in the bucket up to 2.32 ms
	timing.Record(500e6, 1)
	timing.Record(200e9, 1)
	timing.Record(-5, 0)
	l := timing.read().latency("ipc", "m", 3)
	if l.Count != 100 || l.Errors != 3 || math.Abs(l.SumSeconds-200.696) > 1e-9 {
		t.Errorf("%+v", l)
	}
	bound := func(ns int64) float64 { return boundOf(bucketOf(ns)) }
	if l.P50 != bound(2e6) || l.P90 != bound(2e6) || l.P99 != bound(500e6) || l.P999 != boundOf(numBuckets-1) {
		t.Errorf("%+v", l)
	}
	if l.P50 < 2e-3 || l.P50 > 2e-3*math.Pow(2, 0.25) {
		t.Errorf("the median of 2 ms is shown as %v s", l.P50)
	}
	var empty Timing
	if l := empty.read().latency("ipc", "m", 0); l.Count != 0 || l.P50 != 0 || l.P999 != 0 {
		t.Errorf("nothing is shown as %+v", l)
	}
}

func TestTimingsInBothForms(t *testing.T) {
	r := newRegistry(t)
	var timing Timing
	timing.Record(500, 2)
	timing.Record(1e9, 3)
	timing.Record(3e9, 1)
	err := r.AddTimings("trunkline_x_seconds", "X.", []string{"method"}, func(put PutTiming) { put(&timing, "m") })
	if err != nil {
		t.Fatal(err)
	}
	families, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var h *dto.Histogram
	for _, f := range families {
		if f.GetName() == "trunkline_x_seconds" {
			h = f.Metric[0].Histogram
		}
	}
	if h.GetSchema() != 2 || h.GetZeroCount() != 2 || h.GetSampleCount() != 6 || len(h.PositiveSpan) != 2 || h.PositiveSpan[0].GetOffset() != 0 {
		t.Errorf("native: %v", h)
	}
	at := map[float64]uint64{}
	for _, b := range h.Bucket {
		at[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	if len(at) != topPower-lowestPower+1 || at[0.5] != 2 || at[1] != 5 || at[2] != 5 || at[4] != 6 || at[64] != 6 {
		t.Errorf("classic: %v", at)
	}
	for _, name := range []string{"other_seconds", "trunkline_x_total", "trunkline_x_seconds"} {
		if err := r.AddTimings(name, "x", nil, func(PutTiming) {}); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	if err := r.AddTimings("trunkline_y_seconds", "Y.", nil, func(put PutTiming) { put(&timing, "too many") }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Gatherer().Gather(); err == nil {
		t.Error("a scrape with a wrong number of labels passed")
	}
}

// peer is a connection.
type peer string

func (p peer) Name() string   { return string(p) }
func (p peer) Remote() string { return "10.0.0.1:" + string(p) }

func TestRecorder(t *testing.T) {
	rec := NewRecorder(0, 1)
	r := newRegistry(t)
	if err := rec.Register(r); err != nil {
		t.Fatal(err)
	}
	m := rec.Meter("ipc", []string{"a", "b", "unused"})
	steps := rec.Meter(StepProtocol, []string{"commit"})
	m.Record(1, 1e6, 3, 1, peer("1"))
	m.Record(0, 1e6, 1, 0, peer("1"))
	steps.Record(0, 1e6, 1, 0, nil)
	var shown []string
	for _, l := range rec.Latencies() {
		shown = append(shown, l.Protocol+" "+l.Method)
	}
	if got := strings.Join(shown, ", "); got != "ipc a, ipc b, server commit" {
		t.Errorf("shown are %s", got)
	}
	if s := rec.Slow(); s.ThresholdSeconds != 0 || s.Total != 0 || s.Entries == nil || len(s.Entries) != 0 {
		t.Errorf("a slow log that is off has %+v", s)
	}
	want := `
# HELP trunkline_request_errors_total Requests answered with an error, by protocol and method.
# TYPE trunkline_request_errors_total counter
trunkline_request_errors_total{method="a",protocol="ipc"} 0
trunkline_request_errors_total{method="b",protocol="ipc"} 1
`
	if err := testutil.GatherAndCompare(r.Gatherer(), strings.NewReader(want), "trunkline_request_errors_total"); err != nil {
		t.Error(err)
	}
	for name, n := range map[string]int{"trunkline_request_duration_seconds": 2, "trunkline_step_duration_seconds": 1, "trunkline_slow_requests_total": 1} {
		if got, err := testutil.GatherAndCount(r.Gatherer(), name); got != n || err != nil {
			t.Errorf("%s has %d series, %v", name, got, err)
		}
	}
	problems, err := testutil.GatherAndLint(r.Gatherer())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	var none *Recorder
	none.Meter("ipc", []string{"a"}).Record(0, 1e12, 1, 1, peer("1"))
}

// TestSlowLogAtItsLimit: what took the threshold is in it, and of more than it keeps the newest.
func TestSlowLogAtItsLimit(t *testing.T) {
	const most = 3
	rec := NewRecorder(100e6, most)
	m := rec.Meter("ipc", []string{"a"})
	m.Record(0, 100e6-1, 1, 0, peer("0"))
	m.Record(0, 200e6, 1, 0, nil) // not of a connection
	f := func(want ...string) {
		t.Helper()
		s := rec.Slow()
		var got []string
		for _, e := range s.Entries {
			if e.Protocol != "ipc" || e.Method != "a" || e.Peer != "10.0.0.1:"+e.Conn || e.At.IsZero() || e.Seconds < 0.1 {
				t.Errorf("%+v", e)
			}
			got = append(got, e.Conn)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || s.ThresholdSeconds != 0.1 {
			t.Errorf("%+v, want %v", s, want)
		}
	}
	f()
	for _, name := range []string{"1", "2", "3"} {
		m.Record(0, 100e6, 1, 0, peer(name))
	}
	f("3", "2", "1")
	m.Record(0, 300e6, 5, 0, peer("4"))
	f("4", "3", "2")
	if s := rec.Slow(); s.Total != 8 || s.Entries[0].ID != 8 || s.Entries[1].ID != 3 {
		t.Errorf("%+v", s)
	}
	rec.SetSlowThreshold(0)
	m.Record(0, 300e6, 1, 0, peer("5"))
	rec.SetSlowThreshold(100e6 + 1)
	m.Record(0, 100e6, 1, 0, peer("6"))
	rec.SetSlowThreshold(100e6)
	f("4", "3", "2")
	m.Record(0, 100e6, 1, 0, peer("7"))
	f("7", "4", "3")
}

func TestPending(t *testing.T) {
	rec := NewRecorder(0, 1)
	m := rec.Meter("ipc", []string{"a", "b"})
	var p Pending
	p.Add(0, 1000, 1, 0)
	p.Add(1, 1000, 2, 1)
	p.Add(0, 1000, 1, 1)
	if p.Len() != 4 || len(p.rows) != 2 {
		t.Errorf("%d requests in %d entries", p.Len(), len(p.rows))
	}
	p.Record(m, 1000+5e6, peer("1"))
	l := rec.Latencies()
	if !p.Empty() || l[0].Count != 2 || l[0].Errors != 1 || l[1].Count != 2 || l[1].SumSeconds != 0.01 {
		t.Errorf("%+v", l)
	}
}

// TestPendingAtItsLimit: entries beyond the limit are joined to one of their method, and no request
// is lost.
func TestPendingAtItsLimit(t *testing.T) {
	rec := NewRecorder(0, 1)
	m := rec.Meter("ipc", []string{"a", "b"})
	var p Pending
	for i := range maxPending {
		p.Add(0, int64(i), 1, 0)
	}
	if len(p.rows) != maxPending {
		t.Fatalf("%d entries at the limit", len(p.rows))
	}
	p.Add(0, 1e9, 1, 0)
	p.Add(1, 1e9, 1, 0)
	p.Add(1, 2e9, 1, 0)
	if len(p.rows) != maxPending+1 || p.Len() != maxPending+3 {
		t.Errorf("%d entries beyond the limit, %d requests", len(p.rows), p.Len())
	}
	p.Record(m, 3e9, nil)
	if l := rec.Latencies(); l[0].Count != maxPending+1 || l[1].Count != 2 || cap(p.rows) > keptPending {
		t.Errorf("%+v, room for %d is kept", l, cap(p.rows))
	}
}

func TestRecordingAtOnce(t *testing.T) {
	rec := NewRecorder(1, 4)
	m := rec.Meter("ipc", []string{"a"})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var p Pending
			for range 1000 {
				p.Add(0, 0, 1, 0)
				p.Record(m, 1e6, peer("1"))
			}
		})
	}
	for range 100 {
		_, _ = rec.Latencies(), rec.Slow()
	}
	all.Wait()
	if l, s := rec.Latencies(), rec.Slow(); l[0].Count != 4000 || s.Total != 4000 || len(s.Entries) != 4 {
		t.Errorf("%+v, %d slow", l, s.Total)
	}
}

// TestQuantilesOfAModel: a quantile is the bound of the bucket that has the value of a sorted list.
func TestQuantilesOfAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, 100e9), 1, 200).Draw(t, "ns")
		var timing Timing
		for _, ns := range all {
			timing.Record(ns, 1)
		}
		slices.Sort(all)
		l := timing.read().latency("ipc", "m", 0)
		for q, got := range map[float64]float64{0.5: l.P50, 0.9: l.P90, 0.99: l.P99, 0.999: l.P999} {
			rank := int(math.Ceil(q * float64(len(all))))
			if want := boundOf(bucketOf(all[rank-1])); got != want {
				t.Fatalf("%v of %v is %v, want %v", q, all, got, want)
			}
		}
		var count uint64
		for i, b := range l.Buckets {
			if count += b.Count; b.Count == 0 || i > 0 && b.UpTo <= l.Buckets[i-1].UpTo {
				t.Fatalf("%v", l.Buckets)
			}
		}
		if count != l.Count {
			t.Fatalf("%d in buckets of %d", count, l.Count)
		}
	})
}
