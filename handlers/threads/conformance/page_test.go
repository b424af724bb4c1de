package conformance

import (
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"trunkline/fuzz/kit"
)

// block returns the first code block of the page with a language and a text.
func block(t *testing.T, page, language, with string) string {
	t.Helper()
	for rest := page; ; {
		_, after, found := strings.Cut(rest, "```"+language+"\n")
		text, next, ended := strings.Cut(after, "```")
		if !found || !ended {
			t.Fatalf("the page has no %s block with %q", language, with)
		}
		if strings.Contains(text, with) {
			return text
		}
		rest = next
	}
}

// TestSettingsOfThePage: the sample of mcpServers is JSON, and the program that it starts serves.
func TestSettingsOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/threads.md")
	if err != nil {
		t.Fatal(err)
	}
	var sample struct {
		Servers map[string]struct {
			Type, URL, Command string
			Headers, Env       map[string]string
			Args               []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(block(t, string(text), "json", "mcpServers")), &sample); err != nil {
		t.Fatal(err)
	}
	s := start(t)
	over, stdio := sample.Servers["threads"], sample.Servers["threads-stdio"]
	if u, err := url.Parse(over.URL); err != nil || over.Type != "http" ||
		over.Headers["Authorization"] != "Bearer ${TOKEN}" {
		t.Errorf("%+v (%v)", over, err)
	} else if a := s.request("POST", u.Path, coordinator, rpc("tools/list", "")); a.status != 200 {
		t.Error(a.status, a.text)
	}
	cmd := exec.Command(kit.Program(t, scratch), stdio.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = t.TempDir(), os.Environ(),
		strings.NewReader(toolCall("get_thread", `{"thread_id":"th_none"}`, ""))
	for name, value := range stdio.Env {
		cmd.Env = append(cmd.Env, name+"="+strings.Replace(value, "http://127.0.0.1:3000", s.http, 1))
	}
	if err := os.WriteFile(filepath.Join(cmd.Dir, stdio.Env["THREADS_TOKEN_FILE"]), []byte(coordinator),
		0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.Output(); err != nil || stdio.Command != "trunkline" ||
		!strings.Contains(string(out), "NOT_FOUND") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPage runs the examples of docs/threads.md.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/threads.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	s := start(t)
	token := tokenOf(claims{"workspace_id": "dev", "role": "coordinator"})
	at := strings.NewReplacer("http://127.0.0.1:3000", s.http, "127.0.0.1:3001", s.lines, `("127.0.0.1", 3001)`, `("127.0.0.1", `+s.lines[strings.LastIndexByte(s.lines, ':')+1:]+`)`)
	thread := regexp.MustCompile(`th_[0-9A-HJKMNP-TV-Z]{26}`)
	var id string
	run := func(name string, args ...string) string {
		t.Helper()
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is not installed", name)
		}
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "TOKEN="+token, "THREAD="+id)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
		return string(out)
	}
	t.Run("curl", func(t *testing.T) {
		for _, part := range strings.Split(block(t, page, "console", "curl -s"), "$ ")[1:] {
			if !strings.HasPrefix(part, "curl ") {
				continue
			}
			command, want, _ := strings.Cut(strings.ReplaceAll(part, "\\\n", ""), "\n")
			if id != "" {
				command = thread.ReplaceAllString(command, id)
			}
			got := run("bash", "-c", at.Replace(command))
			if id = thread.FindString(got + id); id == "" {
				t.Fatal(got)
			}
			varied := regexp.MustCompile(`(th|msg)_[0-9A-Z]{26}|\d{4}-[-0-9:.T]*Z`)
			if w := varied.ReplaceAllString(strings.TrimSpace(want), "*"); varied.ReplaceAllString(got, "*") != w {
				t.Errorf("%s\n%s\nwant %s", command, got, w)
			}
		}
	})
	for name, with := range map[string]string{"python3": "import json, socket", "mcp==2.3.0": "from mcp import",
		"mcp==1.30.0": "from mcp import"} {
		t.Run(name, func(t *testing.T) {
			if id == "" {
				t.Skip("curl is not installed: there is no thread")
			}
			python := name
			if name != "python3" {
				python = filepath.Join(clientsDir(t), "python-"+name, "bin", "python")
				if _, err := os.Stat(python); err != nil {
					t.Skipf("%s is not installed: run testdata/clients/install.sh", name)
				}
			}
			program := "import os\nTOKEN, THREAD = os.environ['TOKEN'], os.environ['THREAD']\n" + at.Replace(block(t, page, "python", with))
			if got := run(python, "-c", program); !strings.Contains(got, id) && !strings.Contains(got, "'body': 'hello'") {
				t.Error(got)
			}
		})
	}
}
