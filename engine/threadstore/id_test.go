package threadstore

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAppendTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 253402300799999).Draw(t, "ms")
		if got, want := string(AppendTime(nil, ms)), time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

// TestIDs: identifiers read back, and those of one thread are in its order.
func TestIDs(t *testing.T) {
	g := newIDs()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.Int64Range(0, 1<<48-1).Draw(t, "ms")
		prev := g.next(nil, ms)
		for range 20 {
			id := g.next(&prev, ms)
			text := appendID(nil, messagePrefix, &id)
			if back, ok := parseID(text, messagePrefix); !ok || back != id || bytes.Compare(prev[:], id[:]) >= 0 {
				t.Fatalf("%x after %x, %s", id, prev, text)
			}
			prev = id
		}
	})
	for _, text := range []string{"", "msg_", "th_01KHP2Q3W4X5Y6Z7A8B9C0D1E2", "msg_81KHP2Q3W4X5Y6Z7A8B9C0D1E2", "msg_01KHP2Q3W4X5Y6Z7A8B9C0D1EU", "msg_01KHP2Q3W4X5Y6Z7A8B9C0D1E", "msg_01khp2q3w4x5y6z7a8b9c0d1e2"} {
		if id, ok := parseID([]byte(text), messagePrefix); ok {
			t.Errorf("%q is %x", text, id)
		}
	}
}
