package exchange

import (
	"testing"
)

func TestSameKey(t *testing.T) {
	f := func(key, name string, want bool) {
		t.Helper()
		if got := sameKey([]byte(key), name); got != want {
			t.Errorf("sameKey(%s, %s) = %v", key, name, got)
		}
	}
	f("code", "code", true)
	f("Code", "code", false)
	f("cod", "code", false)
	f(`\u0063\u006f\u0064\u0065`, "code", true)
	f(`\u0063\u006F\u0064\u0065x`, "code", false)
	f(`cod\"`, "code", false)
}
