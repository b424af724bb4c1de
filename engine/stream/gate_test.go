package stream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
)

// TestADrainEndsForAllTogether: the rest is over once every open connection rests, and not before;
// one that ends counts no more.
func TestADrainEndsForAllTogether(t *testing.T) {
	g := newGate(3, nil)
	for range 3 {
		g.admit()
	}
	var one, two connection.State
	if g.Rests(&one, true); g.Open() != 3 || g.admit() {
		t.Errorf("%d open, limit 3", g.Open())
	}
	g.Rests(&two, true)
	g.Rests(&two, false)
	g.Rests(&two, true)
	g.Release(true)
	if g.restIsOver() || g.Open() != 2 {
		t.Error("the rest is over while one connection is busy")
	}
	if g.Release(false); !g.restIsOver() || g.Open() != 1 {
		t.Error("the rest goes on when all that are left rest")
	}
	if g.Release(true); g.Open() != 0 || g.Wait(t.Context()) != nil {
		t.Errorf("%d open", g.Open())
	}
}

// TestTheRestEndsBeforeTheGrace: whatever delays a drain, the last quarter of its grace is for
// lingering.
func TestTheRestEndsBeforeTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := newGate(2, nil), time.Now()
		g.AwaitRest(t.Context(), int64(4*time.Second))
		if !g.restIsOver() || time.Since(began) != 0 {
			t.Errorf("nothing open: waited %s", time.Since(began))
		}
		g = newGate(2, nil)
		g.admit()
		g.AwaitRest(t.Context(), int64(4*time.Second))
		if !g.restIsOver() || time.Since(began) != 3*time.Second {
			t.Errorf("busy: waited %s of 4 s", time.Since(began))
		}
		g = newGate(2, nil)
		g.admit()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		g.AwaitRest(ended, int64(4*time.Second))
		if !g.restIsOver() || time.Since(began) != 3*time.Second {
			t.Error("the end of the context does not end it")
		}
	})
}
