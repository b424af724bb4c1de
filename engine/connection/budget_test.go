package connection

import "testing"

// TestBudget: a connection has OwnInput bytes for nothing, what is beyond is charged, and the
// budget is full at its limit, not before.
func TestBudget(t *testing.T) {
	b := NewBudget(100)
	var one, two Charge
	f := func(c *Charge, size int, want bool, used int64) {
		t.Helper()
		if got := b.Fit(c, size); got != want || b.Used() != used {
			t.Errorf("%d bytes fit: %v with %d used, want %v with %d", size, got, b.Used(), want, used)
		}
	}
	f(&one, OwnInput, true, 0)
	f(&one, OwnInput+60, true, 60)
	f(&two, OwnInput+41, false, 60)
	f(&two, OwnInput, true, 60)
	f(&two, OwnInput+40, true, 100)
	f(&two, OwnInput+40, true, 100)
	f(&one, OwnInput+61, false, 100)
	f(&one, OwnInput+59, true, 99)
	f(&two, OwnInput+41, true, 100)
	f(&two, 0, true, 59)
	f(&one, 1, true, 0)
	if b.CountRefused(); b.Refused() != 1 {
		t.Errorf("%d refused, want 1", b.Refused())
	}
	if none := (*Budget)(nil); !none.Fit(&one, 1<<40) {
		t.Error("no budget bounds something")
	}
	if n := testing.AllocsPerRun(100, func() { b.Fit(&one, 2*OwnInput); b.Fit(&one, 0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
