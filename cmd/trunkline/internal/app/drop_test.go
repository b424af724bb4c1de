package app

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/ops"
)

// hello opens a connection to each listener, and returns them by what their names begin with. Each
// has an answer, so that it is listed.
func (e *everywhere) hello() map[string]net.Conn {
	e.t.Helper()
	upgrade := func(path string) string {
		return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	}
	open := map[string]net.Conn{}
	for _, l := range []struct{ protocol, network, addr, text, answer string }{
		{"ipc", "tcp", e.addr("kernel ipc"), "", ""},
		{"http", "tls", e.addr("http"), "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 404"},
		{"toolhost", "unix", e.addr("toolhost"), `{"aid":"AID.NOOP.v1"}` + "\n", `{`},
		{"threads-http", "tcp", e.addr("threads http"), "POST /v1/nope HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 4"},
		{"threads", "tcp", e.addr("threads lines"), fmt.Sprintf(`{"id":1,"method":"auth","params":{"protocol":"threads/1","token":%q}}`+"\n", e.bearer), `{`},
		{"exacta", "unix", e.addr("exacta"), `{"type":"command"}` + "\n", `{`},
		{"exacta-websocket", "tcp", e.addr("exacta websocket"), upgrade("/exacta/v1/ws"), "HTTP/1.1 101"},
		{"exacta-viewer", "tcp", e.addr("admin"), strings.Replace(upgrade("/exacta/ws"), "\r\n",
			"\r\nAuthorization: Bearer "+viewerToken+"\r\n", 1), "HTTP/1.1 101"},
	} {
		var c net.Conn
		var err error
		addr := strings.TrimPrefix(l.addr, "unix://")
		if l.network == "tls" {
			_, port, _ := net.SplitHostPort(addr)
			c, err = tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: e.pool})
		} else {
			c, err = net.Dial(l.network, addr)
		}
		if err != nil {
			e.t.Fatal(err)
		}
		e.t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err = io.WriteString(c, l.text); err != nil {
			e.t.Fatal(err)
		}
		if got, err := bufio.NewReader(c).Peek(len(l.answer)); err != nil || string(got) != l.answer {
			e.t.Fatalf("%s: %q %v", l.protocol, got, err)
		}
		open[l.protocol] = c
	}
	return open
}

// TestDropEverywhere: an operator drops a connection of every kind that is listed.
func TestDropEverywhere(t *testing.T) {
	e := startEverywhere(t, tokenFiles(t)...)
	e.token = viewerToken
	open := e.hello()
	var l ops.Connections
	for deadline := time.Now().Add(20 * time.Second); len(l.Connections) < len(open) && time.Now().Before(deadline); {
		e.load("/connections", &l)
	}
	drop := func(token, id string) (int, string) {
		t.Helper()
		return e.post("/console/connection/drop", token, url.Values{"id": {id}, "reason": {"why"}})
	}
	const closeFrame = 0x88 // the end of a WebSocket, which then waits for its peer
	end := make([]byte, 512)
	for _, c := range l.Connections {
		if status, body := drop("viewer-0123456789", c.ID); status != 403 {
			t.Errorf("%s: a viewer gets %d %s", c.ID, status, body)
		}
		if status, body := drop("operator-0123456789", c.ID); status != 200 {
			t.Errorf("%s: %d %s", c.ID, status, body)
			continue
		}
		kind := c.ID[:strings.LastIndexByte(c.ID, '-')]
		if open[kind] == nil {
			t.Fatalf("%s is of no kind that was opened", c.ID)
		}
		if n, err := open[kind].Read(end); err == nil && (n == 0 || end[0] != closeFrame) {
			t.Errorf("%s is still open, with %q", c.ID, end[:n])
		}
		_ = open[kind].Close()
		delete(open, kind)
		if status, body := drop("operator-0123456789", c.ID); status != http.StatusNotFound || !strings.Contains(body, "is not open") {
			t.Errorf("%s again: %d %s", c.ID, status, body)
		}
		e.await(fmt.Sprintf(`msg="console change" action=drop_connection connection=%s reason=why by=operator`, c.ID))
	}
	if len(open) > 0 {
		t.Errorf("%v are not listed", open)
	}
	for _, id := range []string{"", "ipc", "ipc-99", "console-1", "../x"} {
		if status, _ := drop("operator-0123456789", id); !slices.Contains([]int{400, 404}, status) {
			t.Errorf("%q: %d", id, status)
		}
	}
	e.load("/connections", &l)
	if len(l.Connections) > 0 {
		t.Errorf("%+v are open", l.Connections)
	}
}
