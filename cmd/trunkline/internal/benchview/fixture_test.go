package benchview

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trunkline/cmd/trunkline/loadgen"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata with what the tests get")

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -rewrite accepts):\n%s", path, diff)
	}
}

func planOfTwo() loadgen.Plan {
	return loadgen.Plan{
		Target:   loadgen.Target{Protocol: loadgen.ProtocolKernel, Addr: "127.0.0.1:4410", Token: "s3cret"},
		Schedule: loadgen.Schedule{Kind: loadgen.Constant, To: 5000},
		Mix: []loadgen.Share{
			{Name: "kernel.GetProcess", Weight: 9},
			{Name: "kernel.CreateProcess", Weight: 1, Body: []byte(`{"pid":"p"}`)},
		},
		Conns: 8, Depth: 16,
		Warmup: 2 * time.Second, Duration: 20 * time.Second, Timeout: 5 * time.Second, Interval: time.Second, Seed: 1,
	}
}

// intervalOf is one second of a server that answers n requests within about typical, and fails some
// of them.
func intervalOf(p *loadgen.Plan, rng *rand.Rand, second int, n, failed int64, typical time.Duration) loadgen.Sample {
	s := loadgen.Sample{
		From: time.Duration(second) * time.Second, To: time.Duration(second+1) * time.Second,
		Due: n + failed, Sent: n + failed, Done: n, Failed: failed, InFlight: 3,
		Bytes:   loadgen.Bytes{Sent: 84 * (n + failed), Received: 51 * (n + failed)},
		Latency: loadgen.NewHistogram(),
		Methods: make([]loadgen.MethodSample, len(p.Mix)),
		Errors:  make(map[string]int64),
	}
	for i, sh := range p.Mix {
		m := &s.Methods[i]
		m.Name, m.Latency = sh.Name, loadgen.NewHistogram()
		m.Done = n * int64(sh.Weight) / 10
		for range m.Done {
			ns := int64(float64(typical) * (0.7 + 0.3*rng.ExpFloat64()) * float64(i+1))
			_ = m.Latency.RecordValue(ns)
			_ = s.Latency.RecordValue(ns)
		}
	}
	if failed > 0 {
		s.Errors["RESOURCE_EXHAUSTED"] = failed - failed/4
		s.Errors[loadgen.ErrorTimeout] = failed / 4
		s.Methods[0].Failed = failed
	}
	return s
}

// observed are twenty seconds as Run reports them while they pass: the server stands still in the
// twelfth and refuses some requests in the next.
func observed() []loadgen.Sample {
	p, rng := planOfTwo(), rand.New(rand.NewPCG(1, 2))
	var out []loadgen.Sample
	for second := range 20 {
		s := intervalOf(&p, rng, second, 5000, 0, 400*time.Microsecond)
		switch second {
		case 11:
			s = intervalOf(&p, rng, second, 0, 0, 0)
			s.Due = 5000
		case 12:
			s = intervalOf(&p, rng, second, 9960, 40, 480*time.Millisecond)
			s.Due, s.Lost, s.Late = 5000, 2, 7
		}
		out = append(out, s)
	}
	return out
}

// stalledRun is the result of observed.
func stalledRun() *loadgen.Result {
	r := &loadgen.Result{Plan: planOfTwo(), Start: time.Date(2026, 3, 1, 12, 0, 0, 250e6, time.UTC), Intervals: observed()}
	r.Total = totalOf(r.Intervals)
	for i := range r.Intervals { // as Run leaves them
		for m := range r.Intervals[i].Methods {
			r.Intervals[i].Methods[m].Latency = nil
		}
	}
	return r
}

func totalOf(in []loadgen.Sample) loadgen.Sample {
	total := loadgen.NewSample(planOfTwo().Mix)
	for i := range in {
		total.Add(&in[i])
	}
	total.InFlight = 0 // all requests have ended
	return total
}

// extremes are results at the ends of what can happen.
func extremes() map[string]*loadgen.Result {
	out := make(map[string]*loadgen.Result)
	add := func(name string, f func(*loadgen.Result)) {
		r := &loadgen.Result{Plan: planOfTwo(), Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
		r.Total.To = 20 * time.Second
		f(r)
		out[name] = r
	}
	one := func(ns, n int64) loadgen.Sample {
		h := loadgen.NewHistogram()
		_ = h.RecordValues(ns, n)
		return loadgen.Sample{To: 20 * time.Second, Due: n, Sent: n, Done: n, Latency: h}
	}
	add("no value set", func(r *loadgen.Result) { *r = loadgen.Result{} })
	add("nothing due", func(r *loadgen.Result) {})
	add("empty histogram", func(r *loadgen.Result) { r.Total.Latency = loadgen.NewHistogram() })
	add("one request", func(r *loadgen.Result) { r.Total = one(1, 1); r.Intervals = []loadgen.Sample{one(1, 1)} })
	add("a thousand million requests", func(r *loadgen.Result) {
		r.Total = one(loadgen.HighestLatency, 1e9)
		r.Intervals = []loadgen.Sample{one(loadgen.HighestLatency, 1e9), one(1, 1e9)}
	})
	add("all timed out", func(r *loadgen.Result) {
		r.Total = one(int64(5*time.Second), 99_000)
		r.Total.Due, r.Total.Done, r.Total.Failed, r.Total.Late, r.Total.Lost = 100_000, 0, 100_000, 7, 2
		r.Total.Errors = map[string]int64{loadgen.ErrorTimeout: 99_000, loadgen.ErrorUnconnected: 1000}
	})
	add("all refused", func(r *loadgen.Result) {
		r.Total = one(4e5, 100_000)
		r.Total.Done, r.Total.Failed, r.Total.Errors = 0, 100_000, map[string]int64{"PERMISSION\x1b[31m_DENIED": 100_000}
	})
	add("stopped", func(r *loadgen.Result) {
		r.Total = one(4e5, 10_000)
		r.Total.Due, r.Stopped = 10_050, true
	})
	add("stopped while the server was behind", func(r *loadgen.Result) {
		r.Total = one(4e5, 10_000)
		r.Total.Due, r.Stopped = 10_051, true
	})
	add("bounded by its count", func(r *loadgen.Result) {
		r.Plan.Count = 10_000
		r.Plan.OnlyCount()
		r.Total = one(4e5, 10_000)
	})
	add("late and fast as it goes", func(r *loadgen.Result) {
		r.Plan.Schedule = loadgen.Schedule{Kind: loadgen.Max}
		r.Total = one(4e5, 100)
		r.MissedSchedule, r.LatestLag = true, 31*time.Millisecond
	})
	return out
}
