package stream

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

const (
	idle  = 30 * time.Second
	write = 10 * time.Second
)

func withTimers(l *connection.Limits) {
	l.IdleAfter, l.FrameWithin, l.SendWithin = int64(idle), int64(idle), int64(write)
}

// cut returns when the server closes the connection, measured from the call.
func (p *peer) cut(within time.Duration) {
	p.t.Helper()
	start := time.Now()
	_, _ = io.Copy(io.Discard, p.c)
	if d := time.Since(start); d < within || d > within+time.Second {
		p.t.Fatalf("cut after %v, want [T, T+1 s] for T = %v", d, within)
	}
}

func timed(t *testing.T, name string, f func(t *testing.T, p *peer)) {
	t.Run(name, func(t *testing.T) { bubble(t, withTimers, func(p *peer) { f(p.t, p) }) })
}

// bubble serves one connection in a synctest bubble.
func bubble(t *testing.T, change func(*connection.Limits), f func(p *peer)) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe(t, change)
		time.Sleep(137 * time.Millisecond) // off the janitor's beat
		f(p)
		_ = p.host.Close(context.Background())
	})
}

func TestReadTimers(t *testing.T) {
	timed(t, "idle from opening", func(t *testing.T, p *peer) {
		p.cut(idle - 137*time.Millisecond)
		p.wantReason(connection.ReasonIdle)
	})
	timed(t, "idle from the last frame", func(t *testing.T, p *peer) {
		time.Sleep(29 * time.Second)
		p.send(linktest.Frame('e', "x"))
		p.want('e', "x")
		p.cut(idle)
		p.wantReason(connection.ReasonIdle)
	})
	timed(t, "not idle while in flight", func(t *testing.T, p *peer) {
		p.send(linktest.Frame('q', ""))
		time.Sleep(100 * time.Second)
		p.book.Last().Release()
		p.want('q', "")
		p.cut(idle)
		p.wantReason(connection.ReasonIdle)
	})
	timed(t, "not idle with a stream", func(t *testing.T, p *peer) {
		p.send(linktest.Frame('o', ""))
		p.want('o', "")
		time.Sleep(10 * time.Minute)
		p.book.Last().EndStream()
		p.want('z', "")
		p.cut(idle)
		p.wantReason(connection.ReasonIdle)
	})
	timed(t, "partial frame", func(t *testing.T, p *peer) {
		time.Sleep(20 * time.Second)
		p.send([]byte{0, 0})
		time.Sleep(10 * time.Second)
		p.send([]byte{0, 100, 'e'}) // later bytes of the same frame do not help
		p.cut(idle - 10*time.Second)
		p.wantReason(connection.ReasonFrame)
	})
	timed(t, "partial frame, streams live", func(t *testing.T, p *peer) {
		p.send(linktest.Frame('o', ""))
		p.want('o', "")
		p.send([]byte{0})
		p.cut(idle)
		p.wantReason(connection.ReasonFrame)
	})
	timed(t, "each frame has its own time", func(t *testing.T, p *peer) {
		f := linktest.Frame('e', "x")
		p.send(f[:2])
		for range 5 { // every write ends one frame and begins the next
			time.Sleep(20 * time.Second)
			p.send(f[2:], f[:2])
			p.want('e', "x")
		}
		p.cut(idle)
		p.wantReason(connection.ReasonFrame)
	})
}

func TestWriteTimer(t *testing.T) {
	timed(t, "nothing taken", func(t *testing.T, p *peer) {
		start := time.Now()
		p.send(linktest.Sized('b', 1000))
		synctest.Wait()
		kit.Until(t, "the cut", func() bool { return p.host.Gate.Open() == 0 })
		if d := time.Since(start); d < write || d > write+time.Second+5*time.Millisecond {
			t.Fatalf("cut after %v", d)
		}
		p.wantReason(connection.ReasonWrite)
	})
	timed(t, "a reader not reading us is not idle", func(t *testing.T, p *peer) {
		p.send(linktest.Frame('h', ""), linktest.Frame('e', "x"), []byte{0})
		time.Sleep(100 * time.Second) // blocked on our own work: no timer runs
		p.book.Last().Release()
		p.want('h', "")
		p.want('e', "x")
		p.cut(idle)
		p.wantReason(connection.ReasonFrame)
	})
}
