package conformance

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

const webPath = "/exacta/v1/ws"

// upgrade sends a handshake, with changes of its header, and returns the connection and the answer.
func (s *server) upgrade(method, path string, changes ...string) (net.Conn, *bufio.Reader, *http.Response) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.address(listensWeb))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	req, err := http.NewRequest(method, "http://"+s.address(listensWeb)+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range [][2]string{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}, {"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}} {
		req.Header.Set(h[0], h[1])
	}
	for i := 0; i < len(changes); i += 2 {
		if req.Header.Del(changes[i]); changes[i+1] != "" {
			req.Header.Set(changes[i], changes[i+1])
		}
	}
	if err = req.Write(c); err != nil {
		s.t.Fatal(err)
	}
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, req)
	if err != nil {
		s.t.Fatal(err)
	}
	return c, in, res
}

// TestHandshake2_2 has the table of paths, methods, versions and origins.
func TestHandshake2_2(t *testing.T) {
	t.Parallel()
	s := serve(t, webSocket, "--set", "exacta.ws_origins=https://my.example")
	f := func(status int, method, path string, changes ...string) *http.Response {
		t.Helper()
		_, _, res := s.upgrade(method, path, changes...)
		if res.StatusCode != status {
			t.Errorf("%s %s %q: %d, want %d", method, path, changes, res.StatusCode, status)
		}
		return res
	}
	f(101, "GET", webPath)
	f(404, "GET", webPath+"x")
	f(404, "GET", "/exacta/v2/ws")
	f(405, "POST", webPath)
	f(405, "PUT", webPath)
	for _, changes := range [][]string{{"Upgrade", ""}, {"Connection", ""}, {"Sec-WebSocket-Version", ""}, {"Sec-WebSocket-Version", "12"}, {"Upgrade", "h2c"}} {
		if res := f(426, "GET", webPath, changes...); res.Header.Get("Sec-WebSocket-Version") != "13" {
			t.Errorf("%q: %v", changes, res.Header)
		}
	}
	for _, origin := range []string{"http://localhost", "https://localhost:3000", "http://127.0.0.1:8080", "https://127.0.0.1", "http://[::1]", "https://[::1]:1", "tauri://localhost",
		"http://tauri.localhost", "https://tauri.localhost", "https://my.example"} {
		f(101, "GET", webPath, "Origin", origin)
	}
	for _, origin := range []string{"null", "http://example.org", "http://localhost.example.org", "https://my.example:8443", "http://my.example", "tauri://other", "file://", "http://127.0.0.2",
		"ftp://localhost", "http://localhost@evil.example", "http://evil.example/localhost"} {
		f(403, "GET", webPath, "Origin", origin)
	}
	if res := f(101, "GET", webPath, "Sec-WebSocket-Protocol", "other, exacta.ipc.v1"); res.Header.Get("Sec-WebSocket-Protocol") != "exacta.ipc.v1" {
		t.Errorf("%v", res.Header)
	}
	if res := f(101, "GET", webPath, "Sec-WebSocket-Protocol", "other"); res.Header.Get("Sec-WebSocket-Protocol") != "" {
		t.Errorf("%v", res.Header)
	}
}

// TestWebToken2_2 has the two ways to show a token.
func TestWebToken2_2(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef/+é"
	home := realTemp(t)
	if err := os.WriteFile(filepath.Join(home, "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveIn(t, webSocket, home, append(append([]string(nil), fixed...), "--set", "exacta.auth_token_file="+filepath.Join(home, "token"))...)
	s.write("go.mod", "module x\n")
	code := base64.RawURLEncoding.EncodeToString([]byte(token))
	for _, header := range [][]string{{}, {"Authorization", "Bearer x"}, {"Authorization", "Basic " + token}, {"Authorization", token}, {"Sec-WebSocket-Protocol", "exacta.ipc.v1"},
		{"Sec-WebSocket-Protocol", "exacta.token.x"}, {"Sec-WebSocket-Protocol", "exacta.token." + code[1:]}} {
		if _, _, res := s.upgrade("GET", webPath, header...); res.StatusCode != 401 {
			t.Errorf("%q: %d", header, res.StatusCode)
		}
	}
	for _, o := range []*websocket.DialOptions{{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}}, {Subprotocols: []string{"exacta.token." + code, "exacta.ipc.v1"}}} {
		over := s.dialWeb(o)
		if err := over.send("[]"); err != nil {
			t.Fatal(err)
		}
		if line := <-over.lines; !strings.Contains(line, "not_an_object") {
			t.Errorf("got %s", line)
		}
		over.shut()
	}
	if strings.Contains(s.log.String(), token) || strings.Contains(s.log.String(), code) {
		t.Errorf("the log has the token: %s", s.log)
	}
}

// frame returns a frame of a client. A nil mask leaves it unmasked.
func frame(first byte, payload string, mask []byte) []byte {
	out := []byte{first}
	bit := byte(0)
	if mask != nil {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		out = append(out, bit|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, bit|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, bit|127), uint64(n))
	}
	out = append(out, mask...)
	for i := range len(payload) {
		b := payload[i]
		if mask != nil {
			b ^= mask[i%4]
		}
		out = append(out, b)
	}
	return out
}

// received reads one frame of the server.
func received(in *bufio.Reader) (opcode byte, payload string, err error) {
	head := make([]byte, 2)
	if _, err = io.ReadFull(in, head); err != nil {
		return 0, "", err
	}
	n := uint64(head[1])
	switch {
	case n == 126:
		var long [2]byte
		_, err = io.ReadFull(in, long[:])
		n = uint64(binary.BigEndian.Uint16(long[:]))
	case n == 127:
		var long [8]byte
		_, err = io.ReadFull(in, long[:])
		n = binary.BigEndian.Uint64(long[:])
	}
	if err != nil {
		return 0, "", err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(in, text)
	return head[0] & 0x0f, string(text), err
}

// TestFrames2_2 has what closes a WebSocket, and what does not.
func TestFrames2_2(t *testing.T) {
	t.Parallel()
	s := serve(t, webSocket, "--set", "exacta.max_message_bytes=65536")
	s.write("go.mod", "module x\n")
	mask := []byte{1, 2, 3, 4}
	closes := func(code uint16, frames ...[]byte) {
		t.Helper()
		c, in, _ := s.upgrade("GET", webPath)
		for _, f := range frames {
			if _, err := c.Write(f); err != nil {
				break // it was closed before
			}
		}
		for {
			opcode, payload, err := received(in)
			if err != nil {
				t.Errorf("%d: %v", code, err)
				return
			}
			if opcode == 8 {
				if len(payload) < 2 || binary.BigEndian.Uint16([]byte(payload)) != code {
					t.Errorf("closed with %x, want %d", payload, code)
				}
				return
			}
		}
	}
	closes(1003, frame(0x82, "{}", mask))
	closes(1002, frame(0x81, "{}", nil))
	closes(1002, frame(0xc1, "{}", mask))
	closes(1002, frame(0xa1, "{}", mask))
	closes(1002, frame(0x83, "{}", mask))
	closes(1002, frame(0x80, "{}", mask))                        // continues nothing
	closes(1002, frame(0x01, "{", mask), frame(0x81, "}", mask)) // begins in a message
	closes(1002, frame(0x09, "x", mask))                         // a control frame in pieces
	closes(1002, frame(0x89, strings.Repeat("x", 126), mask))    // and one that is too long
	closes(1007, frame(0x81, "{\"a\":\"\xff\"}", mask))
	closes(1009, frame(0x81, `{"a":"`+strings.Repeat("x", 65_536)+`"}`, mask))
	closes(1009, frame(0x01, strings.Repeat(" ", 40_000), mask), frame(0x80, strings.Repeat(" ", 40_000), mask))
	// pieces, control frames between them, newlines, bad JSON: it stays open
	c, in, _ := s.upgrade("GET", webPath)
	text := strings.ReplaceAll(`{"ipc_version":"1.0","type":"request","request_id":"`+used+`","sent_at":"2026-01-15T00:00:00Z","command":"Pause","payload":{"project_id":"`+noID+`","execution_id":"`+noID+`"}}`, ",", ",\r\n")
	for _, f := range [][]byte{frame(0x81, "{nope", mask), frame(0x01, text[:10], mask), frame(0x89, "ping", mask), frame(0x00, text[10:50], mask), frame(0x8a, "", mask), frame(0x80, text[50:], mask)} {
		if _, err := c.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for len(got) < 3 {
		opcode, payload, err := received(in)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case opcode == 10:
			got = append(got, "pong "+payload)
		case strings.Contains(payload, `"IPC-001"`):
			got = append(got, "IPC-001")
		case strings.Contains(payload, `"ST-003"`) && strings.Contains(payload, used):
			got = append(got, "ST-003")
		default:
			t.Fatalf("got %d %s", opcode, payload)
		}
	}
	all := strings.Join(got, "; ")
	if answers := strings.ReplaceAll(strings.ReplaceAll("; "+all, "; pong ping", ""), "; ", " "); answers != " IPC-001 ST-003" || !strings.Contains(all, "pong ping") {
		t.Errorf("got %s", all)
	}
	// the limit itself
	over := s.dialWeb(nil)
	defer over.shut()
	if err := over.send(`{"a":"` + strings.Repeat("x", 65_536-len(`{"a":""}`)) + `"}`); err != nil {
		t.Fatal(err)
	}
	if line := <-over.lines; !strings.Contains(line, "missing:ipc_version") {
		t.Errorf("got %s", line)
	}
}

// TestBadMessages2_2 sends more bad messages than a connection of lines may.
func TestBadMessages2_2(t *testing.T) {
	t.Parallel()
	c := open(t, webSocket)
	for range 100 {
		c.message("{nope").is("IPC-001 invalid_json")
	}
	c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
}
