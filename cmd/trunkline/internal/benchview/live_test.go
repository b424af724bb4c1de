package benchview

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"trunkline/cmd/trunkline/internal/loadgen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prompt = "$ trunkline bench\n"

// onScreen runs f with a Live on a screen of 24 lines, on which a prompt stands already.
func onScreen(t *testing.T, width int, color bool, f func(*screen, *Live, []loadgen.Sample)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, width, 24)
		_, _ = io.WriteString(s, "$ trunkline bench\r\n")
		l := NewLive(s, s.columns, color, planOfTwo())
		f(s, l, observed())
		l.Close()
		l.Close()
		if !s.wrap || !s.cursor {
			t.Error("the terminal is not as it was")
		}
		if s.overflow > 0 {
			t.Errorf("%d characters beyond the edge", s.overflow)
		}
	})
}

// play shows the first n intervals, each when it ends, and lets the block come to rest.
func play(l *Live, in []loadgen.Sample) {
	for _, s := range in {
		time.Sleep(s.To - s.From)
		l.Show(s)
	}
	time.Sleep(repaintEvery)
	synctest.Wait()
}

func TestLiveScreens(t *testing.T) {
	f := func(name string, width, intervals int) {
		t.Helper()
		onScreen(t, width, true, func(s *screen, l *Live, in []loadgen.Sample) {
			play(l, in[:intervals])
			golden(t, name, s.shown())
			l.Close()
			if s.shown() != prompt+"\n" || s.row != 1 || s.col != 0 {
				t.Errorf("after Close:\n%s", s.shown())
			}
		})
	}
	f("live-80.txt", 80, 14)
	f("live-40.txt", 40, 14)
	f("live-132.txt", 132, 14)
	f("live-start.txt", 80, 0)
}

func TestLiveWarmsUp(t *testing.T) {
	onScreen(t, 80, false, func(s *screen, l *Live, in []loadgen.Sample) {
		warm := in[0]
		warm.From, warm.To = -2*time.Second, -time.Second
		play(l, []loadgen.Sample{warm})
		golden(t, "live-warmup.txt", s.shown())
	})
}

func TestLiveWithoutColor(t *testing.T) {
	shown := make(map[bool]string)
	for _, color := range []bool{true, false} {
		onScreen(t, 80, color, func(s *screen, l *Live, in []loadgen.Sample) {
			play(l, in[:14])
			shown[color] = s.shown()
			if (s.attributes > 0) != color {
				t.Errorf("color %v: %d attributes", color, s.attributes)
			}
		})
	}
	if shown[true] != shown[false] {
		t.Errorf("colour changes the text:\n%s\n%s", shown[true], shown[false])
	}
}

func TestLivePaintsAtMostTenTimesASecond(t *testing.T) {
	onScreen(t, 80, true, func(s *screen, l *Live, in []loadgen.Sample) {
		before := s.frames
		for range 200 {
			time.Sleep(5 * time.Millisecond)
			l.Show(in[0])
		}
		synctest.Wait()
		if n := s.frames - before; n < 9 || n > 12 {
			t.Errorf("%d frames in one second", n)
		}
	})
}

func TestLiveWritesNothingWhereNothingChanges(t *testing.T) {
	onScreen(t, 80, true, func(s *screen, l *Live, _ []loadgen.Sample) {
		synctest.Wait()
		before := s.frames
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.frames != before {
			t.Errorf("%d frames of the same picture", s.frames-before)
		}
	})
}

// TestLiveSurvivesResizing: on terminals that wrap long lines again, nothing of an old frame is left and nothing above is lost; on those
// that cut them, the block is whole.
func TestLiveSurvivesResizing(t *testing.T) {
	for _, reflows := range []bool{true, false} {
		onScreen(t, 80, true, func(s *screen, l *Live, in []loadgen.Sample) {
			s.height, s.reflows = 100, reflows
			for i, width := range []int{80, 60, 100, 41, 20, 3, 1, 80} {
				s.resize(width)
				play(l, in[i:i+1])
			}
			if got := strings.Count(s.shown(), "127.0.0.1:4410"); got != 1 {
				t.Errorf("reflows %v: %d blocks:\n%s", reflows, got, s.shown())
			}
			above, _, _ := strings.Cut(s.shown(), "bench   kernel")
			if got := strings.Join(strings.Fields(above), ""); reflows && got != "$trunklinebench" {
				t.Errorf("above the block is not what was there:\n%s", s.shown())
			}
		})
	}
}

func TestLiveAtUnknownWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScreen(t, 80, 24)
		l := NewLive(s, func() int { return 0 }, false, planOfTwo())
		play(l, observed()[:3])
		if !strings.Contains(s.shown(), "p99.9") || s.overflow > 0 {
			t.Errorf("not as wide as 80:\n%s", s.shown())
		}
		l.Close()
	})
}

// stuck is a terminal that someone stopped: Show must not wait for it.
type stuck struct{ free chan struct{} }

func (s stuck) Write(b []byte) (int, error) { <-s.free; return len(b), nil }

func TestShowDoesNotWaitForTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stuck{make(chan struct{})}
		l := NewLive(w, func() int { return 80 }, false, planOfTwo())
		for _, s := range observed() {
			l.Show(s)
		}
		close(w.free)
		l.Close()
	})
}

func TestShowFromManyGoroutines(t *testing.T) {
	in := observed()
	l := NewLive(io.Discard, func() int { return 80 }, true, planOfTwo())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, s := range in {
				l.Show(s)
			}
		})
	}
	wg.Wait()
	l.Close()
	l.Show(in[0])
}
