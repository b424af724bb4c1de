package conformance

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
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
	for name, with := range map[string]string{"lines": "import json, socket", "mcp": "from mcp import"} {
		t.Run(name, func(t *testing.T) {
			if id == "" {
				t.Skip("curl is not installed: there is no thread")
			}
			if name == "mcp" && exec.Command("python3", "-c", "import mcp").Run() != nil {
				t.Skip("the Python package mcp is not installed")
			}
			program := "import os\nTOKEN, THREAD = os.environ['TOKEN'], os.environ['THREAD']\n" + at.Replace(block(t, page, "python", with))
			if got := run("python3", "-c", program); !strings.Contains(got, id) && !strings.Contains(got, "'body': 'hello'") {
				t.Error(got)
			}
		})
	}
}
