//go:build !race

package threads_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/lines"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
)

// trusting verifies every token as that of a coordinator.
type trusting struct{}

func (trusting) Generation() uint64 { return 0 }

func (t trusting) VerifyKnown(text string) (*token.Claims, error) { return t.Verify(text) }

func (trusting) Verify(text string) (*token.Claims, error) {
	return &token.Claims{Agent: text, Workspace: "w", Session: "sess_rv_12", ID: "j", Role: token.Coordinator, Expires: float64(time.Now().Add(time.Hour).Unix())}, nil
}

// owner passes wake-ups on.
type owner chan *connection.Port

func (o owner) Wake(p *connection.Port) { o <- p }

// hot is a session of lines over an engine that journals nothing.
type hot struct {
	t     testing.TB
	s     connection.Session
	port  *connection.Port
	wakes owner
	out   []byte
}

func newHot(t testing.TB) *hot {
	db, err := rows.Open(rows.Config{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	engine := threadstore.New(threadstore.Config{})
	st := store.New(store.Config{Machines: []store.Machine{engine.Machine()}})
	engine.Join(st)
	if err := engine.SetRows(threadstore.StoredRows(db)); err != nil {
		t.Fatal(err)
	}
	service := threads.New(threads.Config{Engine: engine, Await: st.Await, Busy: func(string) bool { return false }})
	gate := &connection.Gate{Journal: func() connection.Journal { return nil }}
	srv := lines.New(lines.Config{Dispatcher: service, Verifier: trusting{}, Follow: follow.New(follow.Config{Engine: engine, Verifier: trusting{}}), Peers: token.NewPeers(0), Gate: gate, Lookup: method.Lookup, NewRequestID: engine.AppendRequestID, Logger: slog.New(slog.DiscardHandler)})
	h := &hot{t: t, port: connection.NewPort(1, "x"), wakes: make(owner, 1), out: make([]byte, 0, 1<<20)}
	h.port.SetOwner(h.wakes)
	h.s = srv.Open(h.port)
	t.Cleanup(func() {
		h.s.Closed()
		_ = db.Close()
	})
	line := []byte(`{"id":1,"method":"auth","params":{"protocol":"threads/1","token":"reviewer"}}` + "\n")
	if _, _, v := h.s.Feed(line, nil, connection.Now()); v != connection.Blocked {
		t.Fatal(v)
	}
	select {
	case <-h.wakes:
	case <-t.(interface{ Context() context.Context }).Context().Done():
	}
	h.port.Rearm()
	h.s.Pump(nil, 0, connection.Now())
	if got := h.feed(string(line)); !strings.Contains(got, `"ok":true`) {
		t.Fatal(got)
	}
	return h
}

// feed gives the session whole lines and returns its answers.
func (h *hot) feed(text string) string {
	h.t.Helper()
	return string(h.bytes([]byte(text)))
}

func (h *hot) bytes(in []byte) []byte {
	used, out, v := h.s.Feed(in, h.out[:0], connection.Now())
	if used != len(in) || v != connection.More {
		h.t.Fatalf("%d of %d bytes, %v: %s", used, len(in), v, out)
	}
	h.out = out
	return out
}

// thread makes a thread and returns its identifier.
func (h *hot) thread() string {
	h.t.Helper()
	got := h.feed(`{"id":1,"method":"create_thread","params":{"workspace_id":"w","title":"t","type":"workflow","participants":["reviewer"]}}` + "\n")
	_, id, _ := strings.Cut(got, `"thread_id":"`)
	return id[:strings.IndexByte(id, '"')]
}

// hotLines are the requests of threads §10.
func hotLines(id string) map[string]string {
	return map[string]string{
		"post":      `{"id":7,"method":"post_message","params":{"thread_id":"` + id + `","schema_version":1,"kind":"chat","body":"hello"}}` + "\n",
		"poll":      `{"id":8,"method":"read_messages","params":{"thread_id":"` + id + `","since_seq":1000000,"limit":50}}` + "\n",
		"heartbeat": `{"id":9,"method":"heartbeat_session","params":{"session_id":"sess_rv_12","runtime":"codex_cli","resumable":true,"status":"idle"}}` + "\n",
		"ack":       `{"id":10,"method":"ack_read","params":{"thread_id":"` + id + `","last_read_seq":1}}` + "\n",
	}
}

// TestHotLinesDoNotAllocate: from the bytes of a line to the bytes of its answer, the four hot
// methods allocate nothing beyond the memory of the messages.
func TestHotLinesDoNotAllocate(t *testing.T) {
	h := newHot(t)
	requests := hotLines(h.thread())
	h.feed(requests["post"]) // so that there is something to acknowledge
	for name, line := range requests {
		in := []byte(line)
		if got := h.feed(line); !strings.Contains(got, `"ok":true`) {
			t.Errorf("%s: %s", name, got)
		}
		if n := testing.AllocsPerRun(2000, func() { h.bytes(in) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	id := h.thread()
	var keyed [3000][]byte
	for i := range keyed {
		keyed[i] = fmt.Appendf(nil, `{"id":7,"method":"post_message","params":{"thread_id":"%s","schema_version":1,"kind":"chat","body":"hello","metadata":{"a":[1,"x"]},"idempotency_key":"k-%d"}}`+"\n", id, i)
	}
	i := 0
	for range 500 { // the index of the keys grows
		h.bytes(keyed[i])
		i++
	}
	if n := testing.AllocsPerRun(2000, func() { h.bytes(keyed[i]); i++ }); n != 0 {
		t.Errorf("post with a key: %v allocations", n)
	}
	if got := string(h.bytes(keyed[i-1])); !strings.Contains(got, `"seq":2501,`) {
		t.Errorf("a repetition: %s", got)
	}
}

func BenchmarkHotLines(b *testing.B) {
	h := newHot(b)
	requests := hotLines(h.thread())
	h.feed(requests["post"])
	for name, line := range requests {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			in := []byte(line)
			for b.Loop() {
				h.bytes(in)
			}
		})
	}
	b.Run("post with a key", func(b *testing.B) {
		b.ReportAllocs()
		in := []byte(`{"id":7,"method":"post_message","params":{"thread_id":"` + h.thread() + `","schema_version":1,"kind":"chat","body":"hello","idempotency_key":"k-1000000000"}}` + "\n")
		digits := in[len(in)-len(`1000000000"}}`+"\n"):][:10]
		n := int64(1e9)
		for b.Loop() {
			n++
			strconv.AppendInt(digits[:0], n, 10)
			h.bytes(in)
		}
	})
}
