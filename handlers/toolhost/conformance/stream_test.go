package conformance

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// maxReply is the length of a reply line with its end (toolhost §2.2).
const maxReply = 1 << 20

// ended is what next answers when the other side closed, silent when nothing came in time.
const (
	ended  = "(end of stream)"
	silent = "(nothing)"
)

// stream is one conversation: a connection or the standard streams of a process.
type stream struct {
	w         io.Writer
	halfClose func() error
	close     func()
	lines     chan string
	rest      string // bytes after the last line end, once the stream has ended
}

func newStream(r io.Reader, w io.Writer, half func() error, shut func()) *stream {
	s := &stream{w: w, halfClose: half, close: shut, lines: make(chan string, 1<<16)}
	go func() {
		defer close(s.lines)
		b := bufio.NewReaderSize(r, 1<<16)
		for {
			line, err := b.ReadString('\n')
			if err != nil {
				s.rest = line
				return
			}
			s.lines <- line[:len(line)-1]
		}
	}()
	return s
}

func connStream(nc net.Conn) *stream {
	half := func() error {
		return nc.(interface{ CloseWrite() error }).CloseWrite()
	}
	return newStream(nc, nc, half, func() { nc.Close() })
}

// next returns the next reply line, ended or silent.
func (s *stream) next(patience time.Duration) string {
	select {
	case line, ok := <-s.lines:
		if ok {
			return line
		}
		if s.rest != "" {
			rest := s.rest
			s.rest = ""
			return "(unterminated) " + rest
		}
		return ended
	case <-time.After(patience):
		return silent
	}
}

// send writes all of it, in the background: a server may stop reading before it answers.
func (s *stream) send(b []byte) {
	if len(b) <= 1<<14 {
		s.w.Write(b)
		return
	}
	go s.w.Write(b)
}

// inOrder is how the members of a tool reply follow each other (toolhost §3.2).
var inOrder = []string{"ok", "status", "output_json", "error", "idempotent_hit", "ds_state", "dispatch_error", "request_id"}

// checkReply holds what is true of every reply line, whatever it answers (toolhost §2.5, §3.2,
// §3.3).
func checkReply(t testing.TB, where, line string) {
	t.Helper()
	if len(line)+1 > maxReply {
		t.Errorf("%s: a reply of %d bytes (§2.2)", where, len(line)+1)
	}
	if !utf8.ValidString(line) {
		t.Errorf("%s: a reply that is not UTF-8 (§2.5): %q", where, clip(line))
	}
	names, ok := memberNames(line)
	if !ok || len(names) == 0 || names[0] != "ok" {
		t.Errorf("%s: not an object that begins with ok: %s", where, clip(line))
		return
	}
	if !slices.Contains(names, "output_json") {
		return
	}
	last := -1
	for _, n := range names {
		i := slices.Index(inOrder, n)
		if i <= last {
			t.Errorf("%s: member %s is out of order or unknown (§3.2): %v", where, n, names)
			return
		}
		last = i
	}
}

// memberNames lists the top-level members of an object in their order.
func memberNames(line string) (names []string, ok bool) {
	d := json.NewDecoder(strings.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, false
		}
		names = append(names, t.(string))
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return nil, false
		}
	}
	_, err := d.Token()
	return names, err == nil && !d.More()
}
