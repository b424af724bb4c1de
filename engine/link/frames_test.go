package link

import "testing"

// tagged reads frames whose first byte is their length; 255 stands for a frame that does not tell.
func tagged(b []byte) int {
	if len(b) == 0 || b[0] == 255 {
		return 0
	}
	return int(b[0])
}

func TestCut(t *testing.T) {
	f := func(l Limits, b []byte, sent, want int) {
		t.Helper()
		if got := l.Cut(b, sent); got != want {
			t.Errorf("%d of %v sent: %d bytes of the cut frame left, want %d", sent, b, got, want)
		}
	}
	frames := Limits{FrameLen: tagged}
	b := []byte{3, 0, 0, 1, 4, 0, 0, 0}
	for sent, want := range []int{0, 2, 1, 0, 0, 3, 2, 1, 0} {
		f(frames, b, sent, want)
	}
	f(frames, nil, 0, 0)
	f(frames, []byte{2, 0, 255, 0, 0}, 3, 2) // untold: the rest is one frame
	f(frames, []byte{2, 0, 9, 0, 0}, 3, 2)   // a length beyond the output
	f(Limits{}, b, 1, 7)
	f(Limits{}, b, 0, 0)
	f(Limits{}, b, 8, 0)
}

func TestFront(t *testing.T) {
	f := func(l Limits, b []byte, want int) {
		t.Helper()
		if got := l.Front(b); got != want {
			t.Errorf("the front frame of %v takes %d bytes, want %d", b, got, want)
		}
	}
	f(Limits{FrameLen: tagged}, []byte{2, 0, 1}, 2)
	f(Limits{FrameLen: tagged}, []byte{3, 0, 1}, 3)
	f(Limits{FrameLen: tagged}, []byte{4, 0, 1}, 3)
	f(Limits{FrameLen: tagged}, []byte{255, 0}, 2)
	f(Limits{}, []byte{2, 0, 1}, 3)
	f(Limits{}, nil, 0)
}
