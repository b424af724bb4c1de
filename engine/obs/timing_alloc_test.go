//go:build !race

package obs

import "testing"

func TestRecordingAllocatesNothing(t *testing.T) {
	m := NewRecorder(1e9, 4).Meter("ipc", []string{"a", "b", "c"})
	var p Pending
	from := Peer(peer("1"))
	if n := testing.AllocsPerRun(100, func() {
		for i := range 9 {
			p.Add(i%3, 1, 1, 0)
		}
		p.Record(m, 2e6, from)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
