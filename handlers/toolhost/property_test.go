package toolhost

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawLine makes one request line with an identifier to know its reply by.
func drawLine(t *rapid.T, id int) string {
	aids := []string{"AID.NOOP.v1", "AID.AWAY.v1", "AID.SET.v1", "AID.SET.AWAY.v1", "AID.FAIL.v1", "AID.INPUT.v1", "AID.PANIC.AWAY.v1", "AID.NOPE.v1", "_health",
		"_lease.gc", "_run.open", "_run.select", "_run.close", "AID.WRITE.v1"}
	line := fmt.Sprintf(`{"request_id":%d,"aid":"%s"`, id, rapid.SampledFrom(aids).Draw(t, "aid"))
	for _, m := range []string{`,"inputs":{"é":[1, 2]}`, `,"input_json":"{\"a\":\"\\u00e9\"}"`, `,"ds_state":{"slots":{"1":{"content_json":"日本"}}}`,
		`,"ds_state":{"delta":true,"removed_slots":[6]}`, `,"idempotency_key":"k"`, `,"goal_id":"g"`, `,"run_id":"r"`, `,"inputs":[]`, `,"x":"\u2028"`} {
		if rapid.IntRange(0, 5).Draw(t, "with") == 0 {
			line += m
		}
	}
	return line + "}" + rapid.SampledFrom([]string{"", "\r", " ", "\t\r"}).Draw(t, "end")
}

// cut gives stream to the session in pieces and returns all replies.
func (p *peer) cut(t *rapid.T, stream string) string {
	var replies strings.Builder
	for len(stream) > 0 && !p.closed {
		n := rapid.IntRange(1, len(stream)).Draw(t, "piece")
		p.in = append(p.in, stream[:n]...)
		stream = stream[n:]
		if p.feed(); rapid.Bool().Draw(t, "wait") {
			if got := p.end(); got != "" {
				replies.WriteString(got + "\n")
			}
		}
	}
	if got := p.end(); got != "" {
		replies.WriteString(got + "\n")
	}
	return replies.String()
}

// However the stream is cut, the replies are the same, in the order of the requests, one line for
// each (toolhost §2.2).
func TestAnySplit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "lines")
		var stream strings.Builder
		for id := range n {
			stream.WriteString(drawLine(rt, id) + "\n")
		}
		run := func(cut bool) (string, string) {
			r := newRig(t, func(c *Config) { c.EnforceLeases, c.Events = EnforceOn, nil })
			defer r.srv.Close()
			p := r.open(Unix)
			defer p.close()
			if cut {
				return p.cut(rt, stream.String()), p.state()
			}
			p.in = []byte(stream.String())
			p.feed()
			return p.end() + "\n", p.state()
		}
		whole, state := run(false)
		pieces, same := run(true)
		runs := tokenless(whole)
		if runs != tokenless(pieces) || state != same {
			rt.Fatalf("%s\nin pieces %s\n    whole %s", stream.String(), pieces, whole)
		}
		lines := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
		if len(lines) != n {
			rt.Fatalf("%d replies to %d lines", len(lines), n)
		}
		for id, line := range lines {
			var reply struct {
				OK *bool `json:"ok"`
				ID *int  `json:"request_id"`
			}
			if err := json.Unmarshal([]byte(line), &reply); err != nil || reply.OK == nil || reply.ID == nil || *reply.ID != id {
				rt.Fatalf("reply %d: %s", id, line)
			}
		}
	})
}

// tokenless takes out what differs from run to run.
func tokenless(replies string) string { return runText.ReplaceAllString(replies, `"run_id":"R"`) }
