package ipcclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

func TestCallRoundTrip(t *testing.T) {
	for _, network := range []string{"pipe", "tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			var c *Conn
			var p *peer
			switch network {
			case "pipe":
				c, p = dialPipe(t)
			case "tcp":
				c, p = dialLoopback(t, "tcp", "127.0.0.1:0")
			default:
				c, p = dialLoopback(t, "unix", t.TempDir()+"/s")
			}
			reply := start(c, "GetProcessCounts", t)
			req := p.want("kernel.GetProcessCounts")
			if string(req.Body) != "{}" {
				t.Fatalf("nil body was sent as %s", req.Body)
			}
			p.respond(req.ID, `{"total":3}`)
			if got := <-reply; got.err != nil || twin(t, got.body) != `{"total":3}` {
				t.Fatalf("got %s, %v", got.body, got.err)
			}
		})
	}
}

func TestRepliesAreMatchedByID(t *testing.T) {
	c, p := dialLoopback(t, "tcp", "127.0.0.1:0")
	const n = 100
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			body := msgp.AppendMapHeader(nil, 1)
			body = msgp.AppendInt(msgp.AppendString(body, "n"), i)
			out, err := c.Call(t.Context(), "kernel", "Echo", body)
			if want := fmt.Sprintf(`{"n":%d}`, i); err != nil || twin(t, out) != want {
				t.Errorf("got %s, %v, want %s", out, err, want)
			}
		})
	}
	requests := make([]request, n)
	for i := range requests {
		requests[i] = p.want("kernel.Echo")
	}
	for i := n - 1; i >= 0; i-- {
		p.respond(requests[i].ID, string(requests[i].Body))
	}
	wg.Wait()
}

func TestErrorFrames(t *testing.T) {
	f := func(errorMap string, want Error) {
		t.Helper()
		c, p := dialPipe(t)
		reply := start(c, "X", t)
		p.refuse(p.want("kernel.X").ID, errorMap)
		var got *Error
		if err := (<-reply).err; !errors.As(err, &got) {
			t.Fatalf("got %v, want an *Error", err)
		}
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Fatal(diff)
		}
	}
	f(`{"code":"NOT_FOUND","message":"Process x not found"}`, Error{Code: wire.NotFound, Message: "Process x not found"})
	f(`{"code":"RESOURCE_EXHAUSTED","message":"m","retryable":true,"kernel_queue_capacity":1}`,
		Error{Code: wire.ResourceExhausted, Message: "m", Retryable: true, KernelQueueCapacity: 1})
	f(`{"code":"RESOURCE_EXHAUSTED","message":"m","retry_after_seconds":7.0,"later":[{}]}`,
		Error{Code: wire.ResourceExhausted, Message: "m", RetryAfterSeconds: 7})
	f(`{"code":"TEAPOT","message":"short"}`, Error{Code: wire.Internal, Message: "TEAPOT short"})
	f(`{"code":"OK"}`, Error{Code: wire.Internal, Message: "OK"})
}

func TestAbandonedCallDropsItsLateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, "kernel", "Slow", nil)
			late <- err
		}()
		slow := p.want("kernel.Slow")
		if err := <-late; !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		reply := start(c, "Fast", t)
		fast := p.want("kernel.Fast")
		p.respond(slow.ID, `{"late":true}`)
		p.respond(fast.ID, `{}`)
		if got := <-reply; got.err != nil || twin(t, got.body) != "{}" {
			t.Fatalf("got %s, %v", got.body, got.err)
		}
		if len(c.calls) != 0 {
			t.Fatalf("%d calls are still waiting", len(c.calls))
		}
	})
}

func TestLostConnectionFailsEverything(t *testing.T) {
	c, p := dialPipe(t)
	reply := start(c, "X", t)
	p.want("kernel.X")
	s, _ := openStream(t, c, p)
	p.nc.Close()
	wantConnError(t, (<-reply).err, io.EOF)
	_, err := s.Next(t.Context())
	wantConnError(t, err, io.EOF)
	<-c.Done()
	wantConnError(t, c.Err(), io.EOF)
	_, err = c.Call(t.Context(), "kernel", "X", nil)
	wantConnError(t, err, io.EOF)
	_, err = c.Stream(t.Context(), "commbus", "Subscribe", nil)
	wantConnError(t, err, io.EOF)
	if err := s.Close(); err != nil {
		t.Fatalf("closing a stream that has ended: %v", err)
	}
}

func TestCloseFailsWhatIsWaiting(t *testing.T) {
	c, p := dialPipe(t)
	reply := start(c, "X", t)
	p.want("kernel.X")
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	c.Close()
	c.Close()
	wantConnError(t, (<-reply).err, ErrClosed)
}

func TestProtocolViolations(t *testing.T) {
	f := func(why string, send func(p *peer)) {
		t.Helper()
		c, p := dialPipe(t, withMaxFrame(64))
		go send(p)
		<-c.Done()
		if err := c.Err(); !errors.Is(err, ErrProtocol) {
			t.Fatalf("%s: got %v", why, err)
		}
	}
	f("length 0", func(p *peer) { p.nc.Write([]byte{0, 0, 0, 0, 0}) })
	f("length over the limit", func(p *peer) { p.nc.Write([]byte{0, 0, 0, 65, 2}) })
	f("request from the server", func(p *peer) { p.sendJSON(frame.Request, `{"id":"1"}`) })
	f("unknown type", func(p *peer) { p.sendJSON(frame.Type(9), `{"id":"1"}`) })
	f("no map", func(p *peer) { p.sendJSON(frame.Response, `[]`) })
	f("empty payload", func(p *peer) { p.nc.Write([]byte{0, 0, 0, 1, 2}) })
	f("no body", func(p *peer) { p.sendJSON(frame.Response, `{"id":"1","ok":true}`) })
	f("no error", func(p *peer) { p.sendJSON(frame.Error, `{"id":"1","ok":false}`) })
	f("ill-typed id", func(p *peer) { p.sendJSON(frame.StreamEnd, `{"id":7}`) })
	f("bytes after the value", func(p *peer) { p.raw([]byte{0, 0, 0, 3, 4, 0x80, 0xc0}) })
}

func TestFrameLimit(t *testing.T) {
	body := func(n int) []byte {
		b := msgp.AppendString(msgp.AppendMapHeader(nil, 1), "k")
		return msgp.AppendString(b, strings.Repeat("x", n))
	}
	size := frame.HeaderSize - frame.PrefixSize + len(mpack.AppendRequest(nil, "1", "kernel", "X", body(100)))
	c, p := dialPipe(t, withMaxFrame(size))
	if _, err := c.Call(t.Context(), "kernel", "X", body(101)); !errors.Is(err, ErrFrameTooLarge) {
		t.Fatalf("limit+1: got %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), "kernel", "X", body(100))
		done <- err
	}()
	p.respond(p.want("kernel.X").ID, `{}`)
	if err := <-done; err != nil {
		t.Fatalf("at the limit: %v", err)
	}
}

func TestBodyIsOneMap(t *testing.T) {
	c, _ := dialPipe(t)
	for _, body := range []string{"\x90", "\x01", "\x80\x80", "\x81\xa1k", "\xc1"} {
		if _, err := c.Call(t.Context(), "kernel", "X", []byte(body)); err == nil {
			t.Errorf("body %x was sent", body)
		}
	}
}

func TestRefusedConnectionSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t)
		reply := start(c, "X", t)
		p.refuse("", `{"code":"RESOURCE_EXHAUSTED","message":"Too many connections","retryable":true,"max_connections":2}`)
		p.nc.Close()
		err := (<-reply).err
		var said *Error
		wantConnError(t, err, c.Err().(*ConnError).Err)
		if !errors.As(err, &said) || said.MaxConnections != 2 || !said.Retryable {
			t.Fatalf("got %v", err)
		}
	})
}

func TestFailedWriteIsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := dialPipe(t)
		c.nc.SetWriteDeadline(time.Now()) // the socket takes nothing more, without an error
		err := (<-start(c, "X", t)).err
		var lost *ConnError
		if !errors.As(err, &lost) || !strings.Contains(err.Error(), "cannot write") {
			t.Fatalf("got %v", err)
		}
	})
}

func TestWritesAreCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t)
		var replies []<-chan outcome
		for range 4 {
			replies = append(replies, start(c, "X", t))
			synctest.Wait() // the first write stands in the pipe, the rest queues up behind it
		}
		buf := make([]byte, 1<<16)
		n, _ := p.nc.Read(buf)
		if _, _, used := frame.Split(buf[:n], 1<<20); used != n {
			t.Fatalf("first write has %d bytes, its first frame %d", n, used)
		}
		n, _ = p.nc.Read(buf)
		frames := 0
		for b := buf[:n]; len(b) > 0; frames++ {
			_, _, used := frame.Split(b, 1<<20)
			b = b[used:]
		}
		if frames != 3 {
			t.Fatalf("second write holds %d frames, want 3", frames)
		}
		c.Close()
		for _, r := range replies {
			wantConnError(t, (<-r).err, ErrClosed)
		}
	})
}

func TestSendersWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := dialPipe(t)
		call := func(ctx context.Context) error {
			_, err := c.Call(ctx, "kernel", "X", nil)
			return err
		}
		const fit = 1 + maxUnsent // one is with the writer
		errs := make(chan error, fit)
		for range fit {
			go func() { errs <- call(t.Context()) }()
			synctest.Wait()
		}
		if len(c.unsent) != maxUnsent {
			t.Fatalf("%d requests are queued, want %d", len(c.unsent), maxUnsent)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want to wait for room until the deadline", err)
		}
		for range fit {
			p.respond(p.want("kernel.X").ID, `{}`)
		}
		for range fit {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	})
}

func withMaxFrame(n int) Option { return func(o *options) { o.maxFrame = n } }

func TestDialRefusesBadAddresses(t *testing.T) {
	for _, addr := range []string{"", "localhost", "unix://relative", "http://x:1/"} {
		if c, err := Dial(t.Context(), addr); err == nil {
			c.Close()
			t.Errorf("%q was dialled", addr)
		}
	}
	_, err := Dial(t.Context(), "unix://"+t.TempDir()+"/nobody")
	var lost *ConnError
	if !errors.As(err, &lost) {
		t.Fatalf("got %v, want a ConnError", err)
	}
}

func TestCallOfAStreamMethodEndsTheStream(t *testing.T) {
	c, p := dialPipe(t)
	reply := start(c, "Subscribe", t)
	req := p.want("kernel.Subscribe")
	p.chunk(req.ID, `{}`)
	un := p.want("commbus.Unsubscribe")
	if want := `{"stream_id":"` + req.ID + `"}`; string(un.Body) != want {
		t.Fatalf("got %s, want %s", un.Body, want)
	}
	if err := (<-reply).err; err == nil {
		t.Fatal("no error")
	}
}
