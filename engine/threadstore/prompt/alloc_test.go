//go:build !race

package prompt

import "testing"

// TestSanitizeDoesNotAllocate: with room in dst.
func TestSanitizeDoesNotAllocate(t *testing.T) {
	text, dst := []byte("a\r\n [BRIDGE_TRIGGER\x1b é\x9b\n"), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		dst = Sanitize(dst[:0], text)
		dst = AppendEnvelope(dst, "trg_1", "th_1", "a b", text)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
