package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"trunkline/fuzz/kit"
	"trunkline/handlers/threads/method"
)

// callers are the names of tokens in transcripts.
var callers = map[string]string{"reviewer": reviewer, "coordinator": coordinator, "operator": operator, "executioner": executioner,
	"stranger": stranger, "auditor": auditor, "foreigner": foreigner}

// surface calls a method and returns the text of its result, or the code of its error in the
// vocabulary of the seed.
type surface func(s *server, name, token, body string) (result, code string)

var surfaces = map[string]surface{
	"http": func(s *server, name, token, body string) (string, string) {
		return overHTTP(s, "/v1/", name, token, body)
	},
	"compatible": func(s *server, name, token, body string) (string, string) {
		return overHTTP(s, "/v1/mcp/", name, token, body)
	},
	"lines": overLines,
	"mcp":   overMCP,
	"stdio": overStdio,
}

func overHTTP(s *server, path, name, token, body string) (result, code string) {
	s.t.Helper()
	a := s.request("POST", path+name, token, body)
	if (a.status == 200) != (a.body["error"] == nil) {
		s.t.Errorf("%s: %d %s", name, a.status, a.text)
	}
	return specOf(a.text)
}

// specOf splits an answer into a result and the code of an error.
func specOf(text string) (result, code string) {
	var v struct {
		Error struct {
			Code string `json:"spec_code"`
		}
	}
	if json.Unmarshal([]byte(text), &v) == nil && v.Error.Code != "" {
		return "", v.Error.Code
	}
	return text, ""
}

func overLines(s *server, name, token, body string) (result, code string) {
	s.t.Helper()
	p := s.dial(token)
	defer p.Close()
	_ = p.send(`{"id":"x","method":"%s","params":%s}`, name, body)
	line, err := p.in.ReadBytes('\n')
	var v struct {
		ID     string
		OK     bool
		Result json.RawMessage
	}
	if err != nil || json.Unmarshal(line, &v) != nil || v.ID != "x" {
		s.t.Fatalf("%q (%v)", line, err)
	}
	if v.OK {
		return string(v.Result), ""
	}
	return specOf(string(line))
}

func overMCP(s *server, name, token, body string) (result, code string) {
	s.t.Helper()
	a := s.request("POST", "/mcp", token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}`, name, body),
		"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2025-11-25")
	result, code = toolResult(s.t, a.text)
	if a.status != 200 && code != "VALIDATION_ERROR" {
		s.t.Fatalf("%s: %d %s", name, a.status, a.text)
	}
	return result, code
}

// overStdio calls a tool through a bridge, one for each token, in the words of the newest revision.
func overStdio(s *server, name, token, body string) (result, code string) {
	s.t.Helper()
	p := s.bridges[token]
	if p == nil {
		cmd := exec.Command(kit.Program(s.t, scratch), "mcp-stdio")
		cmd.Env = append(os.Environ(), "THREADS_URL="+s.http, "THREADS_TOKEN="+token, "THREADS_TOKEN_FILE=")
		cmd.Stderr = s.log
		in, err := cmd.StdinPipe()
		if err != nil {
			s.t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			s.t.Fatal(err)
		}
		if err := kit.Start(cmd); err != nil {
			s.t.Fatal(err)
		}
		s.whole.Cleanup(func() {
			_ = in.Close() // it ends well then
			if err := cmd.Wait(); err != nil {
				s.whole.Errorf("a bridge ended with %v: %s", err, s.log)
			}
		})
		p = &peer{t: s.whole, in: bufio.NewReader(out), ReadWriteCloser: struct {
			io.Reader
			io.WriteCloser
		}{out, in}}
		s.bridges[token] = p
	}
	_ = p.send("%s", toolCall(name, body, `,"_meta":{`+version+`,`+able+`}`))
	line, err := p.in.ReadString('\n')
	if err != nil {
		s.t.Fatal(name, err)
	}
	return toolResult(s.t, line)
}

// toolResult reads the answer to a tool call. A message with a name twice is none.
func toolResult(t testing.TB, text string) (result, code string) {
	t.Helper()
	var v struct {
		Result struct {
			IsError           bool
			StructuredContent json.RawMessage
			Content           []struct{ Text string }
		}
		Error struct{ Code int }
	}
	err := json.Unmarshal([]byte(text), &v)
	if v.Error.Code == -32600 && strings.Contains(text, "a name twice") {
		return "", "VALIDATION_ERROR"
	}
	if err != nil || len(v.Result.Content) != 1 {
		t.Fatalf("%s (%v)", text, err)
	}
	if v.Result.IsError {
		return specOf(v.Result.Content[0].Text)
	}
	return string(v.Result.StructuredContent), ""
}

// TestTranscripts replays the transcript of every method on every surface.
func TestTranscripts(t *testing.T) {
	for i := range method.Rows {
		name := method.Rows[i].Name
		text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			t.Errorf("the method %s has no transcript: %v", name, err)
			continue
		}
		s := start(t, "SUPERVISOR_MODE=off")
		for on, call := range surfaces {
			t.Run(name+"/"+on, func(t *testing.T) { s.under(t).replay(name, string(text), on, call) })
		}
	}
}

// under returns s with the failures of a part of a test.
func (s *server) under(t testing.TB) *server {
	part := *s
	part.t = t
	return &part
}

// replay calls one request after the other. A transcript has pairs of lines: a caller, the method
// if it is another one, and a body; then the result, an error, or that the result is the last one
// again. $ID is the schedule or the deferred message of the last result that has one.
func (s *server) replay(name, text, on string, call surface) {
	fill := strings.NewReplacer("$TH", s.create(), "$KEY", on)
	var last, timer string
	lines := requests(text)
	if len(lines) == 0 || len(lines)%2 != 0 {
		s.t.Fatal(len(lines), "lines")
	}
	for i := 0; i < len(lines); i += 2 {
		who, body, _ := strings.Cut(fill.Replace(lines[i]), " ")
		called := name
		if !strings.HasPrefix(body, "{") {
			called, body, _ = strings.Cut(body, " ")
		}
		if callers[who] == "" {
			s.t.Fatalf("no caller is called %s", who)
		}
		result, code := call(s, called, callers[who], strings.ReplaceAll(body, "$ID", timer))
		switch kind, want, _ := strings.Cut(fill.Replace(lines[i+1]), " "); {
		case kind == "ok" && code == "" && alike(want, result):
			if last = result; timers.MatchString(last) {
				timer = timers.FindString(last)
			}
		case kind == "same" && code == "" && result == last:
		case kind == code && code != "":
		default:
			s.t.Errorf("%s\n%s %s\nwant %s", lines[i], result, code, lines[i+1])
		}
	}
}

var timers = regexp.MustCompile(`(sch|dly)_[0-9A-Z]{26}`)

// requests returns the lines of a transcript that count.
func requests(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// alike compares results by what they mean: a library may have written them. In want, <TS> and the
// like stand for what varies.
func alike(want, got string) bool {
	var w, g any
	if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(got), &g) != nil {
		return false
	}
	return similar(w, g)
}

var varies = regexp.MustCompile(`<(TS|TH|MSG|TRG|SCH|DLY)>`)

func similar(want, got any) bool {
	switch w := want.(type) {
	case string:
		g, ok := got.(string)
		return ok && (w == g || varies.MatchString(w) && like(w).MatchString(g))
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !similar(w[i], g[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for name := range w {
			if _, is := g[name]; !is || !similar(w[name], g[name]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}
