package loadgen

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
)

// fake is a server of the kernel protocol inside a bubble of testing/synctest, where time passes
// only while all wait.
type fake struct {
	mu       sync.Mutex
	began    time.Time
	dials    int
	pending  int // requests on one connection without a reply, at most
	requests int

	// What it does, if set.
	refuse func(at time.Duration, dial int) error
	serve  func(at time.Duration, n int) deed // n counts the requests of all connections
}

// deed is what the fake does with a request.
type deed struct {
	work  time.Duration // before it looks at the next request of the connection
	after time.Duration // how much later than that the reply comes, the next requests go on
	code  string        // an error
	mute  bool          // no reply
	hang  bool          // the connection ends
}

func (f *fake) dial(context.Context) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	if f.refuse != nil {
		if err := f.refuse(time.Since(f.began), f.dials); err != nil {
			return nil, err
		}
	}
	ours, theirs := net.Pipe()
	go f.talk(theirs)
	return ours, nil
}

// talk serves one connection. Frames are read while others are worked on, so that what is in flight
// can be counted.
func (f *fake) talk(nc net.Conn) {
	defer nc.Close()
	ids := make(chan []byte, maxDepth+1)
	go f.receive(nc, ids)
	var replies sync.WaitGroup
	defer replies.Wait()
	for id := range ids {
		f.mu.Lock()
		f.requests++
		n := f.requests
		f.mu.Unlock()
		d := deed{}
		if f.serve != nil {
			d = f.serve(time.Since(f.began), n)
		}
		time.Sleep(d.work)
		if d.hang {
			return
		}
		reply := answer(0)[:0]
		switch {
		case d.mute:
			continue
		case d.code != "":
			reply = refusal(id, d.code)
		default:
			reply = replyFrame(frame.Response, append(mpack.AppendResponseHead(nil, id), 0x80))
		}
		if d.after == 0 {
			_, _ = nc.Write(reply)
			continue
		}
		replies.Go(func() {
			time.Sleep(d.after)
			_, _ = nc.Write(reply)
		})
	}
}

func (f *fake) receive(nc net.Conn, ids chan<- []byte) {
	defer close(ids)
	eachFrame(nc, func(payload []byte) bool {
		var r mpack.Request
		var sc mpack.Scanner
		sc.ParseRequest(payload, &r)
		ids <- append([]byte(nil), r.ID...)
		f.mu.Lock()
		f.pending = max(f.pending, len(ids))
		f.mu.Unlock()
		return true
	})
}

// eachFrame hands out what comes until the connection ends, or do returns false.
func eachFrame(nc net.Conn, do func(payload []byte) bool) {
	var in []byte
	buf := make([]byte, 4096)
	for {
		n, err := nc.Read(buf)
		if err != nil {
			return
		}
		in = append(in, buf[:n]...)
		for {
			_, payload, n := frame.Split(in, maxReply)
			if n <= 0 {
				break
			}
			if !do(payload) {
				return
			}
			in = in[n:]
		}
	}
}

var errDown = errors.New("down")

// against runs a plan against the fake, in a bubble, and checks what holds for every result.
func against(t *testing.T, f *fake, p Plan, check func(r *Result, samples []Sample)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		f.began = time.Now()
		r, samples := runPlan(t, context.Background(), f, p)
		checkSums(t, r, samples)
		check(r, samples)
	})
}

func runPlan(t *testing.T, ctx context.Context, f *fake, p Plan) (*Result, []Sample) {
	t.Helper()
	p.Target = Target{Protocol: ProtocolKernel, Addr: "fake:1", Dial: f.dial}
	if p.Mix == nil {
		p.Mix = []Share{{Name: "GetProcessCounts", Weight: 1}}
	}
	if p.Timeout == 0 {
		p.Timeout = 5 * time.Second
	}
	if p.Interval == 0 {
		p.Interval = time.Second
	}
	var samples []Sample
	r, err := run(ctx, p, func(s Sample) { samples = append(samples, s) }, timerAlarm, secret)
	if err != nil {
		t.Fatal(err)
	}
	return r, samples
}

// methodOf is the part of a method in a result.
func methodOf(r *Result, name string) MethodSample {
	i := slices.IndexFunc(r.Total.Methods, func(m MethodSample) bool { return m.Name == name })
	return r.Total.Methods[i]
}

// checkSums: the whole is the sum of its parts.
func checkSums(t *testing.T, r *Result, samples []Sample) {
	t.Helper()
	sum := NewSample(r.Plan.Mix)
	at := time.Duration(0)
	for i, s := range samples {
		if i > 0 && s.From != samples[i-1].To {
			t.Errorf("sample %d begins at %s, the one before ended at %s", i, s.From, samples[i-1].To)
		}
		if s.From < 0 {
			continue
		}
		if s.From != at {
			t.Errorf("a sample begins at %s, want %s", s.From, at)
		}
		at = s.To
		sum.Add(&s)
	}
	var failed, done, count int64
	for _, n := range r.Total.Errors {
		failed += n
	}
	for _, m := range r.Total.Methods {
		done += m.Done
		count += m.Latency.TotalCount()
	}
	got, want := r.Total, sum
	if got.Due != want.Due || got.Sent != want.Sent || got.Done != want.Done || got.Failed != want.Failed || got.Bytes != want.Bytes {
		t.Errorf("total %+v, its parts %+v", got, want)
	}
	if failed != got.Failed || done != got.Done || count != got.Latency.TotalCount() {
		t.Errorf("total %+v: %d errors by code, %d done and %d latencies by method", got, failed, done, count)
	}
	if len(r.Intervals) > 0 && r.Intervals[len(r.Intervals)-1].To != got.To {
		t.Errorf("intervals end at %s, the total at %s", r.Intervals[len(r.Intervals)-1].To, got.To)
	}
}
