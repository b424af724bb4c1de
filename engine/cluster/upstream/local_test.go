package upstream

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// TestLocal: what connects inside of the process has the name of its client, and finds no one once
// the listener is closed.
func TestLocal(t *testing.T) {
	p := NewLocal()
	taken := make(chan net.Conn, 1)
	go func() {
		nc, _ := p.Accept()
		taken <- nc
	}()
	c, err := p.Dial(t.Context(), "10.0.0.1:5")
	if err != nil {
		t.Fatal(err)
	}
	there := <-taken
	if name := there.RemoteAddr().String(); name != "10.0.0.1:5" {
		t.Errorf("the client is %s", name)
	}
	asked := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(there)
		asked <- string(b)
		_, _ = io.WriteString(there, "answer")
		_ = there.Close()
	}()
	_, _ = io.WriteString(c, "question")
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	if answer, err := io.ReadAll(c); err != nil || string(answer) != "answer" || <-asked != "question" {
		t.Errorf("after the end of what was asked: %q, %v", answer, err)
	}
	_ = c.SetDeadline(time.Unix(1, 0))
	for _, use := range []func([]byte) (int, error){c.Read, c.Write} {
		if _, err := use(make([]byte, 1)); err == nil {
			t.Error("a connection that has ended is used")
		}
	}
	_, _, _ = c.Close(), there.Close(), p.Close()
	if _, err := p.Dial(t.Context(), "x"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
}
