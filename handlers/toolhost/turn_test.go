package toolhost

import (
	"strings"
	"testing"
	"time"

	"trunkline/engine/link"
)

// TestOneReadingBetweenCalls: of tools on the loop that follow one another, one reading of the clock ends a call and begins the next,
// and a call is never charged for what came before it. The clock goes a millisecond on with each reading.
func TestOneReadingBetweenCalls(t *testing.T) {
	reads := int64(0)
	r := newRig(t, func(c *Config) {
		c.Now = func() link.Instant {
			reads++
			return link.Instant{Mono: int64(time.Hour) + reads*int64(time.Millisecond)}
		}
	})
	const call, none, op = `{"aid":"AID.COUNT.v1"}` + "\n", `{"aid":"AID.NONE.v1"}` + "\n", `{"aid":"_tools.list"}` + "\n"
	calls := time.Duration(0)
	f := func(in string, wantReads int64) {
		t.Helper()
		s := r.srv.OpenSocket(link.NewPort(1, "127.0.0.1:1"))
		defer s.Closed()
		before := reads
		used, _, v := s.Feed([]byte(in), nil, link.Instant{})
		if used != len(in) || v != link.More || reads-before != 1+wantReads {
			t.Errorf("%q: %d used, verdict %d, %d readings, want %d", in, used, v, reads-before-1, wantReads)
		}
		calls += time.Duration(strings.Count(in, call))
		for _, st := range r.srv.Stats().Tools {
			if st.AID == "AID.COUNT.v1" && st.Duration != calls*time.Millisecond {
				t.Errorf("%q: %d calls took %v", in, calls, st.Duration)
			}
		}
	}
	f(call, 2)
	f(call+call+call, 4)
	f(call+none+call, 4)
	f(call+op+call+call, 5)
	f(none+op, 0)
}

// TestNothingIsHeldBetweenTurns: what a call needs belongs to the session only while it is fed.
func TestNothingIsHeldBetweenTurns(t *testing.T) {
	r := newRig(t, nil)
	s := r.srv.OpenSocket(link.NewPort(1, "127.0.0.1:1")).(*session)
	defer s.Closed()
	for _, in := range []string{`{"aid":"AID.COUNT.v1"}` + "\n", "no JSON\n", "half a line", "\n\n"} {
		if s.Feed([]byte(in), nil, link.Instant{}); s.spare != nil {
			t.Errorf("after %q it has a call", in)
		}
	}
}
