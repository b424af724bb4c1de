package app

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/handlers/threads/token"
)

// answeredWithin is how long an answer may take on a busy machine: less than any time after which a
// server ends a connection whose peer does nothing.
const answeredWithin = 20 * time.Second

// once sends a request on a connection of its own and returns the status of the answer.
func once(t *testing.T, addr, request string) int {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(answeredWithin))
	_, _ = io.WriteString(c, request)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Errorf("%s: %v", addr, err)
		return 0
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// hold opens connections that have one answer each, and ask for nothing more.
func hold(t *testing.T, addr string, n int) {
	t.Helper()
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
}

// flood opens connections that ask for answers and read none of them, until the server does not go
// on with any.
func flood(t *testing.T, addr string, n int) {
	t.Helper()
	text := strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)
	var stuck sync.WaitGroup
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		stuck.Go(func() {
			for {
				_ = c.SetWriteDeadline(time.Now().Add(time.Second))
				if _, err := io.WriteString(c, text); err != nil {
					return
				}
			}
		})
	}
	stuck.Wait()
}

// allOverHTTP starts a server with all listeners of HTTP, without TLS.
func allOverHTTP(t *testing.T, set ...string) *instance {
	t.Helper()
	_, public, err := token.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, public, 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, append(set, "threads.public_key_file="+key, "threads.issuer=https://issuer.example",
		"threads.listen_addr=127.0.0.1:0",
		"threads.lines_addr=", "threads.supervisor_mode=off", "exacta.listen_addr=", "exacta.ws_addr=127.0.0.1:0")...)
}

// TestProbesAreAnswered: behind more connections than there are places, which are idle or have
// answers that they do not read.
func TestProbesAreAnswered(t *testing.T) {
	lookAtProbes(t, 64, 16)
	if !testing.Short() {
		lookAtProbes(t, 0, 80)
	}
}

func lookAtProbes(t *testing.T, idle, stuck int) {
	t.Helper()
	i := start(t)
	hold(t, i.addr("admin"), idle)
	flood(t, i.addr("admin"), stuck)
	for range 3 {
		for _, path := range []string{"/healthz", "/readyz"} {
			if status := once(t, i.addr("admin"), "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); status != http.StatusOK {
				t.Errorf("%s was answered with %d", path, status)
			}
		}
	}
}

// TestConnectionsThatDoNothingGiveWay on each listener of HTTP that keeps connections.
func TestConnectionsThatDoNothingGiveWay(t *testing.T) {
	i := allOverHTTP(t, "http.max_connections=2", "threads.max_connections=2")
	for line, most := range map[string]int{"http": 2, "threads http": 2, "admin": 64} {
		hold(t, i.addr(line), most)
		status := http.StatusServiceUnavailable // in a place for probes, until the first one has waited long enough
		for deadline := time.Now().Add(answeredWithin); status == http.StatusServiceUnavailable &&
			time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			status = once(t, i.addr(line), "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
		if status == 0 || status == http.StatusServiceUnavailable {
			t.Errorf("%s: no answer, or %d", line, status)
		}
	}
}

// TestTwoFramings: both of them end the connection, on each listener of HTTP.
func TestTwoFramings(t *testing.T) {
	e := allOverHTTP(t)
	for _, line := range []string{"http", "threads http", "exacta websocket", "admin"} {
		for _, head := range []string{"1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked",
			"1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5", "1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5"} {
			c, err := net.Dial("tcp", e.addr(line))
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(answeredWithin))
			_, _ = io.WriteString(c,
				"POST /console/ HTTP/"+head+"\r\nHost: x\r\nContent-Type: application/json\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n")
			all, err := io.ReadAll(c)
			_ = c.Close()
			if text := string(all); err != nil || !strings.HasPrefix(text, "HTTP/1.1 400 ") &&
				!strings.HasPrefix(text, "HTTP/1.0 400 ") || strings.Count(text, "HTTP/1.") != 1 {
				t.Errorf("%s, %q: %q, %v", line, head, text, err)
			}
		}
	}
}
