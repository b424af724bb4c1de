//go:build !race

package fuzz

import (
	"encoding/binary"
	"testing"

	"trunkline/engine/connection"
)

// TestAnnouncedLengthTakesNothing: a length alone takes no memory, nor do the bytes behind it
// before they are all there (kernel-ipc §2.2, D9).
func TestAnnouncedLengthTakesNothing(t *testing.T) {
	set := defaultSettings()
	now := connection.Instant{Mono: 1e15, Wall: 1700000000000}
	svc := newService(set, func() connection.Instant { return now })
	defer svc.Runtime().Close()
	sess := svc.Open(connection.NewPort(1, "test"))
	defer sess.Closed()
	begun := binary.BigEndian.AppendUint32(nil, uint32(set.maxFrame))
	begun = append(begun, make([]byte, set.maxFrame-1)...)
	for _, n := range []int{1, 4, 5, 1000, len(begun)} {
		var used int
		var out []byte
		allocs := testing.AllocsPerRun(100, func() { used, out, _ = sess.Feed(begun[:n], nil, now) })
		if used != 0 || out != nil || allocs != 0 {
			t.Errorf("%d bytes of a frame: took %d, appended %d, allocates %v times", n, used, len(out), allocs)
		}
	}
}
