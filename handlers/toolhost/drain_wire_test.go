package toolhost

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
)

// pairs serves r's tools over a network, by goroutines: event loops have their tests where they
// are, and hand over to these.
func (r *rig) pairs(network string) (h *stream.Host, addr string) {
	r.t.Helper()
	h = stream.NewHost(stream.Config{Limits: r.srv.SocketLimits(), Open: r.srv.OpenSocket})
	if addr = "127.0.0.1:0"; network == "unix" {
		addr = r.t.TempDir() + "/s"
	}
	ln, err := net.Listen(network, addr)
	if err != nil {
		r.t.Fatal(err)
	}
	go func() { _ = h.ServeListener(ln) }()
	r.t.Cleanup(func() { _ = h.Close(context.Background()) })
	return h, ln.Addr().String()
}

func dialTools(t testing.TB, network, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

// draining reports whether all connections were ordered to drain, or have ended.
func draining(s *stream.Host) bool {
	return !slices.ContainsFunc(s.Connections(nil), func(c obs.Connection) bool { return c.State == "open" })
}

// TestNoReplyIsLostByADrain: every line that was sent before has its reply, although the peer reads
// none of them before it is informed, and sends one more after that (toolhost §2.3).
func TestNoReplyIsLostByADrain(t *testing.T) {
	const lines = 4000
	f := func(network, ending string, end func(*stream.Host)) {
		t.Run(network+ending, func(t *testing.T) {
			s, addr := newRig(t, nil).pairs(network)
			c := dialTools(t, network, addr)
			noop := `{"aid":"AID.NOOP.v1"}` + "\n"
			go func() { _, _ = io.WriteString(c, strings.Repeat(noop, lines)+ending) }()
			var first [1]byte
			if _, err := io.ReadFull(c, first[:]); err != nil {
				t.Fatal(err)
			}
			for s.Snapshot().BytesIn < int64(lines*len(noop)+len(ending)) {
				time.Sleep(time.Millisecond)
			}
			ended := make(chan struct{})
			go func() { defer close(ended); end(s) }()
			for ending == "" && !draining(s) {
				time.Sleep(time.Millisecond)
			}
			_, _ = io.WriteString(c, noop)
			got, err := io.ReadAll(c)
			most := lines
			if ending == "" { // the connection may come to its order behind the last line
				most++
			}
			if n := bytes.Count(got, []byte(`"ok":true`)); n < lines || n > most || err != nil {
				t.Errorf("%d of %d replies, %v", n, lines, err)
			}
			<-ended
		})
	}
	f("tcp", "", func(s *stream.Host) { _ = s.Shutdown(context.Background()) })
	f("tcp", "\n", func(*stream.Host) {})
	f("unix", "", func(s *stream.Host) { _ = s.Shutdown(context.Background()) })
}

// TestLinesAfterTheOrderToEndAreRefused: also behind a tool that runs (toolhost §2.3).
func TestLinesAfterTheOrderToEndAreRefused(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			r := newRig(t, nil)
			s, addr := r.pairs(network)
			c := dialTools(t, network, addr)
			if _, err := io.WriteString(c, `{"aid":"AID.WAIT.v1"}`+"\n"+`{"aid":"AID.COUNT.v1"}`+"\n"); err != nil {
				t.Fatal(err)
			}
			r.awayBegun()
			ended := make(chan struct{})
			go func() { defer close(ended); _ = s.Shutdown(context.Background()) }()
			time.Sleep(100 * time.Millisecond)
			if _, err := io.WriteString(c, `{"aid":"AID.COUNT.v1","request_id":"late"}`+"\n"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			close(r.gate)
			got, err := io.ReadAll(c)
			replies := strings.Split(string(got), "\n")
			if len(replies) != 4 || replies[1] != okReply || !strings.Contains(replies[2], `"shutting_down","request_id":"late"`) || err != nil {
				t.Errorf("%v\n%s", err, got)
			}
			r.wantRuns(2)
			<-ended
		})
	}
}

// backlog sends lines of a tool that runs off the loops before it reads any reply, and then reads
// them all.
func backlog(t *testing.T, w io.Writer, in io.Reader, lines int, line string) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		for range lines {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	select {
	case err := <-sent:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the peer is stuck")
	}
	replies := bufio.NewReader(in)
	for i := range lines {
		if got, err := replies.ReadString('\n'); err != nil || !strings.HasPrefix(got, `{"ok":true`) {
			t.Fatalf("reply %d: %v, %.200s", i, err, got)
		}
	}
}

// TestABacklogIsTaken up to its bounds, on every transport (toolhost §2.2).
func TestABacklogIsTaken(t *testing.T) {
	small := `{"aid":"AID.AWAY.v1","inputs":{"text":"` + strings.Repeat("x", 50) + `"}}`
	large := `{"aid":"AID.AWAY.v1","inputs":{"text":"` + strings.Repeat("x", 300_000) + `"}}`
	for _, network := range []string{"tcp", "unix"} {
		r := newRig(t, nil)
		_, addr := r.pairs(network)
		for _, line := range []string{small, large} {
			c := dialTools(t, network, addr)
			backlog(t, c, c, 1+min(5000, heldBytes/len(line)), line)
		}
	}
	for _, line := range []string{small, large} {
		host := stream.NewHost(stream.Config{Limits: StdinLimits(), Open: newRig(t, nil).srv.OpenStdin})
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		go func() { _ = host.Serve(stdio{inR, outW}, "stdin") }()
		backlog(t, inW, outR, min(1000, heldBytes/len(line)), line)
		_ = inW.Close()
		_ = host.Close(t.Context())
	}
}

// stdio is stdin and stdout as one transport; nothing of it has room for a byte.
type stdio struct {
	io.ReadCloser
	io.Writer
}

// TestHeldLimits states what may wait (toolhost §2.2).
func TestHeldLimits(t *testing.T) {
	for _, l := range []connection.Limits{StdinLimits(), new(Server).SocketLimits()} {
		if l.AheadBytes != 16<<20 || l.AheadFrames != 1024 || l.FramesIn([]byte("{}\n{}\n{}")) != 2 {
			t.Errorf("%+v", l)
		}
		f := func(bytes, frames int, paused, want bool) {
			t.Helper()
			if got := l.Full(bytes, frames, paused); got != want {
				t.Errorf("%d bytes in %d lines, paused %v: %v", bytes, frames, paused, got)
			}
		}
		f(16<<20-1, 1023, false, false)
		f(16<<20, 1, false, true)
		f(1, 1024, false, true)
		f(8<<20, 512, true, false)
		f(8<<20+1, 1, true, true)
		f(1, 513, true, true)
	}
}
