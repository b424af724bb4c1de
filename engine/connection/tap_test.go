package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// echo is a session that takes all it is given and answers with the same; Pump appends news.
type echo struct {
	news   string
	closed bool
}

func (e *echo) Feed(in, out []byte, _ Instant) (int, []byte, Verdict) {
	return len(in), append(out, in...), More
}

func (e *echo) Pump(out []byte, _ int, _ Instant) ([]byte, bool) {
	return append(out, e.news...), false
}

func (e *echo) EOF(Instant)   {}
func (e *echo) Drain(Instant) {}
func (e *echo) Load() Load    { return Load{Done: true} }
func (e *echo) Closed()       { e.closed = true }

// Report implements Reporter.
func (e *echo) Report() (inFlight, streams int64) { return 3, 2 }

// sized frames begin with a digit, which is their length.
func sized(_ bool, b []byte) int { return max(int(b[0])-'0', 0) }

// observed returns the session of a connection with that id.
func observed(taps *Taps, id uint64) (Session, *echo) {
	e := new(echo)
	return taps.Opener(func(*Port) Session { return e })(NewPort(id, "peer")), e
}

// wantSeen reads once: in is what the peer sent, out what it was sent; each head is followed by its
// frame's size.
func wantSeen(t *testing.T, tap *Tap, want string, wantLost uint64, wantErr error) {
	t.Helper()
	seen, lost, err := tap.Next(t.Context())
	var got []string
	for _, s := range seen {
		got = append(got, fmt.Sprintf("%v:%s:%d@%d", s.Out, s.Head, s.Size, s.At))
	}
	if text := strings.Join(got, " "); text != want || lost != wantLost || !errors.Is(err, wantErr) {
		t.Fatalf("%q, %d lost, %v, want %q, %d, %v", text, lost, err, want, wantLost, wantErr)
	}
}

func TestTapCopiesFrames(t *testing.T) {
	var taps Taps
	s, e := observed(&taps, 7)
	tap, err := taps.Observe(7, 3, sized)
	if err != nil {
		t.Fatal(err)
	}
	s.Feed([]byte("2a1"), []byte("before"), Instant{Wall: 5})
	wantSeen(t, tap, "false:2a:2@5 false:1:1@5 true:2a:2@5 true:1:1@5", 0, nil)
	// A frame of more than keep bytes, in pieces, and one behind it.
	e.news = "6abc"
	s.Pump(nil, 0, Instant{Wall: 6})
	e.news = "de2x"
	s.Pump(nil, 0, Instant{Wall: 7})
	wantSeen(t, tap, "true:6ab:6@6 true:2x:2@7", 0, nil)
	// What begins no frame.
	e.news = "0??"
	s.Pump(nil, 0, Instant{Wall: 8})
	e.news = "1"
	s.Pump(nil, 0, Instant{Wall: 9})
	wantSeen(t, tap, "true::3@8 true:1:1@9", 0, nil)
	s.Feed([]byte("2z"), nil, Instant{})
	s.Closed()
	wantSeen(t, tap, "false:2z:2@0 true:2z:2@0", 0, nil)
	wantSeen(t, tap, "", 0, io.EOF)
	if !e.closed {
		t.Error("the session was not closed")
	}
	tap.Close()
}

// TestTapHoldsSoMuch: the frame that fills it, and the one after it.
func TestTapHoldsSoMuch(t *testing.T) {
	var taps Taps
	s, e := observed(&taps, 1)
	whole := func(_ bool, b []byte) int { return len(b) }
	tap, err := taps.Observe(1, tapBytes, whole)
	if err != nil {
		t.Fatal(err)
	}
	e.news = strings.Repeat("x", tapBytes-2*tapFrame-1)
	s.Pump(nil, 0, Instant{})
	e.news = "y"
	s.Pump(nil, 0, Instant{})
	if seen, lost, err := tap.Next(t.Context()); len(seen) != 2 || lost != 0 || err != nil {
		t.Fatalf("%d frames, %d lost, %v", len(seen), lost, err)
	}
	e.news = strings.Repeat("x", tapBytes-2*tapFrame)
	s.Pump(nil, 0, Instant{})
	e.news = "y"
	s.Pump(nil, 0, Instant{})
	s.Pump(nil, 0, Instant{})
	if seen, lost, err := tap.Next(t.Context()); len(seen) != 1 || lost != 2 || err != nil {
		t.Fatalf("%d frames, %d lost, %v", len(seen), lost, err)
	}
	s.Pump(nil, 0, Instant{})
	wantSeen(t, tap, "true:y:1@0", 0, nil)
}

func TestTapsAreLimited(t *testing.T) {
	var taps Taps
	for id := range uint64(maxTaps + 1) {
		observed(&taps, id)
	}
	f := func(id uint64, want error) *Tap {
		t.Helper()
		tap, err := taps.Observe(id, 1, sized)
		if !errors.Is(err, want) {
			t.Fatalf("connection %d: %v, want %v", id, err, want)
		}
		return tap
	}
	f(99, errNoConnection)
	first := f(0, nil)
	f(0, ErrTapped)
	for id := uint64(1); id < maxTaps; id++ {
		f(id, nil)
	}
	f(maxTaps, ErrTaps)
	first.Close()
	first.Close()
	f(maxTaps, nil)
	f(0, ErrTaps)
}

// TestTappedSessionsReport: a session that can be observed has the numbers of its own.
func TestTappedSessionsReport(t *testing.T) {
	var taps Taps
	s, _ := observed(&taps, 1)
	if inFlight, streams := s.(Reporter).Report(); inFlight != 3 || streams != 2 {
		t.Errorf("%d in flight, %d streams", inFlight, streams)
	}
	bare := taps.Opener(func(*Port) Session { return struct{ Session }{} })(NewPort(2, "peer"))
	if inFlight, streams := bare.(Reporter).Report(); inFlight != 0 || streams != 0 {
		t.Errorf("%d in flight, %d streams", inFlight, streams)
	}
}

func TestTapOfAClosedConnection(t *testing.T) {
	var taps Taps
	s, _ := observed(&taps, 1)
	s.Closed()
	if _, err := taps.Observe(1, 1, sized); !errors.Is(err, errNoConnection) {
		t.Fatal(err)
	}
	s, _ = observed(&taps, 2)
	tap, err := taps.Observe(2, 1, sized)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := tap.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that gave up got %v", err)
	}
	tap.Close()
	s.Feed([]byte("1"), nil, Instant{})
	s.Closed()
	if len(taps.conns) != 0 || taps.taps != 0 {
		t.Errorf("%d connections and %d taps are left", len(taps.conns), taps.taps)
	}
}

// TestTapWhileFed: observing begins and ends at any time.
func TestTapWhileFed(t *testing.T) {
	var taps Taps
	s, e := observed(&taps, 1)
	e.news = "3ab"
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				s.Closed()
				return
			default:
				s.Feed([]byte("2a"), nil, Instant{})
				s.Pump(nil, 0, Instant{})
			}
		}
	})
	for range 200 {
		tap, err := taps.Observe(1, 8, sized)
		if err != nil {
			t.Fatal(err)
		}
		seen, _, err := tap.Next(t.Context())
		if err != nil || len(seen) == 0 || len(seen[0].Head) == 0 {
			t.Fatalf("%d frames, %v", len(seen), err)
		}
		tap.Close()
	}
	close(stop)
	wg.Wait()
}
