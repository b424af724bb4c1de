package conformance

import (
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"trunkline/codec/transcode"
)

// script holds one conversation file. Its commands:
//
//	server [setting=value …]      a fresh server; clock=real: not that of wallStart
//	connect a b …                 open connections; paused=true: not read before "resume a"
//	send a [repeat=n]             lines: a JSON twin, or ID SERVICE.METHOD [BODY]; one write
//	recv a [n=1] [id=x]           the next frames, or the next ones of one id
//	call a                        send and recv of each line's id, one after the other
//	frame a [type=01]             a frame around a payload in byte tokens
//	raw a                         byte tokens as they are
//	recv-hex a [n=1]              the next frames in hex, 64 bytes to a line
//	order a n=…                   the next frames' types and ids only
//	eof a · close a               end the sending half, or everything
//	closed a [discard]            wait for the server to close; frames before it are an answer too
//	quiet a [for=50ms]            nothing comes
//	await a subscribers=n         ask by a until the server has n subscriptions
//	sleep 50ms · advance 10s      real time, or the server's clock
//	sweep · drain · resume a      garbage collection, shutdown, reading
//	let name                      the lines below stand for $name in later requests
//
// Answers may be cut down: only=(key,…) keeps those keys of every map that has one of them and
// marks the rest by "…"; mask=(key,…) replaces generated values after checking their form (see
// mask). save=name keeps the query_id or next_cursor of an answer for $name in later requests,
// save=(name,path) the value at a path of the body, "." being the body. In requests <x*1025> stands
// for 1025 times x, and in answers too; «…» stands for a string whose content it is.
//
// Where the contract leaves the order of keys free, "sorted" sorts them, and show=(path,…) prints a
// reply as the values at some paths of its body, sorted inside; a path that is not there is
// "absent".
type script struct {
	file   testing.TB // the whole conversation
	t      testing.TB // the command being run
	srv    server
	conns  map[string]*wireConn
	vars   map[string]string
	clock  *clock
	limit  int    // max_frame_bytes in force
	listen string // where servers listen; empty is a loopback port
	kept   bool   // servers are in store.mode always, each in a directory of its own
	put    func(nc net.Conn, b []byte) error
	drain  sync.WaitGroup

	partitions int    // of servers, which are behind a router then
	program    string // serves in place of ipctest, see programServer
	anyOrder   bool   // the frames of one recv may come in another order than written
}

// wallStart is the time of kernel-ipc §9.6, in Unix milliseconds.
const wallStart = 1700000000000

// clock is the server's clock when a script moves it.
type clock struct {
	mu   sync.Mutex
	mono int64
	wall int64
}

func (c *clock) now() (mono, wall int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mono, c.wall
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mono += int64(d)
	c.wall += d.Milliseconds()
}

func newScript(t testing.TB, put func(net.Conn, []byte) error) *script {
	s := &script{file: t, vars: map[string]string{}, conns: map[string]*wireConn{}, put: put}
	t.Cleanup(s.closeAll)
	return s
}

func (s *script) runFile(path string) {
	datadriven.RunTestAny(s.file, path, s.run)
}

func (s *script) closeAll() {
	for _, c := range s.conns {
		c.close()
	}
	clear(s.conns)
	s.drain.Wait()
	if p, ok := s.srv.(*programServer); ok {
		p.finished()
	}
}

// run executes one command and returns its answer. Mistakes in the script are fatal, surprises of
// the server are answers.
func (s *script) run(t testing.TB, d *datadriven.TestData) string {
	t.Helper()
	s.t = t
	switch d.Cmd {
	case "server":
		s.closeAll()
		s.startServer(d)
	case "connect":
		return s.connect(d)
	case "sleep":
		time.Sleep(s.duration(d.CmdArgs[0].Key))
	case "advance":
		within := s.duration(d.CmdArgs[0].Key)
		s.clock.advance(within)
		s.srv.advanced(within)
	case "sweep":
		s.srv.Sweep()
	case "let":
		s.vars[d.CmdArgs[0].Key] = s.substitute(strings.ReplaceAll(d.Input, "\n", " "))
	case "drain":
		s.drain.Go(s.srv.Drain)
	default:
		return s.onConn(d)
	}
	return ""
}

func (s *script) onConn(d *datadriven.TestData) string {
	s.t.Helper()
	if len(d.CmdArgs) == 0 {
		d.Fatalf(s.t, "which connection?")
	}
	c := s.conns[d.CmdArgs[0].Key]
	if c == nil {
		d.Fatalf(s.t, "no connection %q", d.CmdArgs[0].Key)
	}
	switch d.Cmd {
	case "send":
		return s.write(c, joinRequests(s.requests(d)))
	case "call":
		return s.call(c, d)
	case "recv":
		return s.recv(c, d)
	case "recv-hex":
		return s.recvHex(c, d)
	case "order":
		return s.order(c, d)
	case "frame":
		return s.write(c, s.frame(d))
	case "raw":
		return s.write(c, s.bytes(d))
	case "eof":
		c.closeWrite()
	case "close":
		c.close()
	case "resume":
		c.start()
	case "await":
		return s.await(c, d)
	case "closed":
		return s.closed(c, d)
	case "quiet":
		return s.quiet(c, d)
	default:
		d.Fatalf(s.t, "unknown command")
	}
	return ""
}

func (s *script) connect(d *datadriven.TestData) string {
	s.t.Helper()
	if s.srv == nil {
		s.startServer(d)
	}
	paused, dial := false, dial
	var names []string
	for _, a := range d.CmdArgs {
		if a.Key == "paused" {
			paused, dial = true, dialSlow
			continue
		}
		names = append(names, a.Key)
	}
	for _, name := range names {
		c, err := dial(s.srv.addr())
		if err != nil {
			d.Fatalf(s.t, "cannot connect %s: %v", name, err)
		}
		if old := s.conns[name]; old != nil {
			old.close()
		}
		s.conns[name] = c
		if !paused {
			c.start()
		}
	}
	return ""
}

func (s *script) write(c *wireConn, b []byte) string {
	if err := s.put(c.nc, b); err != nil {
		return "cannot write: " + err.Error() + "\n"
	}
	return ""
}

func (s *script) call(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	var out strings.Builder
	for _, r := range s.requests(d) {
		out.WriteString(s.write(c, r.frame))
		out.WriteString(s.show(c, d, 1, r.id, true))
	}
	return out.String()
}

func (s *script) recv(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	n, id := 1, ""
	byID := d.HasArg("id")
	d.MaybeScanArgs(s.t, "n", &n)
	d.MaybeScanArgs(s.t, "id", &id)
	id = unfoldRuns(id)
	got := s.show(c, d, n, id, byID)
	if s.anyOrder && slices.Equal(sortedLines(got), sortedLines(d.Expected)) {
		return d.Expected
	}
	return got
}

func sortedLines(text string) []string { return slices.Sorted(strings.Lines(text)) }

func (s *script) show(c *wireConn, d *datadriven.TestData, n int, id string, byID bool) string {
	s.t.Helper()
	var out strings.Builder
	for range n {
		f, why := c.next(id, byID, patience)
		if why != "" {
			out.WriteString(why + "\n")
			break
		}
		out.WriteString(s.render(f, d) + "\n")
	}
	return out.String()
}

func (s *script) recvHex(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	n := 1
	d.MaybeScanArgs(s.t, "n", &n)
	var out strings.Builder
	for range n {
		f, why := c.next("", false, patience)
		if why != "" {
			return out.String() + why + "\n"
		}
		const perLine = 64
		for b := f.raw; len(b) > 0; b = b[min(perLine, len(b)):] {
			fmt.Fprintf(&out, "% x\n", b[:min(perLine, len(b))])
		}
	}
	return out.String()
}

// order prints the frames as TYPE id, runs of one type with ids counting up by one as TYPE
// first..last.
func (s *script) order(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	n := 1
	d.ScanArgs(s.t, "n", &n)
	var lines []string
	for range n {
		f, why := c.next("", false, patience)
		if why != "" {
			lines = append(lines, why)
			break
		}
		lines = append(lines, f.name()+" "+f.id)
	}
	return strings.Join(fold(lines), "\n") + "\n"
}

func (s *script) closed(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	discard := d.HasArg("discard")
	var out strings.Builder
	for {
		f, why := c.next("", false, closeWithin)
		if discard && why == endInside {
			why = endClean
		}
		if why != "" {
			return out.String() + why + "\n"
		}
		if !discard {
			out.WriteString(s.render(f, d) + "\n")
		}
	}
}

func (s *script) await(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	var n int
	d.ScanArgs(s.t, "subscribers", &n)
	ask, err := transcode.EncodeJSON([]byte(`{"id":"await","service":"kernel","method":"GetSystemStatus","body":{}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	for {
		if failed := s.write(c, appendFrame(nil, 0x01, ask)); failed != "" {
			return failed
		}
		f, why := c.next("await", true, patience)
		if why != "" {
			return why + "\n"
		}
		if parseTwin(f.twin).get("body").get("commbus").get("active_subscribers").scalar == strconv.Itoa(n) {
			return ""
		}
	}
}

func (s *script) quiet(c *wireConn, d *datadriven.TestData) string {
	s.t.Helper()
	wait := "50ms"
	d.MaybeScanArgs(s.t, "for", &wait)
	f, why := c.next("", false, s.duration(wait))
	switch why {
	case nothing:
		return ""
	case "":
		return s.render(f, d) + "\n"
	}
	return why + "\n"
}

func (s *script) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) frame(d *datadriven.TestData) []byte {
	s.t.Helper()
	kind := "01"
	d.MaybeScanArgs(s.t, "type", &kind)
	k, err := hex.DecodeString(kind)
	if err != nil || len(k) != 1 {
		d.Fatalf(s.t, "bad type %q", kind)
	}
	return appendFrame(nil, k[0], s.bytes(d))
}
