package peer

import "testing"

func TestFrames(t *testing.T) {
	f := func(b []byte, count, used int, ok bool) {
		t.Helper()
		c, u, o := Frames(b)
		if c != count || u != used || o != ok {
			t.Errorf("Frames(% x) = %d, %d, %v, want %d, %d, %v", b, c, u, o, count, used, ok)
		}
	}
	one := []byte{0, 0, 0, 2, 1, 0x80}
	f(nil, 0, 0, true)
	f(one[:3], 0, 0, true)
	f(one[:5], 0, 0, true)
	f(one, 1, 6, true)
	f(append(append([]byte(nil), one...), one...), 2, 12, true)
	f(append(append([]byte(nil), one...), one[:5]...), 1, 6, true)
	f([]byte{0, 0, 0, 0}, 0, 0, false)
	f([]byte{0, 0x50, 0, 0}, 0, 0, true)
	f([]byte{0, 0x50, 0, 1}, 0, 0, false)
}

func TestReplies(t *testing.T) {
	r := NewReplies(174)
	for _, n := range []int{1, 64, 4096} {
		b, taken := r.Take(n)
		if count, used, ok := Frames(b); count != taken || used != len(b) || !ok || taken != n {
			t.Errorf("Take(%d): %d taken, %d frames in %d of %d bytes", n, taken, count, used, len(b))
		}
	}
	if _, taken := r.Take(1 << 20); taken < 4096 || taken > 1<<20/174+1 {
		t.Errorf("a huge take gives %d replies", taken)
	}
}
