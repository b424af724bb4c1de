package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/linktest"
)

func TestEchoInOrder(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			h, book, ln := listen(t, network, nil)
			p := dial(t, h, book, ln)
			p.send(linktest.Frame('e', "one"), linktest.Frame('e', ""), linktest.Frame('e', "three"))
			p.want('e', "one")
			p.want('e', "")
			p.want('e', "three")
			p.send(linktest.Frame('c', "bye"))
			p.want('c', "bye")
			p.wantClosed(connection.ReasonProtocol)
		})
	}
}

func TestCutAtEveryByte(t *testing.T) {
	whole := append(linktest.Frame('e', "first"), linktest.Frame('e', "second")...)
	for cut := 0; cut <= len(whole); cut++ {
		p := pipe(t, nil)
		go func() {
			_, _ = p.c.Write(whole[:cut])
			time.Sleep(time.Millisecond)
			_, _ = p.c.Write(whole[cut:])
		}()
		p.want('e', "first")
		p.want('e', "second")
		_ = p.c.Close()
		p.wantReason(connection.ReasonEOF)
	}
}

func TestLargeFramesAndReplies(t *testing.T) {
	p := pipe(t, nil)
	body := string(linktest.Pattern(nil, 3<<20))
	go p.send(linktest.Frame('e', body), linktest.Sized('b', 5<<20), linktest.Frame('e', "end"))
	p.want('e', body)
	p.wantPattern('b', 5<<20)
	p.want('e', "end")
}

func TestReaderStopsOverUnsentBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe(t, nil)
		sent := 0
		go func() {
			for range 100 {
				if _, err := p.c.Write(linktest.Sized('b', 10_000)); err != nil {
					return
				}
				sent++
			}
		}()
		synctest.Wait()
		// 64 KiB of replies stop the reader; what one read took in beyond is at most one small
		// buffer of requests.
		if sent > 20 {
			t.Fatalf("the server read %d requests while 10,000-byte answers were not taken", sent)
		}
		for range 100 {
			p.wantPattern('b', 10_000)
		}
		_ = p.c.Close()
		_ = p.host.Close(context.Background())
	})
}

func TestHoldBlocksOnlyUntilWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe(t, nil)
		go p.send(linktest.Frame('e', "before"), linktest.Frame('h', ""), linktest.Frame('e', "after"))
		p.want('e', "before")
		synctest.Wait()
		p.book.Last().Release()
		p.want('h', "")
		p.want('e', "after")
		_ = p.host.Close(context.Background())
	})
}

func TestStreamsInterleaveWithReplies(t *testing.T) {
	p := pipe(t, nil)
	go p.send(linktest.Sized('s', 2000, 100), linktest.Frame('e', "amid"))
	chunks, echoed := 0, false
	for {
		cmd, b, err := linktest.Read(p.c)
		if err != nil {
			t.Fatal(err)
		}
		switch cmd {
		case 's':
			chunks++
			if err := linktest.CheckPattern(b); err != nil {
				t.Fatal(err)
			}
		case 'e':
			echoed = true
		case 'z':
			if chunks != 2000 || !echoed {
				t.Fatalf("%d chunks and echo %v before the end", chunks, echoed)
			}
			return
		}
	}
}

func TestHalfCloseGetsItsAnswers(t *testing.T) {
	h, book, ln := listen(t, "tcp", nil)
	p := dial(t, h, book, ln)
	p.send(linktest.Frame('o', ""), linktest.Frame('q', ""), linktest.Frame('e', "x"), []byte{0, 0})
	p.want('o', "")
	p.want('e', "x")
	if err := p.c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	book.Last().Release()
	p.want('q', "")
	p.wantClosed(connection.ReasonEOF)
}

func TestPanicsCloseOneConnection(t *testing.T) {
	for _, cmd := range []byte{'p', 'P'} {
		h, book, ln := listen(t, "tcp", nil)
		other := dial(t, h, book, ln)
		p := dial(t, h, book, ln)
		p.send(linktest.Frame(cmd, ""))
		if b, err := io.ReadAll(p.c); len(b) > 0 {
			t.Fatalf("got %d bytes, %v", len(b), err)
		}
		kit.Until(
			t,
			"the panicked connection to go",
			func() bool { return h.Snapshot().Closed[connection.ReasonPanic] == 1 },
		)
		other.send(linktest.Frame('e', "alive"))
		other.want('e', "alive")
	}
}

func TestPanicInOpen(t *testing.T) {
	h, _ := newHost(t, func(c *Config) { c.Open = func(*connection.Port) connection.Session { panic("no") } })
	mine, theirs := net.Pipe()
	defer mine.Close()
	if err := h.Serve(theirs, "pipe"); err == nil {
		t.Fatal("Serve said nothing of a session that cannot be opened")
	}
	if h.Gate.Open() != 0 || h.Snapshot().Closed[connection.ReasonPanic] != 1 {
		t.Fatalf("left %+v", h.Snapshot())
	}
}

func TestDrainAnswersWhatWasRead(t *testing.T) {
	h, book, ln := listen(t, "tcp", nil)
	p := dial(t, h, book, ln)
	p.send(linktest.Frame('o', ""), linktest.Frame('q', ""), linktest.Frame('e', "x"))
	p.want('o', "")
	p.want('e', "x")
	ended := make(chan error, 1)
	go func() { ended <- h.Shutdown(context.Background()) }()
	p.want('z', "") // the stream ends at once
	if _, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		t.Error("a draining host accepts")
	}
	book.Last().Release()
	p.want('q', "")
	p.wantClosed(connection.ReasonDrain)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := h.Serve(p.c, "late"); !errors.Is(err, errDraining) {
		t.Errorf("Serve after Shutdown said %v", err)
	}
	if err := h.ServeListener(ln); !errors.Is(err, errDraining) {
		t.Errorf("ServeListener after Shutdown said %v", err)
	}
}

func TestDrainForcesAfterItsGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipe(t, nil)
		p.send(linktest.Frame('q', ""))
		synctest.Wait()
		start := time.Now()
		if err := p.host.Shutdown(context.Background()); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("forced after %v, want the grace of 2 s", d)
		}
		p.wantClosed(connection.ReasonDrain)
	})
}

func TestStdioLikeTransport(t *testing.T) {
	h, book := newHost(t, nil)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- h.Serve(duplex{inR, outW}, "stdio") }()
	go func() {
		_, _ = inW.Write(linktest.Frame('e', "hi"))
		_ = inW.Close()
	}()
	cmd, b, err := linktest.Read(outR)
	if err != nil || cmd != 'e' || string(b) != "hi" {
		t.Fatalf("got %c %q %v", cmd, b, err)
	}
	if _, err := outR.Read(make([]byte, 1)); err != io.EOF {
		t.Fatalf("after the last answer: %v, want EOF", err)
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if n := book.Last().ClosedTimes(); n != 1 {
		t.Errorf("Closed was called %d times", n)
	}
}

type duplex struct {
	io.ReadCloser
	w io.WriteCloser
}

func (d duplex) Write(p []byte) (int, error) { return d.w.Write(p) }
func (d duplex) Close() error                { _ = d.w.Close(); return d.ReadCloser.Close() }
