package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/handlers/exacta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds what a test waits for.
const patience = time.Minute

// rig is a server over WebSocket, on loopback.
type rig struct {
	*Server
	projects *exacta.Server
	addr     string
}

// start serves c; change may change what the WebSockets need.
func start(t testing.TB, c exacta.Config, change func(*config)) *rig {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	r := &rig{projects: exacta.New(c)}
	wc := configOf(r.projects, exacta.WebSocket, wsPath)
	wc.token = func() string { return c.AuthToken }
	if change != nil {
		change(&wc)
	}
	r.Server = newServer(wc)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = ln.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.Serve(ln) }()
	t.Cleanup(func() {
		r.stop(t)
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

// stop ends the server.
func (r *rig) stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r.projects.Stop()
	if err := r.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	r.projects.Close()
}

// raw is a client that writes frames by hand.
type raw struct {
	t testing.TB
	net.Conn
	br *bufio.Reader
}

const handshake = "GET " + wsPath + " HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n" +
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// dial sends a request without its last empty line, and returns the answer.
func dial(t testing.TB, addr, request string) (*raw, *http.Response) {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(nc, request+"\r\n"); err != nil {
		t.Fatal(err)
	}
	br := bufio.NewReader(nc)
	resp, err := http.ReadResponse(br, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &raw{t, nc, br}, resp
}

func open(t testing.TB, addr string) *raw {
	t.Helper()
	c, resp := dial(t, addr, handshake)
	if resp.StatusCode != http.StatusSwitchingProtocols || resp.Header.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatal(resp)
	}
	return c
}

// masked returns a frame of a client.
func masked(first byte, payload []byte) []byte {
	f := appendFrame(nil, first, payload)
	head := len(f) - len(payload)
	f[1] |= 0x80
	key := []byte{1, 2, 3, 4}
	out := append(bytes.Clone(f[:head]), key...)
	for i, c := range payload {
		out = append(out, c^key[i%4])
	}
	return out
}

func (c *raw) send(frames ...[]byte) {
	c.t.Helper()
	if _, err := c.Write(bytes.Join(frames, nil)); err != nil {
		c.t.Fatal(err)
	}
}

// frame reads a frame.
func (c *raw) frame() (first byte, payload []byte) {
	c.t.Helper()
	head := make([]byte, 2)
	if _, err := io.ReadFull(c.br, head); err != nil {
		c.t.Fatal(err)
	}
	n := int(head[1])
	if n > 125 {
		more := make([]byte, map[int]int{126: 2, 127: 8}[n])
		if _, err := io.ReadFull(c.br, more); err != nil {
			c.t.Fatalf("frame %x: %v", head, err)
		}
		n = int(binary.BigEndian.Uint64(append(make([]byte, 8-len(more)), more...)))
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(c.br, payload); err != nil {
		c.t.Fatal(err)
	}
	return head[0], payload
}

// want reads a whole text message that contains all of parts.
func (c *raw) want(parts ...string) {
	c.t.Helper()
	first, payload := c.frame()
	if first != fin|opText {
		c.t.Fatalf("frame %x %q, want %v", first, payload, parts)
	}
	for _, part := range parts {
		if !strings.Contains(string(payload), part) {
			c.t.Fatalf("message %s, want %s", payload, part)
		}
	}
}

// opClose ends a connection.
const opClose = 0x8

// closed reads until the end and returns its code.
func (c *raw) closed() int {
	c.t.Helper()
	for {
		first, payload := c.frame()
		if first == fin|opClose && len(payload) >= 2 {
			c.send(masked(fin|opClose, payload[:2]))
			c.Close()
			return int(binary.BigEndian.Uint16(payload))
		}
	}
}

// request returns a request.
func request(n int, command, payload string) string {
	return fmt.Sprintf(`{"ipc_version":"1.0","type":"request","request_id":"%s","sent_at":"2026-01-15T00:00:00Z","command":"%s","payload":{%s}}`, id(n), command, payload)
}

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// newProject returns a directory with a project in it.
func newProject(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": "module x\n", "a.txt": "a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
