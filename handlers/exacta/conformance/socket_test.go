package conformance

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func overLinesOnly(t *testing.T, f func(t *testing.T, via *carrier)) {
	over(t, f, func(c *carrier) bool { return c.lines })
}

func overSockets(t *testing.T, f func(t *testing.T, via *carrier)) {
	over(t, f, func(c *carrier) bool { return c.lines && c.many })
}

// write writes bytes as they are.
func (c *client) bytes(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn.raw, text); err != nil {
		c.t.Fatal(err)
	}
}

// response waits for the next line that is no event.
func (c *client) response() *reply {
	c.t.Helper()
	r := &reply{t: c.t}
	for {
		if r.end = c.next(); r.end.Type != "event" {
			return r
		}
		r.events = append(r.events, r.end)
	}
}

// TestLines2_1 has the framing of lines: pieces, several in one write, CR, blank lines.
func TestLines2_1(t *testing.T) {
	overLinesOnly(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		pause := func() string { return c.line(c.id(), "Pause", `{"execution_id":"`+noID+`"}`) }
		for _, piece := range strings.SplitAfter(pause(), ":") {
			c.bytes(piece)
		}
		c.bytes("\n")
		c.response().is("ST-001 ")
		one, two, three := pause(), pause(), pause()
		c.bytes("\n \t \n\r\n" + one + "\r\n" + two + "\n" + three[:40])
		for _, line := range []string{one, two} {
			if r := c.response().is("ST-001 "); !strings.Contains(line, *r.end.Request) {
				t.Errorf("got %s", r.end.line)
			}
		}
		c.bytes(three[40:] + "\n")
		c.response().is("ST-001 ")
		c.bytes("{nope\r\r\n") // only one CR is dropped
		c.response().is("IPC-001 invalid_json")
		c.bytes("  " + pause() + " \t\n")
		c.response().is("ST-001 ")
		c.bytes("\u2028\n")
		c.response().is("IPC-001 invalid_json")
	})
}

// TestLastLine2_1 ends the input in the middle of a line: stdin's is processed, one of a socket is
// not.
func TestLastLine2_1(t *testing.T) {
	over(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		c.bytes(c.line(c.id(), "Pause", `{"execution_id":"`+noID+`"}`))
		_ = c.server.in.Close()
		c.closes("response ST-001")
		if code := c.server.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}, func(c *carrier) bool { return c == stdio })
	overSockets(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		c.completes("create a1.txt")
		plan := c.approved("create n.txt")
		c.bytes(c.line(c.id(), "ExecutePlan", `{"plan_id":"`+plan+`"}`)) // without an end
		c.halfClose()
		c.closes()
		two := c.server.connect()
		two.joined = true
		if two.opens(`"state":"AwaitingApproval"`); two.read("n.txt") != "-" {
			t.Error("an unfinished line was taken")
		}
		// what was read runs
		two.bytes(two.line(two.id(), "ExecutePlan", `{"plan_id":"`+plan+`"}`) + "\n")
		two.halfClose()
		three := c.server.connect()
		three.joined, three.project = true, c.project
		three.subscribe(`,"after_stream_seq":0`).is("{…}")
		for n := 0; n < 2; n++ {
			three.until("Executing→Completed ExecutionComplete")
		}
		if three.read("n.txt") == "-" {
			t.Error("nothing was executed")
		}
	})
}

// halfClose ends what a socket sends.
func (c *client) halfClose() {
	c.t.Helper()
	if err := c.conn.raw.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// TestSizes2_1 sends lines of the limit and of one byte more, and one that is discarded.
func TestSizes2_1(t *testing.T) {
	overLinesOnly(t, func(t *testing.T, via *carrier) {
		c := openWith(t, via, []string{"--set", "exacta.max_message_bytes=65536"})
		sized := func(n int) string {
			line := c.line(c.id(), "Pause", `{"execution_id":"`+noID+`","x":"%"}`)
			return strings.Replace(line, "%", strings.Repeat("x", n-len(line)+1), 1)
		}
		c.message(sized(65_536)).is("ST-001 ")
		c.message(sized(65_536) + "\r").is("ST-001 ")
		if r := c.message(sized(65_537)).want("", "IPC-001 message_too_large"); r.end.Request != nil {
			t.Errorf("got %s", r.end.line)
		}
		c.message(sized(500_000)).want("", "IPC-001 message_too_large")
		c.message(sized(65_536)).is("ST-001 ")
		if !via.many {
			c.message(sized(1<<20)).want("", "IPC-001 message_too_large")
			c.message(sized(65_536)).is("ST-001 ")
			return
		}
		// More than 8 times the limit in one line closes a socket, maybe before all is written.
		_, _ = io.WriteString(c.conn.raw, strings.Repeat("x", 65_536*8+65_536))
		c.closes("response IPC-001")
	})
	over(t, func(t *testing.T, via *carrier) { // the default
		c := open(t, via)
		line := c.line(c.id(), "Pause", `{"execution_id":"`+noID+`","x":"%"}`)
		whole := strings.Replace(line, "%", strings.Repeat("x", 8<<20-len(line)+1), 1)
		c.message(whole).is("ST-001 ")
		c.message(whole+" ").want("", "IPC-001 message_too_large")
		c.message(`{"a":"`+strings.Repeat("x", 9<<20)+`"}`).want("", "IPC-001 message_too_large")
		c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
	}, func(c *carrier) bool { return c == unix })
}

// TestBadLines2_1 closes a socket after 32 unreadable lines in a row, and never stdin.
func TestBadLines2_1(t *testing.T) {
	overLinesOnly(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		bad := func(n int) {
			for i := range n {
				c.message([]string{"{nope", "[]", `{"ipc_version":"1"}`}[i%3]).is("IPC-001 ")
			}
		}
		for range 3 {
			bad(31)
			c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
		}
		if !via.many {
			bad(100)
			c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
			return
		}
		bad(31)
		c.sends("{nope")
		c.closes("response IPC-001")
	})
}

// TestGuard2_1 sends HTTP to the port: one refusal at most, and nothing of it is a request.
func TestGuard2_1(t *testing.T) {
	t.Parallel()
	c := open(t, tcp)
	request := c.line(c.id(), "CloseProject", "")
	for _, first := range []string{"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "GET /\n", "[]\n", "x", " \t\n\r\n nope\n", "\x16\x03\x01\n", "\"\n"} {
		raw, err := net.Dial("tcp", c.server.address(listensTCP))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = io.WriteString(raw, first+request+"\n"+request+"\n"); err != nil {
			t.Fatal(err)
		}
		_ = raw.(*net.TCPConn).CloseWrite()
		text, _ := io.ReadAll(raw) // a reset is an end too
		_ = raw.Close()
		if lines := bytes.Count(text, []byte("\n")); lines > 1 || lines == 1 && !bytes.Contains(text, []byte(`"IPC-001"`)) {
			t.Errorf("%q: got %s", first, text)
		}
	}
	c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ") // the project is open
	// unix sockets and stdin have no guard
	over(t, func(t *testing.T, via *carrier) {
		s := serve(t, via)
		s.write("go.mod", "module x\n")
		c := s.connect()
		c.message("GET / HTTP/1.1").is("IPC-001 invalid_json")
		c.opens("")
	}, func(c *carrier) bool { return c == stdio || c == unix })
}

// TestToken2_1 has the first line of a connection where a token is set.
func TestToken2_1(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	home := realTemp(t)
	if err := os.WriteFile(filepath.Join(home, "token"), []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, tcp, home, append(append([]string(nil), fixed...), "--set", "exacta.auth_token_file="+filepath.Join(home, "token"))...)
	s.write("go.mod", "module x\n")
	for _, first := range []string{`{"type":"auth","token":"0123456789abcdeg"}`, `{"type":"auth","token":"0123456789abcde"}`, `{"type":"auth","token":"0123456789abcdef0"}`, `{"type":"auth"}`,
		`{"type":"auth","token":5}`, `{"type":"Auth","token":"` + token + `"}`, `{nope`, `[]`, `GET / HTTP/1.1`, `{"ipc_version":"1.0","type":"request","request_id":"` + used +
			`","sent_at":"2026-01-15T00:00:00Z","command":"OpenProject","payload":{"path":"/"}}`} {
		c := s.connect()
		c.bytes(first + "\n" + `{"type":"auth","token":"` + token + `"}` + "\n")
		c.closes("response SEC-002")
	}
	c := s.connect()
	c.sends(`{"type":"auth","token":"` + token + `"}`)
	if m := c.next(); m.Type != "ack" || m.Request != nil || !m.OK {
		t.Errorf("got %s", m.line)
	}
	c.opens("")
	if strings.Contains(s.log.String(), token) {
		t.Errorf("the log has the token: %s", s.log)
	}
}

// TestListen2_1 has addresses that are refused, and the socket file.
func TestListen2_1(t *testing.T) {
	t.Parallel()
	refused := func(flags ...string) {
		t.Helper()
		s := serveIn(t, stdio, realTemp(t), flags...)
		if code := s.wait(); code == 0 {
			t.Errorf("%v: exit code 0; %s", flags, s.log)
		}
	}
	refused("--tcp", "0.0.0.0:0")
	refused("--tcp", "[::]:0")
	s := serve(t, unix)
	s.address(listensUnix)
	path := filepath.Join(s.home, "s")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v, %v", info.Mode(), err)
	}
	refused("--unix", path) // it is in use
	s.kill()
	s.start() // it is stale
	s.write("go.mod", "module x\n")
	s.connect().opens("")
	if code := s.stop(); code != 0 {
		t.Errorf("exit code %d; %s", code, s.log)
	}
	if err := os.WriteFile(filepath.Join(s.home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused("--unix", filepath.Join(s.home, "file"))
}

// TestDebugCommands4_12 is off over TCP and WebSocket, and on otherwise; the setting changes it.
func TestDebugCommands4_12(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		for setting, on := range map[string]bool{"": len(debugOn(via)) == 0, "on": true, "off": false} {
			var flags []string
			if setting != "" {
				flags = []string{"--set", "exacta.debug_commands=" + setting}
			}
			c := openWith(t, via, flags)
			c.ask("ApplyDiffSet", `{"diffs":[]}`).want("", "IPC-009 diffs:") // step 14 before 15
			if on {
				c.ask("ApplyDiffSet", diffs("NO_CHANGES_REQUIRED")).is(`{"applied":false,…}`)
				continue
			}
			r := c.ask("ApplyDiffSet", diffs("NO_CHANGES_REQUIRED")).want("", "CFG-002 ")
			if r.end.Error.Message != "A required setting is missing: debug_commands." {
				t.Errorf("got %s", r.end.line)
			}
			c.ask("ApplyDiffSet", strings.Replace(diffs("x"), "{", `{"project_id":"`+noID+`",`, 1)).want("", "CFG-002 ") // before 16
		}
	})
}

// TestInFlight4_0_1 has 64 unanswered requests of a connection, spread over two projects.
func TestInFlight4_0_1(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := openWith(t, via, []string{"--set", "exacta.max_inflight_per_connection=3", "--set", "exacta.max_parked_per_project=1"}, inMake...)
		c.server.write("slow", "")
		build := c.begin("Build", "")
		c.until("build 0/1")
		waits := c.begin("ValidatePlan", `{"plan_id":"`+noID+`"}`)
		c.ask("ValidatePlan", `{"plan_id":"`+noID+`"}`).is("RES-004 parked requests: 1")
		c.server.write("../q/go.mod", "module q\n")
		c.server.write("../q/.exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`)
		q := c.at(filepath.Join(c.home, "q"), "{…}").field("project_id")
		c.server.write("../q/Makefile", slowMake)
		c.server.write("../q/slow", "")
		other := c.begin("Build", `{"project_id":"`+q+`"}`)
		c.until("build 0/1")
		r := c.ask("OpenProject", `{"path":`+quote(c.dir())+`}`).is("RES-004 unanswered requests: 3")
		if r.end.Error.Message != "The server is busy." {
			t.Errorf("got %s", r.end.line)
		}
		c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
		c.server.remove("slow")
		c.server.remove("../q/slow")
		ended := map[string]bool{}
		for len(ended) < 3 {
			if m := c.next(); m.Type == "response" {
				ended[*m.Request] = true
			}
		}
		if !ended[build] || !ended[waits] || !ended[other] {
			t.Errorf("answered: %v", ended)
		}
		c.ask("OpenProject", `{"path":`+quote(c.dir())+`}`).is("{…}")
	})
}

// TestConnections6_1 has one connection more than is allowed.
func TestConnections6_1(t *testing.T) {
	overSockets(t, func(t *testing.T, via *carrier) {
		s := serve(t, via, "--set", "exacta.max_connections=2")
		s.write("go.mod", "module x\n")
		one, two := s.connect(), s.connect()
		one.opens("")
		two.opens("")
		three := s.connect()
		three.closes("response RES-004")
		two.conn.shut()
		for { // the end of a connection is seen a little later
			again := s.connect()
			_, _ = io.WriteString(again.conn.raw, "{}\n") // it may be closed already
			line := <-again.conn.lines
			if again.conn.shut(); strings.Contains(line, "missing:ipc_version") {
				return
			}
		}
	})
}

// TestEnd2_1 ends the input of stdin while something runs: it is finished, and the exit code is 0.
func TestEnd2_1(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	c.server.write("slow", "")
	c.executes("build; create n.txt")
	c.until("build 0/1")
	_ = c.server.in.Close()
	c.remove("slow")
	c.until("Executing→Completed ExecutionComplete")
	c.closes()
	if code := c.server.wait(); code != 0 || c.read("n.txt") == "-" {
		t.Errorf("exit code %d", code)
	}
}

// drains is what a server logs that ends while something runs.
var drains = regexp.MustCompile(`(draining projects)`)

// TestSignal2_1 ends the server while a step runs: it pauses behind it, and the exit code is 0.
func TestSignal2_1(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		c.server.write("slow", "")
		x := c.executes("build; create n.txt")
		c.until("build 0/1")
		if err := c.server.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		c.server.address(drains) // a build that ends before the signal is seen is followed by the next step
		c.remove("slow")
		if code := c.server.wait(); code != 0 || c.read("n.txt") != "-" {
			t.Errorf("exit code %d, n.txt %q", code, c.read("n.txt"))
		}
		c.server.start()
		two := c.server.connect()
		two.opens(`"state":"Paused"`)
		two.ask("Resume", `{"execution_id":"`+x+`"}`).is("{…}")
		two.until("Executing→Completed ExecutionComplete")
	})
}
