package conformance

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/codec/transcode"
	"trunkline/fuzz/kit/ipctest"
)

// asker makes one request after the other with the longest id there may be, so that replies have
// the least room.
type asker struct {
	t    *testing.T
	conn *wireConn
	id   string
}

func newAsker(t *testing.T, opts ...ipctest.Option) *asker {
	t.Helper()
	conn, err := dial(ipctest.Start(t, opts...).Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.close)
	conn.start()
	return &asker{t: t, conn: conn, id: strings.Repeat("i", 1024)}
}

// ask returns the code and message of a refusal, or nothing, and the size of the frame.
func (a *asker) ask(target, body string) (refusal string, size int) {
	a.t.Helper()
	service, method, _ := strings.Cut(target, ".")
	payload, err := transcode.EncodeJSON([]byte(fmt.Sprintf(`{"id":%q,"service":%q,"method":%q,"body":%s}`, a.id, service, method, body)))
	if err != nil {
		a.t.Fatal(err)
	}
	if err := whole(a.conn.nc, appendFrame(nil, 0x01, payload)); err != nil {
		a.t.Fatal(err)
	}
	f, why := a.conn.next("", false, patience)
	if why != "" || f.flaw != "" {
		a.t.Fatalf("%s: %s%s", target, why, f.flaw)
	}
	said := parseTwin(f.twin).get("error")
	return strings.TrimSpace(said.get("code").text() + " " + said.get("message").text()), len(f.raw) - 4
}

// largest returns the most bytes that call takes, having checked that one more is refused as the
// contract has it.
func (a *asker) largest(bound int, call func(n int) string) int {
	a.t.Helper()
	low, high := 0, bound // low is taken, high is not
	for high-low > 1 {
		n := (low + high) / 2
		switch refusal := call(n); refusal {
		case "":
			low = n
		case "RESOURCE_EXHAUSTED Envelope too large":
			high = n
		default:
			a.t.Fatalf("%d bytes: %s", n, refusal)
		}
	}
	return low
}

// TestSizeRuleAtItsEdge: the largest envelope that is taken comes back in a frame, with the longest
// ids; one byte more is refused before any effect (envelope §4.5, D40).
func TestSizeRuleAtItsEdge(t *testing.T) {
	const frame = 16384
	a := newAsker(t, ipctest.With(func(c *ipctest.Config) { c.MaxFrameBytes = frame }))
	f := func(name string, body func(n int) string) {
		t.Helper()
		most, largest := 0, 0
		most = a.largest(frame-2500, func(n int) string {
			refusal, size := a.ask(name, body(n))
			if size > frame {
				t.Errorf("%s with %d bytes: a frame of %d", name, n, size)
			}
			if refusal == "" {
				largest = max(largest, size)
			}
			return refusal
		})
		if most < frame/2 || largest > frame { // what is kept free is small beside a real frame
			t.Errorf("%s takes %d bytes and answers with up to %d of %d", name, most, largest, frame)
		}
	}
	pid, pad := strings.Repeat("p", 1024), func(n int) string { return strings.Repeat("x", n) }
	const config = `"pipeline_config":{"name":"n","agents":[{"name":"s","default_next":"s"}],"max_iterations":1000,"max_agent_hops":1000}`
	f("engine.CreateEnvelope", func(n int) string { return fmt.Sprintf(`{"raw_input":%q}`, pad(n)) })
	f("engine.CloneEnvelope", func(n int) string { return fmt.Sprintf(`{"envelope":{"envelope_id":"e","x":%q}}`, pad(n)) })
	f("engine.CloneEnvelope", func(n int) string {
		return fmt.Sprintf(`{"envelope":{"identity":{"envelope_id":"e"},"pipeline":{},"bounds":{},"x":%q}}`, pad(n))
	})
	f("orchestration.InitializeSession", func(n int) string {
		return fmt.Sprintf(`{"process_id":%q,"force":true,%s,"envelope":{"envelope_id":"e","x":%q}}`, pid, config, pad(n))
	})
	f("orchestration.InitializeSession", func(n int) string {
		return fmt.Sprintf(`{"process_id":%q,"force":true,%s,"envelope":{"envelope_id":"e","interrupt_pending":true,"interrupt":{"question":%q}}}`,
			"waits", config, pad(n/2))
	})
	if refusal, _ := a.ask("orchestration.InitializeSession", fmt.Sprintf(`{"process_id":%q,"force":true,%s,"envelope":{"envelope_id":"e"}}`, pid, config)); refusal != "" {
		t.Fatal(refusal)
	}
	f("orchestration.ReportAgentResult", func(n int) string {
		return fmt.Sprintf(`{"process_id":%q,"agent_name":"s","output":{"x":%q}}`, pid, pad(n))
	})
	for _, look := range []string{"orchestration.GetNextInstruction", "orchestration.GetSessionState"} {
		if refusal, size := a.ask(look, fmt.Sprintf(`{"process_id":%q}`, pid)); refusal != "" || size > frame {
			t.Errorf("%s at the edge: %q, %d bytes", look, refusal, size)
		}
	}
}
