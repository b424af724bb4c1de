package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// TestAByteOrderMarkIsSkippedOnEverySurface: a text with one is answered as the text without, and
// one with two is refused, wherever the program reads JSON.
func TestAByteOrderMarkIsSkippedOnEverySurface(t *testing.T) {
	const mark = "\uFEFF"
	var log kit.Text
	cmd := exec.Command(os.Args[0], "serve", "--dev", "--listen=127.0.0.1:0", "--http-listen=127.0.0.1:0",
		"--threads-listen=127.0.0.1:0", "--set=threads.lines_addr=127.0.0.1:0",
		"--admin-listen=", "--set=toolhost.listen_addr=127.0.0.1:0", "--set=exacta.listen_addr=127.0.0.1:0")
	cmd.Args[0], cmd.Stderr, cmd.Dir = "trunkline", &log, t.TempDir() // see TestMain
	if err := kit.Start(cmd); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	kit.Until(t, "serving", func() bool { return log.Has("INF serving") })
	find := func(pattern string) string {
		m := regexp.MustCompile(`(?m)^` + pattern + `$`).FindStringSubmatch(log.String())
		if m == nil {
			t.Fatalf("no %s in %s", pattern, &log)
		}
		return m[1]
	}
	at := func(listener string) string { return find(listener + ` listening on (127\.0\.0\.1:\d+) \(tcp\)`) }
	token := find("threads token for a day: (.*)")
	// post sends a text as the body of a request.
	post := func(url string) func(string) string {
		return func(text string) string {
			r, err := http.NewRequest(http.MethodPost, "http://"+url, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Authorization": {"Bearer " + token}}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(body)
		}
	}
	// line sends a text as the first line after what goes before, and returns the last answer.
	line := func(addr, before string) func(string) string {
		return func(text string) (answer string) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(time.Minute)) // only a failure waits
			if _, err := io.WriteString(c, before+text+"\n"); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(c)
			for range strings.Count(before, "\n") + 1 {
				if answer, err = lines.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			return answer
		}
	}
	// verb gives a text to a command.
	verb := func(environ []string, args ...string) func(string) string {
		return func(text string) string {
			cmd := exec.Command(os.Args[0], args...)
			cmd.Args[0], cmd.Stdin, cmd.Env, cmd.Dir = "trunkline", strings.NewReader(text), append(os.Environ(), environ...),
				t.TempDir()
			out, _ := cmd.CombinedOutput()
			return string(out)
		}
	}
	kernel, project := at("kernel ipc"), t.TempDir()
	threads := []string{"THREADS_URL=http://" + at("threads http"), "THREADS_TOKEN=" + token}
	hello := `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	open := `{"ipc_version":"1.0","type":"request","request_id":"6f1b2f0e-3c2a-4b1d-8e5f-0123456789ab","sent_at":"2026-01-02T03:04:05Z","command":"OpenProject","payload":{"path":"` +
		project + `"}}`
	auth := `{"id":1,"method":"auth","params":{"protocol":"threads/1","token":"` + token + `"}}` + "\n"
	for name, s := range map[string]struct {
		send func(string) string
		text string
		want string
	}{
		"envelopes over HTTP": {post(at("http") + "/api/v1/process"), `{"raw_input":"a"}`, `"raw_input":"a"`},
		"envelopes, verb":     {verb(nil, "process"), `{"raw_input":"a"}`, `"raw_input":"a"`},
		"envelopes, validate": {verb(nil, "validate"), `{"raw_input":"a"}`, `"valid":true`},
		"envelopes, no verb": {verb(nil), `{"command":"can_continue","envelope":{"envelope_id":"e"}}`,
			`{"can_continue":true`},
		"kernel, verb": {verb(nil, "call", "--addr="+kernel, "kernel.CreateProcess", "-"), `{"pid":"p"}`, `"pid":"p"`},
		"kernel, a text in a call": {func(text string) string {
			return verb(nil, "call", "--addr="+kernel, "commbus.Publish", `{"event_type":"a","payload":"`+text+`"}`)("")
		}, `{}`, `"success":true`},
		"tools":                   {line(at("toolhost"), ""), `{"aid":"AID.NOPE.v1","request_id":"r"}`, `tool not found`},
		"tools, no server":        {verb(nil, "--run", "builtin", "AID.NOOP.v1"), `{}`, `"ok":true`},
		"threads over HTTP":       {post(at("threads http") + "/v1/create_thread"), `{"title":"t"}`, `type is required`},
		"threads, lines":          {line(at("threads lines"), auth), `{"id":2,"method":"ping"}`, `{"id":2,"ok":true`},
		"threads, the first line": {line(at("threads lines"), ""), strings.TrimSpace(auth), `{"id":1,"ok":true`},
		"MCP":                     {post(at("threads http") + "/mcp"), hello, `"id":7,"result"`},
		"MCP on stdio":            {verb(threads, "mcp-stdio"), hello + "\n", `"id":7,"result"`},
		"projects":                {line(at("exacta"), ""), open, `"request_id":"6f1b2f0e`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.send(mark + s.text); !strings.Contains(got, s.want) {
				t.Errorf("with a mark: %s, want %s", got, s.want)
			}
			if got := s.send(mark + mark + s.text); strings.Contains(got, s.want) {
				t.Errorf("with two marks: %s", got)
			}
		})
	}
}
