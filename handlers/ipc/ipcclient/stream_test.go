package ipcclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/codec/wire"
)

// openStream opens a stream and returns it with its request id as the peer saw it.
func openStream(t testing.TB, c *Conn, p *peer) (*Stream, string) {
	t.Helper()
	s, err := c.Stream(t.Context(), "commbus", "Subscribe", nil)
	if err != nil {
		t.Fatal(err)
	}
	req := p.want("commbus.Subscribe")
	if s.id != req.ID {
		t.Fatalf("stream %q was opened under %q", s.id, req.ID)
	}
	return s, req.ID
}

func wantNext(t testing.TB, s *Stream, want string) {
	t.Helper()
	body, err := s.Next(t.Context())
	if err != nil || twin(t, body) != want {
		t.Fatalf("got %s, %v, want %s", body, err, want)
	}
}

func TestStreamDeliversInOrderUntilItsEnd(t *testing.T) {
	c, p := dialLoopback(t, "tcp", "127.0.0.1:0")
	s, id := openStream(t, c, p)
	for i := range 5 {
		p.chunk(id, fmt.Sprintf(`{"n":%d}`, i))
	}
	p.end(id)
	var got []string
	for body, err := s.Next(t.Context()); err != io.EOF; body, err = s.Next(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, twin(t, body))
	}
	if want := `{"n":0} {"n":1} {"n":2} {"n":3} {"n":4}`; strings.Join(got, " ") != want {
		t.Fatalf("got %s", got)
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Fatalf("after the end: %v", err)
	}
}

func TestStreamErrors(t *testing.T) {
	c, p := dialPipe(t)
	s, id := openStream(t, c, p)
	p.chunk(id, `{"n":1}`)
	p.refuse(id, `{"code":"RESOURCE_EXHAUSTED","message":"Stream evicted: too many streams","retryable":true}`)
	wantNext(t, s, `{"n":1}`)
	var said *Error
	if _, err := s.Next(t.Context()); !errors.As(err, &said) || said.Code != wire.ResourceExhausted {
		t.Fatalf("got %v", err)
	}
}

func TestStreamOfAUnaryMethodIsItsAnswer(t *testing.T) {
	c, p := dialPipe(t)
	s, id := openStream(t, c, p)
	p.respond(id, `{"once":true}`)
	wantNext(t, s, `{"once":true}`)
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Fatalf("got %v", err)
	}
}

func TestStreamCloseUnsubscribes(t *testing.T) {
	c, p := dialPipe(t)
	s, id := openStream(t, c, p)
	p.chunk(id, `{"n":1}`)
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	un := p.want("commbus.Unsubscribe")
	if want := `{"stream_id":"` + id + `"}`; string(un.Body) != want {
		t.Fatalf("got %s, want %s", un.Body, want)
	}
	p.chunk(id, `{"n":2}`)
	p.end(id)
	p.respond(un.ID, `{"success":true,"ended":1}`)
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(t.Context()); err != ErrStreamClosed {
		t.Fatalf("got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
	if len(c.streams)+len(c.calls) != 0 {
		t.Fatal("the connection still knows the stream")
	}
}

func TestStreamCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t)
		s, _ := openStream(t, c, p)
		go p.want("commbus.Unsubscribe")
		before := time.Now()
		if err := s.Close(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(before); took != closeWithin {
			t.Fatalf("took %v", took)
		}
	})
}

// TestStreamBufferBounds sends one message less than the bound and then one more, each time with an
// answer behind it.
func TestStreamBufferBounds(t *testing.T) {
	f := func(why string, opt Option, messages int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c, p := dialPipe(t, opt)
			s, id := openStream(t, c, p)
			for range messages {
				p.chunk(id, `{"k":"123456"}`) // ten bytes of body
			}
			reply := start(c, "AtLimit", t)
			p.respond(p.want("kernel.AtLimit").ID, `{}`)
			if got := <-reply; got.err != nil {
				t.Fatalf("%s: at the limit the connection is not read: %v", why, got.err)
			}
			reply = start(c, "OverLimit", t)
			over := p.want("kernel.OverLimit")
			go func() {
				p.chunk(id, `{"k":"last!!"}`)
				p.respond(over.ID, `{}`)
			}()
			synctest.Wait()
			select {
			case <-reply:
				t.Fatalf("%s: over the limit the connection is read on", why)
			default:
			}
			wantNext(t, s, `{"k":"123456"}`)
			if got := <-reply; got.err != nil {
				t.Fatalf("%s: %v", why, got.err)
			}
			for range messages - 1 {
				wantNext(t, s, `{"k":"123456"}`)
			}
			wantNext(t, s, `{"k":"last!!"}`)
		})
	}
	f("messages", WithStreamBuffer(3, 1<<20), 3)
	f("bytes", WithStreamBuffer(100, 30), 3)
	f("one message is always taken", WithStreamBuffer(100, 1), 1)
}

func TestStreamCloseFreesABlockedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t, WithStreamBuffer(1, 1))
		s, id := openStream(t, c, p)
		p.chunk(id, `{}`)
		p.chunk(id, `{}`)
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		p.respond(p.want("commbus.Unsubscribe").ID, `{"success":true,"ended":1}`)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	})
}

func TestConnCloseFreesABlockedReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t, WithStreamBuffer(1, 1))
		s, id := openStream(t, c, p)
		p.chunk(id, `{"n":1}`)
		p.chunk(id, `{"n":2}`)
		synctest.Wait()
		c.Close()
		wantNext(t, s, `{"n":1}`)
		_, err := s.Next(t.Context())
		wantConnError(t, err, ErrClosed)
	})
}

func TestNextGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t)
		s, id := openStream(t, c, p)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		p.chunk(id, `{"still":"open"}`)
		wantNext(t, s, `{"still":"open"}`)
	})
}
