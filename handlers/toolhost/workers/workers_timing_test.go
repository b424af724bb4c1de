package workers

// Question: what does a worker that stays save over one process for each call? Run with -bench=Call
// and compare the two rows.

import (
	"context"
	"testing"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

func BenchmarkCall(b *testing.B) {
	f := func(name string, oneshot bool, behaviour ...string) {
		b.Run(name, func(b *testing.B) {
			r := newRig(b, func(c *ProcessConfig) {
				c.Oneshot = oneshot
				c.Pool.MaxRequests = 1 << 30
			}, behaviour...)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ctx, cancelTimeout := context.WithTimeout(ctx, 10*defaultTimeout)
			defer cancelTimeout()
			state := new(sessionstate.State)
			call := &tool.Call{AID: "AID.T.v1", Input: []byte(`{"x":1}`), State: state}
			b.ReportAllocs()
			for b.Loop() {
				if got := r.Run(ctx, call); got.Status() != tool.OK {
					b.Fatal(short(got))
				}
			}
		})
	}
	f("worker", false, "good")
	f("process", true, "oneshot", "echo")
}
