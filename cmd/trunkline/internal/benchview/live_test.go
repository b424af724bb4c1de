package benchview

import (
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"trunkline/cmd/trunkline/internal/benchview/screen"
	"trunkline/cmd/trunkline/loadgen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prompt = "$ trunkline bench\n"

// onScreen runs f with a Live on a screen of 24 lines, on which a prompt stands already.
func onScreen(t *testing.T, width int, color bool, f func(*screen.Screen, *Live, []loadgen.Sample)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := screen.New(t, width, 24, cells)
		_, _ = io.WriteString(s, "$ trunkline bench\r\n")
		l := NewLive(s, s.Size, color, planOfTwo())
		f(s, l, observed())
		l.Close()
		l.Close()
		if at := s.State(); !at.Sane || at.Overflow > 0 {
			t.Errorf("the terminal is not as it was: %+v", at)
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
		onScreen(t, width, true, func(s *screen.Screen, l *Live, in []loadgen.Sample) {
			play(l, in[:intervals])
			golden(t, name, s.Shown())
			l.Close()
			if at := s.State(); s.Shown() != prompt || at.Row != 1 || at.Col != 0 {
				t.Errorf("after Close:\n%s", s.Shown())
			}
		})
	}
	f("live-80.txt", 80, 14)
	f("live-40.txt", 40, 14)
	f("live-132.txt", 132, 14)
	f("live-start.txt", 80, 0)
}

func TestLiveWarmsUp(t *testing.T) {
	onScreen(t, 80, false, func(s *screen.Screen, l *Live, in []loadgen.Sample) {
		warm := in[0]
		warm.From, warm.To = -2*time.Second, -time.Second
		play(l, []loadgen.Sample{warm})
		golden(t, "live-warmup.txt", s.Shown())
	})
}

func TestLiveWithoutColor(t *testing.T) {
	shown := make(map[bool]string)
	for _, color := range []bool{true, false} {
		onScreen(t, 80, color, func(s *screen.Screen, l *Live, in []loadgen.Sample) {
			play(l, in[:14])
			shown[color] = s.Shown()
			if (s.State().Attributes > 0) != color {
				t.Errorf("color %v: %d attributes", color, s.State().Attributes)
			}
		})
	}
	if shown[true] != shown[false] {
		t.Errorf("colour changes the text:\n%s\n%s", shown[true], shown[false])
	}
}

func TestLivePaintsAtMostTenTimesASecond(t *testing.T) {
	onScreen(t, 80, true, func(s *screen.Screen, l *Live, in []loadgen.Sample) {
		before := s.State().Frames
		for range 200 {
			time.Sleep(5 * time.Millisecond)
			l.Show(in[0])
		}
		synctest.Wait()
		if n := s.State().Frames - before; n < 9 || n > 12 {
			t.Errorf("%d frames in one second", n)
		}
	})
}

func TestLiveWritesNothingWhereNothingChanges(t *testing.T) {
	onScreen(t, 80, true, func(s *screen.Screen, l *Live, _ []loadgen.Sample) {
		synctest.Wait()
		before := s.State().Frames
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.State().Frames != before {
			t.Errorf("%d frames of the same picture", s.State().Frames-before)
		}
	})
}

// TestLiveSurvivesResizing: on terminals that wrap long lines again, nothing of an old frame is
// left and nothing above is lost; on those that cut them, the block is whole.
func TestLiveSurvivesResizing(t *testing.T) {
	for _, reflows := range []bool{true, false} {
		onScreen(t, 80, true, func(s *screen.Screen, l *Live, in []loadgen.Sample) {
			if !reflows {
				s.CutLongLines()
			}
			for i, width := range []int{80, 60, 100, 41, 20, 3, 1, 80} {
				s.Resize(width, 120)
				play(l, in[i:i+1])
			}
			if got := strings.Count(s.Shown(), "127.0.0.1:4410"); got != 1 {
				t.Errorf("reflows %v: %d blocks:\n%s", reflows, got, s.Shown())
			}
			above, _, _ := strings.Cut(s.Shown(), "bench   kernel")
			if got := strings.Join(strings.Fields(above), ""); reflows && got != "$trunklinebench" {
				t.Errorf("above the block is not what was there:\n%s", s.Shown())
			}
		})
	}
}

// TestLiveOnALowTerminal: one that became too low for the block shows what fits, without a copy of
// it above, and all once there is room.
func TestLiveOnALowTerminal(t *testing.T) {
	onScreen(t, 80, false, func(s *screen.Screen, l *Live, in []loadgen.Sample) {
		play(l, in[:1])
		s.Resize(80, 15)
		play(l, in[1:2])
		before := s.State().Rows
		play(l, in[2:14])
		golden(t, "live-low.txt", s.Shown())
		if s.State().Rows != before {
			t.Errorf("%d rows scrolled away", s.State().Rows-before)
		}
		s.Resize(80, 24)
		play(l, in[14:15])
		_, got, _ := strings.Cut(s.Shown(), "bench   kernel 127.0.0.1:4410")
		if !strings.Contains(got, "kernel.CreateProcess") || strings.Contains(got, "bench   kernel") {
			t.Errorf("not all of it is back:\n%s", got)
		}
	})
}

// stuck is a terminal that someone stopped: Show must not wait for it.
type stuck struct{ free chan struct{} }

func (s stuck) Write(b []byte) (int, error) { <-s.free; return len(b), nil }

func TestShowDoesNotWaitForTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stuck{make(chan struct{})}
		l := NewLive(w, func() (int, int) { return 80, 24 }, false, planOfTwo())
		for _, s := range observed() {
			l.Show(s)
		}
		close(w.free)
		l.Close()
	})
}

func TestShowFromManyGoroutines(t *testing.T) {
	in := observed()
	l := NewLive(io.Discard, func() (int, int) { return 80, 24 }, true, planOfTwo())
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
