//go:build !race

package secret_test

import (
	"testing"

	"trunkline/engine/projects/secret"
)

// TestNoAllocs has texts without a credential: neither looking nor copying takes memory.
func TestNoAllocs(t *testing.T) {
	text := []byte("step 3 of 7: Modify README.md: append text; bearer token = x, authorization, sk-x, ghp_, eyJ, ://")
	out := make([]byte, 0, 2*len(text))
	if secret.Leaks(text) {
		t.Fatal("the text leaks")
	}
	if n := testing.AllocsPerRun(100, func() {
		secret.Find(text)
		out = secret.Redact(out[:0], text)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
