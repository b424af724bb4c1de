package loadgen

import (
	"fmt"
	"testing"
	"time"
)

func wantErrors(t *testing.T, r *Result, want string) {
	t.Helper()
	if got := fmt.Sprint(r.Total.Errors); got != want {
		t.Errorf("errors %s, want %s", got, want)
	}
}

func TestErrorsByCode(t *testing.T) {
	f := &fake{serve: func(_ time.Duration, n int) deed {
		return deed{code: []string{"", "NOT_FOUND", "", "RESOURCE_EXHAUSTED"}[n%4]}
	}}
	p := Plan{Schedule: Schedule{To: 100}, Conns: 2, Depth: 2, Duration: time.Second}
	against(t, f, p, func(r *Result, _ []Sample) {
		wantErrors(t, r, "map[NOT_FOUND:25 RESOURCE_EXHAUSTED:25]")
		if r.Total.Done != 50 || r.Total.Latency.TotalCount() != 100 {
			t.Errorf("%+v", r.Total)
		}
	})
}

// TestALateReply: a request that timed out has failed; its reply is known and changes nothing.
func TestALateReply(t *testing.T) {
	f := &fake{serve: func(_ time.Duration, n int) deed {
		if n == 10 {
			return deed{after: 1500 * time.Millisecond}
		}
		return deed{}
	}}
	p := Plan{Schedule: Schedule{To: 10}, Conns: 1, Depth: 1, Duration: 4 * time.Second, Timeout: time.Second}
	against(t, f, p, func(r *Result, _ []Sample) {
		// While the tenth held the only place, ten more came due; the last of them waited until the
		// sweep.
		if r.Total.Errors[ErrorTimeout] < 1 || r.Total.Errors[ErrorTimeout] > 2 || r.Total.Done+r.Total.Failed != 40 {
			t.Errorf("%+v", r.Total)
		}
		if r.Total.Late != 1 || r.Total.Lost != 0 {
			t.Errorf("%d late, %d lost", r.Total.Late, r.Total.Lost)
		}
	})
}

// TestAReplyAtTheTimeout: what comes when the time is up is too late, whether the timer or the
// reader is first.
func TestAReplyAtTheTimeout(t *testing.T) {
	f := func(after time.Duration, done int64) {
		t.Helper()
		server := &fake{serve: func(time.Duration, int) deed { return deed{after: after} }}
		p := Plan{Schedule: Schedule{To: 100}, Conns: 1, Depth: 100, Duration: time.Second, Timeout: 230 * time.Millisecond}
		against(t, server, p, func(r *Result, _ []Sample) {
			if r.Total.Done != done || r.Total.Failed != 100-done || r.Total.Errors[ErrorTimeout] != 100-done {
				t.Errorf("%s: %+v", after, r.Total)
			}
		})
	}
	f(230*time.Millisecond-1, 100)
	f(230*time.Millisecond, 0)
}

// TestADeadServer: every request that was due is counted, also those that never found a place.
func TestADeadServer(t *testing.T) {
	f := &fake{serve: func(time.Duration, int) deed { return deed{mute: true} }}
	p := Plan{Schedule: Schedule{To: 1000}, Conns: 3, Depth: 5, Duration: 3 * time.Second, Timeout: 500 * time.Millisecond}
	against(t, f, p, func(r *Result, _ []Sample) {
		wantErrors(t, r, "map[timeout:3000]")
		if r.Total.Due != 3000 || r.Total.Done != 0 || r.Total.Latency.Min() < int64(499*time.Millisecond) {
			t.Errorf("%+v", r.Total)
		}
		if r.MissedSchedule || r.LatestLag > lagTolerance {
			t.Errorf("the server's silence is the generator's lag of %s", r.LatestLag)
		}
		if r.Total.To > 3700*time.Millisecond {
			t.Errorf("it ended at %s", r.Total.To)
		}
	})
}

func TestALostConnection(t *testing.T) {
	f := &fake{serve: func(at time.Duration, n int) deed {
		return deed{work: 20 * time.Millisecond, hang: n == 50}
	}}
	p := Plan{Schedule: Schedule{To: 40}, Conns: 1, Depth: 8, Duration: 5 * time.Second}
	against(t, f, p, func(r *Result, _ []Sample) {
		if r.Total.Lost != 1 || r.Total.Errors[ErrorLost] < 1 || r.Total.Done+r.Total.Failed != 200 || f.dials != 2 {
			t.Errorf("%d dials, %+v", f.dials, r.Total)
		}
		// What came due while there was no connection was sent on the next one.
		if r.Total.Failed > 2 || r.Total.Latency.Max() < int64(25*time.Millisecond) {
			t.Errorf("%+v, slowest %s", r.Total, time.Duration(r.Total.Latency.Max()))
		}
	})
}

// TestAServerThatIsAway for two seconds: requests wait for it up to their timeout, and attempts to
// connect become rarer.
func TestAServerThatIsAway(t *testing.T) {
	away := func(at time.Duration) bool { return at >= time.Second && at < 3*time.Second }
	f := &fake{serve: func(at time.Duration, n int) deed { return deed{hang: away(at)} }}
	f.refuse = func(at time.Duration, _ int) error {
		if away(at) {
			return errDown
		}
		return nil
	}
	p := Plan{Schedule: Schedule{To: 100}, Conns: 1, Depth: 8, Duration: 5 * time.Second, Timeout: 500 * time.Millisecond}
	against(t, f, p, func(r *Result, _ []Sample) {
		e := r.Total.Errors
		if r.Total.Done+r.Total.Failed != 500 || e[ErrorLost] != 1 || e[ErrorUnconnected] < 140 || r.Total.Lost != 1 {
			t.Errorf("%+v", r.Total)
		}
		if f.dials < 5 || f.dials > 14 {
			t.Errorf("%d attempts to connect in two seconds", f.dials)
		}
	})
}

// TestWhatTheServerSaysLast is the reason of what fails with the connection.
func TestWhatTheServerSaysLast(t *testing.T) {
	g, c := lonely(t, Plan{Schedule: Schedule{To: 1000}, Depth: 4})
	c.fill()
	c.take(newDialect(ProtocolKernel), refusal(nil, "RESOURCE_EXHAUSTED"), 0, false, g.now())
	c.detach(true)
	a := g.shards[0].accounts[measuring]
	if a.Errors["RESOURCE_EXHAUSTED"] != a.Sent || a.Lost != 1 || g.shards[0].inFlight != 0 {
		t.Errorf("%v, %d sent", a.Errors, a.Sent)
	}
}

func TestGarbageEndsTheConnection(t *testing.T) {
	g, c := lonely(t, Plan{Schedule: Schedule{To: 1000}, Depth: 4})
	c.fill()
	if _, _, err := c.take(newDialect(ProtocolKernel), []byte("HTTP/1.1 400 Bad\r\n\r\n"), 0, false, g.now()); err == nil {
		t.Error("no error")
	}
	c.setError(errorProtocol)
	c.detach(true)
	if g.shards[0].accounts[measuring].Errors[errorProtocol] < 1 {
		t.Errorf("%v", g.shards[0].accounts[measuring].Errors)
	}
}

// lonely is a connection without a transport, in a run that began half a second ago.
func lonely(t *testing.T, p Plan) (*generator, *conn) {
	t.Helper()
	full := goodPlan()
	full.Schedule, full.Depth, full.Duration = p.Schedule, p.Depth, time.Hour
	full.Mix = []Share{{Name: "RecordUsage", Weight: 1}, {Name: "CheckQuota", Weight: 1}}
	g, err := newGenerator(full, secret, 1)
	if err != nil {
		t.Fatal(err)
	}
	g.begin = time.Now().Add(-500 * time.Millisecond)
	return g, g.conns[0]
}
