package dispatch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// serve starts the real program on a unix socket and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	program := filepath.Join(root(t), "build", "machina_toolhost")
	dir := t.TempDir()
	addr := "unix://" + filepath.Join(dir, "s")
	cmd := exec.Command(program, "--serve", "builtin", "--listen", addr)
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	for range 1000 {
		if _, err := os.Stat(filepath.Join(dir, "s")); err == nil {
			return addr
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
	return ""
}

func dial(t *testing.T, addr, token string) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), addr, token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConnection(t *testing.T) {
	c := dial(t, serve(t), "")
	reply, err := c.Run(t.Context(), Request{AID: "AID.ASK_SUP.v1", Inputs: map[string]string{"q": "<\n>"}, RequestID: "r1"})
	if err != nil || reply.Output != `{"q":"<\n>"}` || !strings.Contains(string(reply.State), `"1":{"type":"ask_sup"`) {
		t.Errorf("%+v, %v", reply, err)
	}
	write := Request{AID: "AID.MEMORY.APPEND.v1", Inputs: json.RawMessage("{\n\"text\":\"once\"}"), IdempotencyKey: "k"}
	first, err := c.Run(t.Context(), write)
	again, err2 := c.Run(t.Context(), write)
	if err != nil || err2 != nil || first.Hit || !again.Hit || first.Output != again.Output {
		t.Errorf("%+v, %v; %+v, %v", first, err, again, err2)
	}
	var no *Refusal
	write.Inputs = nil
	if _, err := c.Run(t.Context(), write); !errors.As(err, &no) || no.Text != "idempotency_conflict" || !strings.Contains(string(no.Line), `"idempotency_key":"k"`) {
		t.Error(err)
	}
	var r *ToolResult
	reply, err = c.Run(t.Context(), Request{AID: "AID.FILE.READ.v1", State: json.RawMessage(`{"slots":{}}`)})
	if !errors.As(err, &r) || r.Text != "missing path" || reply.Status != tool.ToolError || reply.State == nil {
		t.Errorf("%+v, %v", reply, err)
	}
	line, err := c.Do(t.Context(), []byte(`{"aid":"_health"}`))
	if err != nil || !strings.HasPrefix(string(line), `{"ok":true,"spec_version":"1.4.2"`) {
		t.Errorf("%s, %v", line, err)
	}
	if _, err := c.Run(t.Context(), Request{AID: "AID.NOOP.v1", Inputs: 5}); err == nil {
		t.Error("a number is taken as inputs")
	}
}

func TestOneCallAtATime(t *testing.T) {
	c := dial(t, serve(t), "")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			in := `{"n":` + string(rune('a'+i)) + `}`
			in = strings.NewReplacer(":", `:"`, "}", `"}`).Replace(in)
			for range 20 {
				if r, err := c.Run(context.Background(), Request{AID: "AID.ASK_SUP.v1", Inputs: json.RawMessage(in)}); err != nil || r.Output != in {
					t.Errorf("%s: %+v, %v", in, r, err)
				}
			}
		})
	}
	all.Wait()
}

// answering is a server that writes a text for every line, and nothing for an empty one.
func answering(t *testing.T, texts ...string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		in := bufio.NewReader(nc)
		for _, text := range texts {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			_, _ = nc.Write([]byte(text))
		}
		_, _ = in.ReadString('\n')
	}()
	return "tcp://" + ln.Addr().String()
}

func TestToken(t *testing.T) {
	c := dial(t, answering(t, `{"ok":true,"principal":"token"}`+"\n", `{"status":"OK"}`+"\n"), "se\"cret")
	if r, err := c.Run(t.Context(), Request{AID: "A"}); err != nil || r.Output != "{}" {
		t.Errorf("%+v, %v", r, err)
	}
	var no *Refusal
	if _, err := Dial(t.Context(), answering(t, `{"ok":false,"error":"auth_failed"}`+"\n"), "x"); !errors.As(err, &no) || no.Text != "auth_failed" {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), answering(t, "nonsense\n"), "x"); err == nil {
		t.Error("nonsense is taken as consent")
	}
	for _, addr := range []string{"localhost:1", "http://localhost:1", "unix:/x", ""} {
		if _, err := Dial(t.Context(), addr, ""); err == nil {
			t.Errorf("%q is dialled", addr)
		}
	}
}

func TestReplyLimit(t *testing.T) {
	frame := len(`{"status":"OK","output_json":""}` + "\n")
	text := func(size int) string {
		return `{"status":"OK","output_json":"` + strings.Repeat("x", size-frame) + `"}` + "\n"
	}
	c := dial(t, answering(t, text(MaxReply), text(MaxReply+1)), "")
	if r, err := c.Run(t.Context(), Request{AID: "A"}); err != nil || len(r.Output) != MaxReply-frame {
		t.Errorf("at the limit: %d bytes, %v", len(r.Output), err)
	}
	_, err := c.Run(t.Context(), Request{AID: "A"})
	if err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("above the limit: %v", err)
	}
	if _, again := c.Run(t.Context(), Request{AID: "A"}); again != err {
		t.Errorf("after that: %v", again)
	}
}

// TestBrokenReply: what is no reply ends the connection, for nobody knows where the next one would begin.
func TestBrokenReply(t *testing.T) {
	f := func(text string) {
		t.Helper()
		c := dial(t, answering(t, text+"\n", `{"status":"OK"}`+"\n"), "")
		var d *tool.DispatchError
		_, err := c.Run(t.Context(), Request{AID: "A"})
		if !errors.As(err, &d) || d.Type != tool.ParseError {
			t.Errorf("%s: %v", text, err)
		}
		if _, again := c.Run(t.Context(), Request{AID: "A"}); again != err {
			t.Errorf("%s: after that %v", text, again)
		}
	}
	f("[]")
	f("{}")
	f("")
	f("HTTP/1.1 400 Bad Request\r")
	f(`{"status":"OK"}}`)
	f(`{"status":1}`)
	c := dial(t, answering(t, "pong\n", "{}\n"), "")
	_, err := c.Do(t.Context(), []byte(`{"aid":"_health"}`))
	if err == nil || !strings.Contains(err.Error(), `"pong"`) {
		t.Error(err)
	}
	if _, again := c.Do(t.Context(), []byte(`{"aid":"_health"}`)); again != err {
		t.Errorf("after that: %v", again)
	}
}

// TestUnaskedLines: a line that is there before a request answers none, and nothing is sent behind it.
func TestUnaskedLines(t *testing.T) {
	const reply, other = `{"status":"OK","output_json":"{\"n\":1}"}` + "\n", `{"status":"OK","output_json":"{\"n\":2}"}` + "\n"
	c := dial(t, answering(t, reply+other, reply), "") // in one write: the second line is read together with the first
	if r, err := c.Run(t.Context(), Request{AID: "A"}); err != nil || r.Output != `{"n":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	for range 2 {
		if r, err := c.Run(t.Context(), Request{AID: "A"}); err != errUnasked {
			t.Errorf("a line nobody asked for answers: %+v, %v", r, err)
		}
	}
	for _, network := range []string{"tcp", "unix"} {
		client, server := pair(t, network)
		if _, err := server.Write([]byte(reply)); err != nil {
			t.Fatal(err)
		}
		arrived(t, client)
		if r, err := client.Run(t.Context(), Request{AID: "A"}); err != errUnasked {
			t.Errorf("%s: a banner answers: %+v, %v", network, r, err)
		}
		_ = server.SetReadDeadline(time.Now().Add(10 * time.Second))
		if got, err := io.ReadAll(server); len(got) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: sent all the same, or not closed: %s %v", network, got, err)
		}
	}
}

// TestServerIsGone: then nothing is sent, and the error says so.
func TestServerIsGone(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		client, server := pair(t, network)
		server.Close()
		arrived(t, client)
		if _, err := client.Run(t.Context(), Request{AID: "A"}); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", network, err)
		}
	}
}

// pair returns a connection and its server's end.
func pair(t *testing.T, network string) (*Conn, net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c := dial(t, network+"://"+ln.Addr().String(), "")
	server, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return c, server
}

// arrived waits until a connection has something to read, or its end.
func arrived(t *testing.T, c *Conn) {
	t.Helper()
	for range 1000 {
		if c.quiet() != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nothing arrives")
}

func TestGivenUpCallEndsTheConnection(t *testing.T) {
	c := dial(t, answering(t, ""), "")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Run(over, Request{AID: "A"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Run(ctx, Request{AID: "A"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := c.Run(t.Context(), Request{AID: "A"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestLines(t *testing.T) {
	c := dial(t, answering(t), "")
	for _, line := range []string{"", "\r", "{}\n", "{}\n{}"} {
		if _, err := c.Do(t.Context(), []byte(line)); err != errLine {
			t.Errorf("%q: %v", line, err)
		}
	}
}
