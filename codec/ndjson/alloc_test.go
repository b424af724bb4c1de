//go:build !race

package ndjson

import "testing"

func TestNoAllocs(t *testing.T) {
	in, long := []byte("{\"aid\":\"AID.NOOP.v1\"}\r\nrest"), make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		_, used, _, _ := Split(in, 0, 64)
		_, _, _, scanned := Split(in[used:], 0, 64)
		Split(in[used:], scanned, 64)
		Split(long, 0, 64)
		Skip(long)
		Last(in[used:], 64)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
