package stream

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The buffer is a queue of bytes, whatever the sizes of reads and of what the session takes.
func TestInbufIsAQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var i inbuf
		var model []byte
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"read": func(t *rapid.T) {
				s := i.space()
				n := rapid.OneOf(rapid.IntRange(0, len(s)), rapid.Just(len(s))).Draw(t, "n")
				for k := range n {
					s[k] = next
					model = append(model, next)
					next++
				}
				i.to += n
			},
			"take": func(t *rapid.T) {
				n := rapid.OneOf(rapid.IntRange(0, len(model)), rapid.Just(len(model))).Draw(t, "n")
				i.take(n)
				model = model[n:]
			},
			"": func(t *rapid.T) {
				if !bytes.Equal(i.unread(), model) {
					t.Fatalf("holds %d bytes, want %d", len(i.unread()), len(model))
				}
			},
		})
	})
}
