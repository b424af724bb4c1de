package placement_test

import (
	"testing"
	"time"

	"trunkline/engine/cluster/placement"
)

func TestTimings(t *testing.T) {
	f := func(ok bool, change func(*placement.Timing)) {
		t.Helper()
		timing := placement.DefaultTiming()
		change(&timing)
		if err := timing.Check(); (err == nil) != ok {
			t.Errorf("%+v: %v", timing, err)
		}
	}
	f(true, func(*placement.Timing) {})
	f(true, func(x *placement.Timing) {
		*x = placement.Timing{placement.MinLease, 2 * time.Millisecond, 49 * time.Millisecond, 1}
	})
	f(false, func(x *placement.Timing) { x.Lease = placement.MinLease - 1 })
	f(true, func(x *placement.Timing) { x.Lease, x.Margin = placement.MaxLease, 2*time.Second })
	f(false, func(x *placement.Timing) { x.Lease, x.Margin = placement.MaxLease+1, 2*time.Second })
	f(true, func(x *placement.Timing) { x.Margin = 19_801_981 })
	f(false, func(x *placement.Timing) { x.Margin = 19_801_980 })
	f(true, func(x *placement.Timing) { x.Renew = 475 * time.Millisecond })
	f(false, func(x *placement.Timing) { x.Renew = 475*time.Millisecond + 1 })
	f(true, func(x *placement.Timing) { x.Renew = 1 })
	f(false, func(x *placement.Timing) { x.Renew = 0 })
	f(false, func(x *placement.Timing) { x.Stagger = 0 })
	f(true, func(x *placement.Timing) { x.Stagger = placement.TakeoverAllowance/3 - 1 })
	f(false, func(x *placement.Timing) { x.Stagger = placement.TakeoverAllowance/3 + 1 })
}
