package exacta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"trunkline/fuzz/rounds"
)

// heard is a line that a client got.
type heard struct {
	Type, Event string
	Request     string `json:"request_id"`
	Stream      uint64 `json:"stream_seq"`
	OK          bool
	Result      struct {
		PlanID      string `json:"plan_id"`
		ExecutionID string `json:"execution_id"`
		Intent      struct{ ID string }
	}
	Payload struct{ From, To string }
}

// client notes what it got.
type client struct {
	*peer
	sent    map[string]string // commands that are not answered, by id
	streams uint64            // stream_seq of the last event
	state   string
}

// TestRandomConversations: two clients send random requests at once. Each is answered once, behind
// its events, and all events of the project arrive once and in order (exacta §2.4).
func TestRandomConversations(t *testing.T) {
	for seed := range uint64(rounds.Pick(4, rounds.Of(4, 15))) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { talkAtRandom(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func talkAtRandom(t *testing.T, r *rand.Rand) {
	fakeBuild(t)
	s, dir := newServer(t), newRoot(t)
	ids := []string{pid}
	clients := []*client{{peer: newPeer(t, s, 1), sent: map[string]string{}}, {peer: newPeer(t, s, 2), sent: map[string]string{}}}
	n := 0
	for i, c := range clients {
		c.room = 1 + r.IntN(2000)
		n++
		c.ask(n, "OpenProject", `"path":"`+dir+`"`)
		for len(c.sent) > 0 {
			c.listen(&ids)
		}
		if i == 0 && c.state != "" {
			t.Fatal("a transition by an open")
		}
	}
	for range 60 {
		c := clients[r.IntN(2)]
		handle := ids[max(0, len(ids)-1-r.IntN(min(len(ids), 4)))]
		n++
		limit := ""
		if r.IntN(4) == 0 {
			limit = fmt.Sprintf(`,"timeout_ms":%d`, 1+r.IntN(30))
		}
		switch r.IntN(16) {
		case 0:
			build := [...]string{"", "; build", "; build; create file x/y.txt"}[r.IntN(3)]
			c.ask(n, "ExtractIntent", fmt.Sprintf(`"user_input":"append \"%d\" to a.txt; create file n%d.txt%s"`, n, r.IntN(4), build)+limit)
		case 1, 2:
			c.ask(n, "GeneratePlan", `"intent_id":"`+handle+`"`+limit)
		case 3, 4:
			c.ask(n, "ApprovePlan", `"plan_id":"`+handle+`"`)
		case 5, 6:
			c.ask(n, "ExecutePlan", `"plan_id":"`+handle+`"`)
		case 7:
			c.ask(n, "Pause", `"execution_id":"`+handle+`"`+limit)
		case 8:
			c.ask(n, "Resume", `"execution_id":"`+handle+`"`)
		case 9:
			c.ask(n, "Cancel", `"execution_id":"`+handle+`"`)
		case 10:
			c.ask(n, "ApplyDiffSet", emptySet)
		case 11:
			c.ask(n, "RejectPlan", `"plan_id":"`+handle+`"`)
		case 12:
			c.ask(n, "Build", strings.TrimPrefix(limit, ","))
		case 13: // perhaps of a build
			c.ask(n, "Cancel", fmt.Sprintf(`"execution_id":"00000000-0000-4000-8000-0000000001%02x"`, n-1))
		case 14:
			c.ask(n, "ExportDiagnostics", fmt.Sprintf(`"output_path":"%d.zip","include_debug":true`, r.IntN(8)))
		case 15:
			c.ask(n, "Preview", "")
		}
		for r.IntN(3) > 0 && len(c.sent) > 0 {
			c.listen(&ids)
		}
	}
	for _, c := range clients {
		for len(c.sent) > 0 {
			c.listen(&ids)
		}
	}
	p := s.project(parsed(pid))
	for _, c := range clients {
		for c.streams < p.journal.Last() || p.journal.Status().State.Runs() {
			c.listen(&ids)
		}
		if got := p.journal.Status().State.String(); c.state != "" && c.state != got {
			t.Errorf("the events lead to %s, the state is %s", c.state, got)
		}
	}
	if tree := whole(t, dir); strings.Contains(tree, ".tmp.") {
		t.Errorf("a temporary file stays:\n%s", tree)
	}
}

func (c *client) ask(n int, command, payload string) {
	if n >= 256 {
		c.t.Fatal("too many requests")
	}
	c.sent[fmt.Sprintf("00000000-0000-4000-8000-0000000001%02x", n)] = command
	c.peer.send(ask(n, command, payload))
}

// listen takes what has come, after a wake if that is nothing.
func (c *client) listen(ids *[]string) {
	c.t.Helper()
	if bytes.IndexByte(c.rest, '\n') < 0 {
		c.pump()
	}
	for {
		line, rest, ok := bytes.Cut(c.rest, []byte("\n"))
		if !ok {
			return
		}
		c.rest = rest
		var h heard
		if err := json.Unmarshal(line, &h); err != nil {
			c.t.Fatalf("%v: %s", err, line)
		}
		if h.Type == "event" {
			c.event(&h, line)
			continue
		}
		if _, waits := c.sent[h.Request]; !waits {
			c.t.Fatalf("a second answer: %s", line)
		}
		delete(c.sent, h.Request)
		for _, id := range []string{h.Result.Intent.ID, h.Result.PlanID, h.Result.ExecutionID} {
			if id != "" && h.OK {
				*ids = append(*ids, id)
			}
		}
	}
}

// event checks the order of an event.
func (c *client) event(h *heard, line []byte) {
	if c.streams != 0 && h.Stream != c.streams+1 {
		c.t.Fatalf("behind %d: %s", c.streams, line)
	}
	c.streams = h.Stream
	if h.Event != "StateChanged" {
		return
	}
	if c.state != "" && h.Payload.From != c.state {
		c.t.Fatalf("in %s: %s", c.state, line)
	}
	c.state = h.Payload.To
}
