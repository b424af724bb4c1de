package threads

import (
	"testing"

	"trunkline/engine/threadstore"
)

// FuzzCursor: what parses is what appendCursor writes.
func FuzzCursor(f *testing.F) {
	f.Add([]byte("AAAAAZwGdRAAAAAAAAAAAAE"), false)
	f.Add(appendCursor(nil, threadstore.Cursor{At: 1, Number: 2}, false), false)
	f.Add(appendCursor(nil, threadstore.Cursor{Number: 2}, true), true)
	f.Fuzz(func(t *testing.T, text []byte, created bool) {
		c, ok := parseCursor(text, created)
		if ok && string(appendCursor(nil, c, created)) != string(text) {
			t.Errorf("%q is %+v, written %q", text, c, appendCursor(nil, c, created))
		}
	})
}
