package proxy

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"trunkline/handlers/internal/httpd"
	"trunkline/handlers/threads/lines"
)

// FuzzFirstLine sends bytes in pieces: the token does not depend on how they are cut, and the owner
// gets all of them, but empty lines in front.
func FuzzFirstLine(f *testing.F) {
	auth := authLine("a.b.c")
	for _, text := range []string{"", "\n\r\n" + auth + ping, auth, "x\n", ping + auth, "\r\r\n" + auth} {
		f.Add([]byte(text), uint8(3))
	}
	f.Fuzz(func(t *testing.T, text []byte, step uint8) {
		whole, again := first(t, text, len(text)), first(t, text, int(step))
		if whole != again {
			t.Fatalf("%+v in one piece, %+v in pieces of %d", whole, again, step)
		}
		if !whole.ok {
			return
		}
		if skipped, ok := bytes.CutSuffix(text, []byte(whole.all)); !ok || len(bytes.Trim(skipped, "\r\n")) > 0 {
			t.Errorf("%q is left of %q", whole.all, text)
		}
		line, _, _ := bytes.Cut([]byte(whole.all), []byte("\n"))
		if want := lines.Bearer(bytes.TrimSuffix(line, []byte("\r"))); len(line) <= lines.MaxGuestLine && whole.bearer != want {
			t.Errorf("the token %q of %q", whole.bearer, line)
		}
	})
}

// met is what a guest was found to be.
type met struct {
	bearer, all string
	ok          bool
}

// first reads the first line of what comes in pieces, and then the rest as the owner gets it.
func first(t *testing.T, text []byte, step int) (m met) {
	here, there := net.Pipe()
	l := &Lines{router: newRouter(Config{}), within: time.Minute}
	l.drains = t.Context()
	g := &guest{Conn: httpd.NewBook("x", "x").Enter(there, "x"), l: l}
	defer g.Conn.Close()
	go func() {
		defer here.Close()
		for len(text) > 0 {
			n := min(max(step, 1), len(text))
			if _, err := here.Write(text[:n]); err != nil {
				return
			}
			text = text[n:]
		}
	}()
	if m.bearer, m.ok = g.first(); m.ok {
		if cap(g.ahead) > mostBytes {
			t.Errorf("a buffer of %d bytes", cap(g.ahead))
		}
		all, _ := io.ReadAll(g)
		m.all = string(all)
	}
	return m
}
