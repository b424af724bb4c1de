package stream

import (
	"testing"
	"time"

	"trunkline/engine/connection"
)

// look is what one look at a lingering connection finds, and whether it is the last.
type look struct {
	after time.Duration
	left  int
	told  bool
	heard bool
	over  bool
}

func TestDelivery(t *testing.T) {
	f := func(name string, l connection.Limits, looks ...look) {
		t.Helper()
		var p delivery
		const begin = 1000
		p.begin(&l, begin)
		for i, k := range looks {
			if k.heard {
				p.heard.Store(true)
			}
			if got := p.over(k.left, k.told, begin+int64(k.after)); got != k.over {
				t.Errorf("%s: look %d after %v says %v", name, i, k.after, got)
			}
		}
	}
	const s = time.Second
	ten := connection.Limits{SendWithin: int64(10 * s)}
	f("all delivered", ten, look{told: true, over: true})
	f("delivered later", ten, look{told: true, left: 1}, look{after: s, told: true, over: true})
	f("never delivered", ten, look{told: true, left: 9}, look{after: 10*s - 1, told: true, left: 9}, look{after: 10 * s, told: true, left: 9, over: true})
	f("not known", ten, look{}, look{after: 10*s - 1}, look{after: 10 * s, over: true})
	f("the timer is off", connection.Limits{}, look{told: true, left: 1}, look{after: time.Duration(connection.DefaultLingerWithin) - 1, told: true, left: 1},
		look{after: time.Duration(connection.DefaultLingerWithin), told: true, left: 1, over: true})
	f("the peer still sends", ten, look{told: true, heard: true}, look{after: lingerWithin - 1, told: true, heard: true}, look{after: lingerWithin, told: true, heard: true, over: true})
	f("the peer falls silent", ten, look{told: true, heard: true}, look{after: 1, told: true, over: true})
	f("slow is not stuck", ten, look{told: true, left: 9}, look{after: 9 * s, told: true, left: 8}, look{after: 18 * s, told: true, left: 8},
		look{after: 19*s - 1, told: true, left: 8}, look{after: 19 * s, told: true, left: 8, over: true})
}

// TestLingeringIsCheckedLessAndLess: soon at first, and never later than its time is up.
func TestLingeringIsCheckedLessAndLess(t *testing.T) {
	var p delivery
	p.begin(&connection.Limits{SendWithin: int64(time.Second)}, 0)
	var at []time.Duration
	for now := int64(0); !p.over(1, true, now); now = p.next {
		at = append(at, time.Duration(now).Round(time.Millisecond))
	}
	want := []time.Duration{0, 10, 30, 70, 150, 310, 630}
	for i := range want {
		if len(at) != len(want) || at[i] != want[i]*time.Millisecond {
			t.Fatalf("looked at after %v", at)
		}
	}
}

func TestGateCountsLingering(t *testing.T) {
	g := newGate(2, nil)
	f := func(want bool) {
		t.Helper()
		if got := g.BeginLinger(); got != want {
			t.Fatalf("BeginLinger with %d of %d: %v", g.Lingering(), g.Max(), got)
		}
	}
	f(true)
	f(true)
	f(false)
	if !g.admit() || g.Open() != 1 {
		t.Error("who parts holds a slot")
	}
	g.EndLinger()
	f(true)
}
