package dispatch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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

func TestBrokenReply(t *testing.T) {
	c := dial(t, answering(t, "[]\n", "{}\n"), "")
	for range 2 {
		var d *tool.DispatchError
		if _, err := c.Run(t.Context(), Request{AID: "A"}); !errors.As(err, &d) || d.Type != tool.ParseError {
			t.Error(err)
		}
	}
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
