package token

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var peersNoon = time.Date(2026, 2, 17, 12, 0, 0, 0, time.UTC)

// TestPeersAgainstAModel compares the counts with lists of all failures of a peer.
func TestPeersAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPeers(0)
		type window struct {
			from time.Duration
			n    int
		}
		model := map[byte]window{}
		now := time.Duration(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond
			who := rapid.ByteRange(1, 3).Draw(t, "peer")
			w, seen := model[who]
			if !seen || now-w.from >= failureWindow {
				w = window{from: now}
			}
			w.n++
			model[who] = w
			want := time.Duration(0)
			if w.n > DefaultFailures {
				want = w.from + failureWindow - now
			}
			if got := p.Add(fmt.Sprintf("127.0.0.%d:80", who), peersNoon.Add(now)); got != want {
				t.Fatalf("peer %d at %v: %v, want %v", who, now, got, want)
			}
		}
	})
}

// TestFullPeersRefuse fills the table: further peers share one count, until room comes back.
func TestFullPeersRefuse(t *testing.T) {
	p := NewPeers(0)
	addr := func(i int) string { return fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255) }
	for i := range maxPeers {
		if p.Add(addr(i), peersNoon) != 0 {
			t.Fatal("the first failure was refused")
		}
	}
	refusals := 0
	for i := range 2 * DefaultFailures {
		if p.Add(addr(maxPeers+i), peersNoon) > 0 {
			refusals++
		}
	}
	if refusals != DefaultFailures || len(p.table) != maxPeers {
		t.Errorf("%d of %d peers without room were refused, %d in the table", refusals, 2*DefaultFailures, len(p.table))
	}
	if p.Add(addr(maxPeers), peersNoon.Add(failureWindow)) != 0 || len(p.table) != 1 {
		t.Errorf("%d in the table after the window", len(p.table))
	}
}

func TestAddresses(t *testing.T) {
	f := func(remote, want string) {
		t.Helper()
		if got := addrOf(remote).String(); got != want {
			t.Errorf("%q: %s, want %s", remote, got, want)
		}
	}
	f("127.0.0.1:80", "127.0.0.1")
	f("[::ffff:127.0.0.1]:80", "127.0.0.1")
	f("[fe80::1%eth0]:80", "fe80::1")
	f("@", "invalid IP")
	f("", "invalid IP")
}
