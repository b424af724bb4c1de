package toolhost

import (
	"strings"
	"testing"
	"time"

	"trunkline/engine/connection"
)

// TestTwoReadingsForARow: the calls of one tool on the loop that follow one another cost two
// readings of the clock, and are charged for the time between them and for nothing else. The clock
// goes a millisecond on with each reading.
func TestTwoReadingsForARow(t *testing.T) {
	reads := int64(0)
	r := newRig(t, func(c *Config) {
		c.Events = nil
		c.Now = func() connection.Instant {
			reads++
			return connection.Instant{Mono: int64(time.Hour) + reads*int64(time.Millisecond)}
		}
	})
	const call, other = `{"aid":"AID.COUNT.v1"}` + "\n", `{"aid":"AID.NOOP.v1"}` + "\n"
	const none, op = `{"aid":"AID.NONE.v1"}` + "\n", `{"aid":"_tools.list"}` + "\n"
	calls, rows := int64(0), time.Duration(0)
	f := func(in string, wantReads, wantRows int64) {
		t.Helper()
		s := r.srv.OpenSocket(connection.NewPort(1, "127.0.0.1:1"))
		defer s.Closed()
		before := reads
		used, _, v := s.Feed([]byte(in), nil, connection.Instant{})
		if used != len(in) || v != connection.More || reads-before != 1+wantReads {
			t.Errorf("%q: %d used, verdict %d, %d readings, want %d", in, used, v, reads-before-1, wantReads)
		}
		calls, rows = calls+int64(strings.Count(in, call)), rows+time.Duration(wantRows)
		for _, st := range r.srv.Stats().Tools {
			if st.AID == "AID.COUNT.v1" && (st.OK != calls || st.Duration != rows*time.Millisecond) {
				t.Errorf("%q: %d calls in %d rows: %d took %v", in, calls, rows, st.OK, st.Duration)
			}
		}
	}
	f(call, 2, 1)
	f(call+call+call, 2, 1)
	f(call+none+call+op+call, 2, 1)
	f(call+other+call+call, 6, 2)
	f(none+op, 0, 0)
}

// TestNothingIsHeldBetweenTurns: what a call needs belongs to the session only while it is fed.
func TestNothingIsHeldBetweenTurns(t *testing.T) {
	r := newRig(t, nil)
	s := r.srv.OpenSocket(connection.NewPort(1, "127.0.0.1:1")).(*session)
	defer s.Closed()
	for _, in := range []string{`{"aid":"AID.COUNT.v1"}` + "\n", "no JSON\n", "half a line", "\n\n"} {
		if s.Feed([]byte(in), nil, connection.Instant{}); s.spare != nil {
			t.Errorf("after %q it has a call", in)
		}
	}
}
