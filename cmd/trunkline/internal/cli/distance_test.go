package cli

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	f := func(a, b string, want int) {
		t.Helper()
		if got := Distance(a, b); got != want {
			t.Errorf("Distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	}
	f("", "", 0)
	f("a", "", 1)
	f("", "ab", 2)
	f("GetProces", "GetProcess", 1)
	f("kitten", "sitting", 3)
	f("ab", "ba", 2)
	f(strings.Repeat("x", maxCompared), strings.Repeat("x", maxCompared), 0)
	f(strings.Repeat("x", maxCompared+1), strings.Repeat("x", maxCompared), 0)
}
