package threads

import (
	"strings"
	"testing"
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
	w, ref := r.Window(bob, id, 15)
	if ref.Code != OK || len(w.Messages) != 15 || w.Messages[0].Seq != 6 {
		t.Fatal(len(w.Messages), ref)
	}
	for i := range w.Messages {
		if m := &w.Messages[i]; len(m.Body)+len(m.Metadata) > 1000 || !strings.HasPrefix(string(m.Body), "long long") {
			t.Errorf("message %d has %d and %d bytes", m.Seq, len(m.Body), len(m.Metadata))
		}
	}
}
