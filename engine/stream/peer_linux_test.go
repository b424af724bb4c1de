package stream

import "testing"

func TestUIDAllowed(t *testing.T) {
	f := func(peer, own uint32, want bool) {
		t.Helper()
		if got := uidAllowed(peer, own); got != want {
			t.Errorf("uid %d at a server of %d: %v", peer, own, got)
		}
	}
	f(1000, 1000, true)
	f(0, 1000, true)
	f(1001, 1000, false)
	f(1001, 0, false)
}
