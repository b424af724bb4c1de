package loadgen

import (
	"testing"
	"time"
)

// TestWhatADrainRefusesIsSentAgain: it ends the transport, once all else on it is answered.
func TestWhatADrainRefusesIsSentAgain(t *testing.T) {
	f := &fake{serve: func(_ time.Duration, n int) deed {
		switch n {
		case 50:
			return deed{code: codeDraining}
		case 49, 51:
			return deed{after: 30 * time.Millisecond}
		}
		return deed{}
	}}
	p := Plan{Schedule: Schedule{To: 1000}, Conns: 1, Depth: 8, Duration: time.Second, Resend: true}
	against(t, f, p, func(r *Result, _ []Sample) {
		wantErrors(t, r, "map[]")
		if r.Total.Done != 1000 || r.Total.Sent != 1000 || r.Total.Resent != 1 || r.Total.Lost != 0 {
			t.Errorf("%+v", r.Total)
		}
	})
}

// TestWhatIsLostIsSentAgain, but for what a timeout has ended.
func TestWhatIsLostIsSentAgain(t *testing.T) {
	f := &fake{serve: func(_ time.Duration, n int) deed { return deed{work: 20 * time.Millisecond, hang: n == 50} }}
	p := Plan{Schedule: Schedule{To: 40}, Conns: 1, Depth: 8, Duration: 5 * time.Second, Resend: true}
	against(t, f, p, func(r *Result, _ []Sample) {
		wantErrors(t, r, "map[]")
		if r.Total.Done != 200 || r.Total.Resent == 0 || r.Total.Lost != 1 {
			t.Errorf("%+v", r.Total)
		}
	})
}

// TestAServerThatOnlyRefuses: what is sent again and again fails in time, with pauses between.
func TestAServerThatOnlyRefuses(t *testing.T) {
	f := &fake{serve: func(time.Duration, int) deed { return deed{code: codeDraining} }}
	p := Plan{Schedule: Schedule{To: 10}, Conns: 1, Depth: 4, Duration: time.Second, Timeout: 500 * time.Millisecond, Resend: true}
	against(t, f, p, func(r *Result, _ []Sample) {
		if r.Total.Done != 0 || r.Total.Failed != 10 || r.Total.Resent > 200 {
			t.Errorf("%+v", r.Total)
		}
	})
}

func TestOnlyTheKernelShowsWhatMayBeSentAgain(t *testing.T) {
	p := Plan{Target: Target{Protocol: ProtocolHTTP, Addr: "http://127.0.0.1:1"}, Schedule: Schedule{To: 1}, Conns: 1, Depth: 1,
		Duration: time.Second, Timeout: time.Second, Interval: time.Second, Resend: true}
	if err := p.Check(); err == nil {
		t.Error("a plan for HTTP is taken")
	}
	p.Target = Target{Protocol: ProtocolKernel, Addr: "127.0.0.1:1"}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}
