package toolhost

import (
	"bytes"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/engine/connection"
)

// checkProgram runs a program on a session: each line of it is one request, fed in pieces of the
// given length. Every line that is not empty gets one line of valid JSON until the end of the
// stream.
func checkProgram(t *testing.T, via Transport, program []byte, piece int) {
	r := newRig(t, func(c *Config) {
		c.EnforceLeases, c.MaxLineBytes, c.Events = EnforceTCP, 4096, nil
		c.APIToken, c.OperatorToken = "t", "o"
	})
	defer r.srv.Close()
	close(r.gate)
	p := r.open(via)
	defer p.close()
	want, ends := 0, false
	for line := range bytes.Lines(append(program, '\n')) {
		if line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); len(line) == 0 {
			ends = true
			break
		}
		want++
	}
	var replies strings.Builder
	for rest := append(program, '\n'); len(rest) > 0 && !p.closed; {
		n := min(piece, len(rest))
		p.in = append(p.in, rest[:n]...)
		rest = rest[n:]
		p.feed()
		for p.blocked {
			p.pump()
			p.feed()
		}
	}
	replies.Write(p.out)
	got := 0
	for line := range strings.Lines(replies.String()) {
		got++
		if !strings.HasPrefix(line, `{"ok":`) || !strings.HasSuffix(line, "}\n") || len(line) > maxReply || !jsonx.Check([]byte(line), maxDepth).OK() {
			t.Fatalf("%q answers %q", line, program)
		}
	}
	if got > want || got < want && !p.closed || ends && got == want && !p.closed {
		t.Fatalf("%d replies to %d lines (closed: %v): %q\n%s", got, want, p.closed, program, replies.String())
	}
	p.s.Drain(connection.Now())
	if st := r.srv.Stats(); !p.s.Load().Done || st.InFlight != 0 || r.srv.idem.InFlight() != 0 {
		t.Fatalf("left: %+v", st)
	}
}

func FuzzSession(f *testing.F) {
	for _, seed := range []string{
		`{"aid":"AID.NOOP.v1"}`, "{\"aid\":\"AID.NOOP.v1\"}\r\n\r\n{}", "nope\n[]\n{\"aid\":5}\n \n",
		`{"aid":"AID.SET.v1","inputs":{"a":1},"request_id":"r"}` + "\n" + `{"aid":"AID.SET.AWAY.v1","input_json":"{\"a\":1}","ds_state":{"slots":{"7":{"size_bytes":1e3}}}}`,
		`{"aid":"AID.COUNT.v1","idempotency_key":"k"}` + "\n" + `{"aid":"AID.COUNT.v1","idempotency_key":"k"}` + "\n" + `{"aid":"AID.COUNT.v1","idempotency_key":"k","inputs":{"b":2}}`,
		`{"aid":"_lease.issue","tool_aid":"*","tier":3,"_operator_token":"o"}` + "\n" + `{"aid":"AID.WRITE.v1","_lease_token":"lease_x"}` + "\n" + `{"aid":"_lease.gc","_operator_token":"o"}`,
		`{"aid":"_auth","token":"t"}` + "\n" + `{"aid":"AID.WRITE.v1"}` + "\n" + `{"aid":"_stats"}` + "\n" + `{"aid":"_tools.list"}`,
		`{"aid":"_run.open","goal_id":"goal.X","candidate_tags":["a"],"run_id":"r1"}` + "\n" + `{"aid":"_run.select"}` + "\n" + `{"aid":"AID.NOOP.v1","run_id":"r1"}` + "\n" + `{"aid":"_run.close"}`,
		strings.Repeat("x", 5000) + "\n" + `{"aid":"_health"}`, `{"aid":"AID.PANIC.v1"}` + "\n" + `{"aid":"AID.PANIC.AWAY.v1"}` + "\n" + `{"aid":"AID.EXT.v1"}`,
		`{"aid":"AID.NOOP.v1","request_id":"\ud800"}` + "\n" + `{"\u0061id":"AID.INPUT.v1","input_json":" {\"\u0000\":[]} "}`,
	} {
		for via := range TCP + 1 {
			f.Add(uint8(via), []byte(seed), uint8(len(seed)/3))
		}
	}
	f.Fuzz(func(t *testing.T, via uint8, program []byte, piece uint8) {
		checkProgram(t, Transport(via%3), program, int(piece)+1)
	})
}
