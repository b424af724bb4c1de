package conformance

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

// carrier is a way to a server.
type carrier struct {
	name  string
	flags func(s *server) []string
	dial  func(s *server) *conn
	many  bool // a server has several connections
	lines bool // a message is a line
}

// conn is one connection.
type conn struct {
	send  func(message string) error // one whole message
	raw   io.Writer                  // of a carrier of lines
	lines <-chan string              // what the server sends; closed when the connection is
	shut  func()
}

var carriers = []*carrier{stdio}

var stdio = &carrier{
	name:  "stdio",
	flags: func(*server) []string { return nil },
	dial: func(s *server) *conn {
		if s.dials++; s.dials > 1 {
			s.t.Fatal("a server has one stdin")
		}
		return overLines(s.in, s.out, func() { _ = s.in.Close() })
	},
	lines: true,
}

// overLines is a connection over lines.
func overLines(w io.Writer, r io.Reader, shut func()) *conn {
	return &conn{send: func(m string) error { _, err := io.WriteString(w, m+"\n"); return err }, raw: w, lines: readLines(r), shut: shut}
}

// readLines sends all lines of r. The channel is closed at the end.
func readLines(r io.Reader) <-chan string {
	lines := make(chan string, 1<<17)
	go func() {
		defer close(lines)
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	return lines
}

// overAll runs a test over every carrier.
func overAll(t *testing.T, f func(t *testing.T, via *carrier)) {
	over(t, f, func(*carrier) bool { return true })
}

// over runs a test over some carriers.
func over(t *testing.T, f func(t *testing.T, via *carrier), which func(*carrier) bool) {
	for _, c := range carriers {
		if which(c) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				f(t, c)
			})
		}
	}
}
