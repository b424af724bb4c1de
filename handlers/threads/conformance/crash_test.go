package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// receipt is what a post was answered.
type receipt struct {
	id  string
	seq int
}

// writer posts messages with keys of its own until its connection ends, and remembers the answers.
type writer struct {
	name     string
	thread   string
	next     int
	pending  []string // keys without an answer
	receipts map[string]receipt
	err      error
}

// run posts on a connection until the server dies. Keys without an answer come first.
func (w *writer) run(p *peer) {
	send := func(key string) error {
		return p.send(`{"id":"%s","method":"post_message","params":{"thread_id":"%s","schema_version":1,"kind":"chat","body":"%s","idempotency_key":"%s"}}`, key, w.thread, key, key)
	}
	for _, key := range w.pending {
		if send(key) != nil {
			return
		}
	}
	for {
		for len(w.pending) < 16 {
			w.next++
			key := fmt.Sprint(w.name, "-", w.next)
			w.pending = append(w.pending, key)
			if send(key) != nil {
				return
			}
		}
		line, err := p.in.ReadString('\n')
		if err != nil {
			return
		}
		var v struct {
			ID     string
			OK     bool
			Result struct {
				MessageID string `json:"message_id"`
				Seq       int
			}
		}
		if json.Unmarshal([]byte(line), &v) != nil || !v.OK || v.ID != w.pending[0] {
			w.err = fmt.Errorf("%q, waiting for %s", line, w.pending[0])
			return
		}
		w.receipts[v.ID] = receipt{v.Result.MessageID, v.Result.Seq}
		w.pending = w.pending[1:]
	}
}

// TestCrashes kills the server again and again while writers post. In the end every acknowledged
// message is there once, as it was acknowledged, and numbers have no gap (threads §9).
func TestCrashes(t *testing.T) {
	s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=300000", "TRUNKLINE_THREADS_HOT_BYTES=1048576")
	threads := []string{s.create(), s.create()}
	var writers []*writer
	for i := range 6 {
		writers = append(writers, &writer{name: fmt.Sprint("w", i), thread: threads[i%len(threads)], receipts: map[string]receipt{}})
	}
	cursor := 0
	for round := range rounds.Of(2, 4) {
		var running sync.WaitGroup
		for _, w := range writers {
			p := s.dial(executioner) // before the kill
			running.Go(func() { w.run(p) })
		}
		time.Sleep(time.Duration(200+rand.IntN(400)) * time.Millisecond)
		if a := s.post("ack_read", reviewer, fmt.Sprintf(`{"thread_id":"%s","last_read_seq":%d}`, threads[0], cursor+round+1)); a.status == 200 {
			cursor += round + 1
		}
		s.kill()
		running.Wait()
		s.run()
	}
	acknowledged := 0
	for i, thread := range threads {
		got := map[string]receipt{}
		for since, more := 0, true; more; {
			a := s.post("read_messages", reviewer, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d,"limit":200}`, thread, since))
			for _, m := range a.body["messages"].([]any) {
				m := m.(map[string]any)
				key, seq := m["body"].(string), int(m["seq"].(float64))
				if since++; seq != since {
					t.Fatalf("message %d behind %d", seq, since-1)
				}
				if _, twice := got[key]; twice {
					t.Fatalf("%s is there twice", key)
				}
				got[key] = receipt{m["message_id"].(string), seq}
			}
			more = a.body["has_more"].(bool)
		}
		for _, w := range writers {
			if w.err != nil {
				t.Error(w.err)
			}
			if w.thread != thread {
				continue
			}
			for key, r := range w.receipts {
				if acknowledged++; got[key] != r {
					t.Errorf("%s was acknowledged as %v and is %v", key, r, got[key])
				}
			}
			key := w.pending[0]
			a := s.post("post_message", executioner, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"%s","idempotency_key":"%s"}`, thread, key, key))
			if r, known := got[key]; a.status != 200 || known != (a.header.Get("X-Idempotent-Replay") == "true") || known && a.body["message_id"] != r.id {
				t.Errorf("%s again: %d %s, it is %v", key, a.status, a.text, r)
			}
		}
		if i == 0 {
			if a := s.post("ack_read", reviewer, fmt.Sprintf(`{"thread_id":"%s","last_read_seq":%d}`, thread, max(cursor-1, 0))); cursor > 0 && a.status != 409 {
				t.Errorf("the cursor fell behind %d: %s", cursor, a.text)
			}
		}
	}
	t.Logf("%d messages were acknowledged", acknowledged)
	if strings.Contains(s.log.String(), "ERROR") {
		t.Error(s.log)
	}
	s.stop()
}

// TestCrashesOfRecovery kills the server while it starts, again and again: what it writes then
// loses nothing of what was there.
func TestCrashesOfRecovery(t *testing.T) {
	t.Parallel()
	const posts = 2000
	s := start(t, "TRUNKLINE_STORE_SNAPSHOT_BYTES=400000", "TRUNKLINE_THREADS_HOT_BYTES=1048576")
	id := s.create()
	w := &poster{thread: id, name: strings.Repeat("x", 150), answers: make([]receipt, posts)}
	if w.run(s.dial(executioner), 0); w.err != nil || w.next != posts {
		t.Fatal(w.next, w.err)
	}
	s.kill()
	for range rounds.Of(3, 12) {
		cmd := exec.Command(kit.Program(t, scratch), s.cmd.Args[1:]...)
		cmd.Dir, cmd.Env = s.cmd.Dir, s.cmd.Env
		if err := kit.Start(cmd); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	s.run()
	if w.run(s.dial(executioner), 0); w.err != nil {
		t.Error(w.err)
	}
	for since := 0; since < posts; {
		a := s.post("read_messages", reviewer, fmt.Sprintf(`{"thread_id":"%s","since_seq":%d,"limit":200}`, id, since))
		list, _ := a.body["messages"].([]any)
		if len(list) == 0 {
			t.Fatal(since, a.text)
		}
		for _, m := range list {
			m := m.(map[string]any)
			if want := w.answers[since]; m["message_id"] != want.id || int(m["seq"].(float64)) != want.seq {
				t.Fatalf("%v, want %v", m, want)
			}
			since++
		}
	}
	s.stop()
}

// TestTimersAfterKill: whenever the server is killed, each moment of a schedule is posted once at
// most and has one audit event, and a deferred message is posted once.
func TestTimersAfterKill(t *testing.T) {
	t.Parallel()
	s := start(t, "SUPERVISOR_MODE=off")
	id := s.create()
	s.post("create_schedule", reviewer, `{"thread_id":"`+id+`","every_ms":1000,"message":{"body":"tick"}}`)
	for i := range 4 {
		at := time.Now().Add(time.Duration(300+i*300) * time.Millisecond).UnixMilli()
		s.post("post_message", reviewer, fmt.Sprintf(`{"thread_id":"%s","schema_version":1,"kind":"chat","body":"later%d","idempotency_key":"k%d","deliver_at":%d}`, id, i, i, at))
		time.Sleep(time.Duration(400+i*350) * time.Millisecond)
		s.kill()
		s.run()
	}
	var page, log string
	kit.Until(t, "all messages", func() bool {
		page = s.post("read_messages", reviewer, `{"thread_id":"`+id+`","limit":200}`).text
		log = s.request("GET", "/v1/audit?limit=500&thread_id="+id, coordinator, "").text
		return strings.Contains(page, `"later3"`) && strings.Count(page, `"tick"`) > 2
	})
	ticks := map[string]bool{}
	for _, m := range strings.Split(page, `{"message_id"`)[1:] {
		if _, created, _ := strings.Cut(m, `"created_at":"`); strings.Contains(m, `"tick"`) {
			ticks[created[:19]] = true
		}
	}
	if n := strings.Count(page, `"tick"`); len(ticks) < n-1 { // one that was late may share its second with the next
		t.Errorf("%d messages in %d seconds: %s", n, len(ticks), page)
	}
	for i := range 4 {
		if n := strings.Count(page, fmt.Sprintf(`"later%d"`, i)); n != 1 {
			t.Errorf("later%d is posted %d times", i, n)
		}
	}
	if n, fired := strings.Count(page, `"message_id"`), strings.Count(log, `"timer.fire"`); fired < n || fired > n+1 { // the page is older
		t.Errorf("%d messages, %d events", n, fired)
	}
}
