package threadstore

import (
	"strings"
	"testing"
	"time"
)

// TestWindowOfLongMessages: what a summary looks at does not grow with the length of messages, in
// memory or in rows.
func TestWindowOfLongMessages(t *testing.T) {
	r := newRig(t, Config{HotBytes: 1})
	id := r.create()
	long := &Post{Body: []byte(strings.Repeat("long ", 200_000)), Metadata: []byte(`{"x":"` + strings.Repeat("x", 200_000) + `"}`)}
	for i := range 20 {
		if _, ref := r.Post(alice, id, long, r.now); ref.Code != OK {
			t.Fatal(ref)
		}
		if r.sync(); i == 10 {
			r.store()
		}
	}
	w, ref := r.window(bob, id, 15)
	if ref.Code != OK || len(w.messages) != 15 || w.messages[0].Seq != 6 {
		t.Fatal(len(w.messages), ref)
	}
	for i := range w.messages {
		if m := &w.messages[i]; len(m.Body)+len(m.Metadata) > 1000 || !strings.HasPrefix(string(m.Body), "long long") {
			t.Errorf("message %d has %d and %d bytes", m.Seq, len(m.Body), len(m.Metadata))
		}
	}
}

// TestWindowsAtATime: a summary waits while as many as may be are in memory.
func TestWindowsAtATime(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.post(alice, id, "hello", "k")
	r.sync()
	for range maxWindows - 1 {
		r.windows <- struct{}{}
	}
	if s, ref := r.Summarize(bob, id, 15); ref.Code != OK || s.Status != Active || s.Text == "" {
		t.Fatal(s, ref)
	}
	r.windows <- struct{}{}
	done := make(chan Refusal)
	go func() {
		_, ref := r.Summarize(bob, id, 15)
		done <- ref
	}()
	select {
	case <-done:
		t.Error("one more than may be")
	case <-time.After(20 * time.Millisecond):
	}
	<-r.windows
	if ref := <-done; ref.Code != OK {
		t.Error(ref)
	}
}
