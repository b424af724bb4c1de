package conformance

import (
	"bufio"
	"context"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"trunkline/fuzz/rounds"
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

var carriers = []*carrier{stdio, tcp, unix, webSocket}

var tcp = &carrier{
	name:  "tcp",
	flags: func(*server) []string { return []string{"--tcp", "127.0.0.1:0"} },
	dial:  func(s *server) *conn { return s.dialLines("tcp", s.address(listensTCP)) },
	many:  true, lines: true,
}

var unix = &carrier{
	name:  "unix",
	flags: func(s *server) []string { return []string{"--unix", filepath.Join(s.home, "s")} },
	dial: func(s *server) *conn {
		s.address(listensUnix)
		return s.dialLines("unix", filepath.Join(s.home, "s"))
	},
	many: true, lines: true,
}

var webSocket = &carrier{
	name:  "ws",
	flags: func(*server) []string { return []string{"--ws", "127.0.0.1:0"} },
	dial:  func(s *server) *conn { return s.dialWeb(nil) },
	many:  true,
}

// dialWeb connects to a WebSocket. One message is one line here.
func (s *server) dialWeb(o *websocket.DialOptions) *conn {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	c, _, err := websocket.Dial(ctx, "ws://"+s.address(listensWeb)+"/exacta/v1/ws", o)
	if cancel(); err != nil {
		s.t.Fatal(err)
	}
	c.SetReadLimit(-1)
	s.dials++
	lines := make(chan string, 1<<17)
	go func() {
		defer close(lines)
		for {
			_, message, err := c.Read(context.Background())
			if err != nil {
				return
			}
			lines <- string(message)
		}
	}()
	return &conn{send: func(m string) error { return c.Write(context.Background(), websocket.MessageText, []byte(m)) }, lines: lines,
		shut: func() { _ = c.CloseNow() }}
}

var (
	listensWeb  = regexp.MustCompile(`(?m)^exacta websocket listening on (.+) \(tcp\)$`)
	listensTCP  = regexp.MustCompile(`(?m)^exacta listening on (.+) \(tcp\)$`)
	listensUnix = regexp.MustCompile(`(?m)^exacta listening on (.+) \(unix\)$`)
)

// address waits until a server listens and returns where, or for another match in its log.
func (s *server) address(listens *regexp.Regexp) string {
	s.t.Helper()
	for deadline := time.Now().Add(waitFor); ; time.Sleep(2 * time.Millisecond) {
		if at := listens.FindStringSubmatch(s.log.String()); at != nil {
			return at[1]
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no %s in the log: %s", listens, s.log)
		}
	}
}

// dialLines connects to a socket.
func (s *server) dialLines(network, address string) *conn {
	s.t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.dials++
	return overLines(c, c, func() { _ = c.Close() })
}

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

// over runs a test over some carriers: over one of them in other than the long form, which differs
// from test to test.
func over(t *testing.T, f func(t *testing.T, via *carrier), which func(*carrier) bool) {
	var some []*carrier
	for _, c := range carriers {
		if which(c) {
			some = append(some, c)
		}
	}
	if !rounds.Long() {
		i := len(t.Name()) % len(some)
		some = some[i : i+1]
	}
	for _, c := range some {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}
