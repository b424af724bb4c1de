package tool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// breakerRig is a breaker with a clock that stands still, and a record of what it reported.
type breakerRig struct {
	*Breaker
	now  int64
	told []string
}

func newBreakerRig(threshold int, cooldown time.Duration) *breakerRig {
	r := &breakerRig{now: 1}
	r.Breaker = NewBreaker(BreakerConfig{
		Threshold: threshold, Cooldown: cooldown,
		Now:     func() int64 { return r.now },
		Changed: func(s BreakerState, failures int) { r.told = append(r.told, fmt.Sprint(s, " ", failures)) },
	})
	return r
}

var (
	crashed = &DispatchError{Type: Crash}
	starved = &DispatchError{Type: Timeout, Waited: true}
)

// TestBreaker runs scripts, one word each step:
//
//	ok fail    a call that is allowed and answered, or not
//	trip       a call that is not allowed
//	waited     a call that no worker took
//	probe      a call that is allowed as the probe and goes on
//	+ - ~ 0    that probe is answered, fails, got no worker, is refused before it ran
//	start      that probe runs
//	cool       the cooldown passes but for a nanosecond
//	tick       a nanosecond passes
func TestBreaker(t *testing.T) {
	f := func(script string, told ...string) {
		t.Helper()
		r := newBreakerRig(3, time.Second)
		for i, word := range strings.Fields(script) {
			if why := r.step(word); why != "" {
				t.Errorf("%s: word %d, %s: %s", script, i+1, word, why)
			}
		}
		if fmt.Sprint(r.told) != fmt.Sprint(told) {
			t.Errorf("%s: told %v, want %v", script, r.told, told)
		}
	}
	f("ok fail fail ok fail fail ok")
	f("fail fail fail trip trip", "opened 3")
	f("fail fail waited waited fail trip", "opened 3")
	f("fail fail fail cool trip tick probe trip + ok fail fail ok", "opened 3", "half_open 3", "closed 0")
	f("fail fail fail cool tick probe start trip - trip cool trip tick probe - trip", "opened 3", "half_open 3", "opened 4", "half_open 4", "opened 5")
	f("fail fail fail cool tick probe 0 probe 0 probe +", "opened 3", "half_open 3", "closed 0")
	f("fail fail fail cool tick probe start 0 probe trip -", "opened 3", "half_open 3", "opened 3", "half_open 3", "opened 4")
	f("fail fail fail cool tick probe start ~ probe +", "opened 3", "half_open 3", "opened 3", "half_open 3", "closed 0")
}

func (r *breakerRig) step(word string) (why string) {
	outcome := map[string]*DispatchError{"fail": crashed, "waited": starved, "-": crashed, "~": starved}[word]
	switch word {
	case "ok", "fail", "waited":
		probe, ok := r.Allow()
		if probe || !ok {
			return "not an ordinary call"
		}
		r.Done(probe, outcome)
	case "trip":
		if _, ok := r.Allow(); ok {
			return "allowed"
		}
	case "probe":
		if probe, ok := r.Allow(); !probe || !ok {
			return "not a probe"
		}
	case "start":
		r.Start(true)
	case "0":
		r.Cancel(true)
	case "+", "-", "~":
		r.Done(true, outcome)
	case "cool":
		r.now += int64(time.Second) - 1
	case "tick":
		r.now++
	}
	return ""
}

func TestBreakerBounds(t *testing.T) {
	r := newBreakerRig(-5, -time.Second)
	r.Done(false, crashed)
	if s, n := r.State(); s != BreakerOpen || n != 1 {
		t.Errorf("threshold below 1: %v after %d failures", s, n)
	}
	if probe, ok := r.Allow(); !probe || !ok {
		t.Error("a cooldown below 0 is not over at once")
	}
}

// TestStragglers: calls that began before the breaker opened.
func TestStragglers(t *testing.T) {
	r := newBreakerRig(1, time.Second)
	r.Done(false, crashed)
	r.Done(false, nil)
	r.Done(false, crashed)
	r.Cancel(false)
	r.Start(false)
	if s, n := r.State(); s != BreakerOpen || n != 1 || len(r.told) != 1 {
		t.Errorf("%v, %d failures, told %v", s, n, r.told)
	}
}

// TestBreakerModel compares with the table of toolhost §5, written down as plainly as possible.
func TestBreakerModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threshold, cooldown := rapid.IntRange(1, 4).Draw(t, "threshold"), rapid.Int64Range(0, 5).Draw(t, "cooldown")
		r := newBreakerRig(threshold, time.Duration(cooldown))
		state, failures, openedAt, probing, started := "closed", 0, int64(0), false, false
		inFlight := 0 // ordinary calls
		end := func(failed bool) {
			probing, started = false, false
			if failed {
				failures++
				state, openedAt = "open", r.now
			} else {
				failures, state = 0, "closed"
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"time": func(t *rapid.T) { r.now += rapid.Int64Range(0, 3).Draw(t, "ns") },
			"allow": func(t *rapid.T) {
				wantProbe := state == "open" && !probing && r.now-openedAt >= cooldown
				probe, ok := r.Allow()
				if probe != wantProbe || ok != (state == "closed" || wantProbe) {
					t.Fatalf("%s: probe %v, ok %v", state, probe, ok)
				}
				if probe {
					probing = true
				} else if ok {
					inFlight++
				}
			},
			"done": func(t *rapid.T) {
				if inFlight == 0 {
					t.Skip()
				}
				inFlight--
				outcome := rapid.SampledFrom([]*DispatchError{nil, crashed, starved}).Draw(t, "outcome")
				r.Done(false, outcome)
				switch {
				case state != "closed" || outcome == starved:
				case outcome == nil:
					failures = 0
				default:
					if failures++; failures >= threshold {
						state, openedAt = "open", r.now
					}
				}
			},
			"start": func(t *rapid.T) {
				if !probing || started {
					t.Skip()
				}
				r.Start(true)
				started, state = true, "half_open"
			},
			"probe": func(t *rapid.T) {
				if !probing {
					t.Skip()
				}
				switch rapid.IntRange(0, 3).Draw(t, "how") {
				case 0:
					r.Done(true, nil)
					end(false)
				case 1:
					r.Done(true, crashed)
					end(true)
				case 2:
					r.Done(true, starved)
					probing, started, state = false, false, "open"
				case 3:
					r.Cancel(true)
					probing, started, state = false, false, "open"
				}
			},
			"": func(t *rapid.T) {
				s, n := r.State()
				if want := map[string]BreakerState{"closed": BreakerClosed, "open": BreakerOpen, "half_open": BreakerHalfOpen}[state]; s != want || n != failures {
					t.Fatalf("%v with %d failures, want %v with %d", s, n, want, failures)
				}
			},
		})
	})
}
