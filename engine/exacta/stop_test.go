package exacta

import (
	"testing"

	"trunkline/engine/exacta/wire"
)

// TestStopBeginsNothing: what is parked when the server stops does not begin, and is answered.
func TestStopBeginsNothing(t *testing.T) {
	r := newRig()
	r.request(wire.Build, Args{})
	r.request(wire.Build, Args{})
	parked := r.request(wire.CloseProject, Args{})
	r.p.Stop()
	r.finish(0, nil, false)
	if len(r.works) > 0 || r.closed {
		t.Errorf("%d works began, closed: %v", len(r.works), r.closed)
	}
	if r.p.Leave(); len(r.late) != 2 || r.late[1] != parked || len(r.answers) != 3 {
		t.Errorf("%d answers, %d late", len(r.answers), len(r.late))
	}
}
