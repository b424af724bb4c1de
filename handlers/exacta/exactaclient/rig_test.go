package exactaclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"trunkline/engine/connection"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// realServer is a server of projects on a socket, whose connections can be broken.
type realServer struct {
	addr string
	srv  *exacta.Server
	host *stream.Host
	last chan net.Conn
}

func serveProjects(t *testing.T) *realServer {
	t.Helper()
	s := &realServer{srv: exacta.New(exacta.Config{Logger: slog.New(slog.DiscardHandler)}), last: make(chan net.Conn, 16)}
	s.host = stream.NewHost(stream.Config{
		Open:   func(p *connection.Port) connection.Session { return s.srv.Open(p, exacta.Unix, nil) },
		Limits: s.srv.SocketLimits(),
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.last <- nc
			go func() { _ = s.host.Serve(nc, "peer") }()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		<-ended
		_ = s.host.Shutdown(context.Background())
		s.srv.Close()
	})
	return s
}

// project makes a project and opens it; a command is asked of it by ask.
type openedProject struct {
	t       *testing.T
	conn    *Conn
	dir, id string
	session string
	last    uint64
}

func openProject(t *testing.T, addr string) *openedProject {
	t.Helper()
	p := &openedProject{t: t, dir: t.TempDir()}
	for name, text := range map[string]string{"go.mod": "module x\n", "README.md": "# Demo\n\nHello.\n"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.conn = dial(t, addr, "")
	payload, _ := json.Marshal(map[string]string{"path": p.dir})
	m, err := p.conn.Ask(t.Context(), "OpenProject", payload, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.id, p.session, p.last = m.Result.Text("project_id"), m.Result.Text("session_id"), uint64(m.Result.Int("stream_seq"))
	return p
}

func dial(t *testing.T, addr, token string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), addr, Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ask sends a command with further fields and returns its result.
func (p *openedProject) ask(command string, fields map[string]any) Object {
	p.t.Helper()
	all := map[string]any{"project_id": p.id}
	for k, v := range fields {
		all[k] = v
	}
	payload, _ := json.Marshal(all)
	m, err := p.conn.Ask(p.t.Context(), command, payload, func(m *Message) error {
		p.last = max(p.last, m.StreamSeq)
		return nil
	})
	if err != nil {
		p.t.Fatalf("%s: %v", command, err)
	}
	return append(Object(nil), m.Result...)
}

// plan makes a plan.
func (p *openedProject) plan(text string) string {
	p.t.Helper()
	intent := p.ask("ExtractIntent", map[string]any{"user_input": text}).Object("intent").Text("id")
	return p.ask("GeneratePlan", map[string]any{"intent_id": intent}).Text("plan_id")
}

// fakeServer answers each line of its connections as the test wants. {R} in an answer is the
// request_id of the line; an empty answer is none, and close ends the connection.
func fakeServer(t *testing.T, answer func(n int, line string) (text string, end bool)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		ln.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		n := 0
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { nc.Close() })
			lines := bufio.NewScanner(nc)
			for end := false; !end && lines.Scan(); n++ {
				var asked struct {
					RequestID string `json:"request_id"`
				}
				_ = json.Unmarshal(lines.Bytes(), &asked)
				var text string
				text, end = answer(n, lines.Text())
				fmt.Fprint(nc, strings.ReplaceAll(text, "{R}", asked.RequestID))
			}
			stop()
			nc.Close()
		}
	}()
	return ln.Addr().String()
}
