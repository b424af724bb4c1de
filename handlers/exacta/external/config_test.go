package external

import (
	"strings"
	"testing"

	"trunkline/handlers/exacta/workspace"
)

func TestConfigIsChecked(t *testing.T) {
	f := func(c Config, want string) {
		t.Helper()
		err := c.Check()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a password is shown: %v", err)
		}
	}
	f(Config{}, "")
	f(Config{Kind: Builtin, Cache: ReadOnly}, "")
	f(Config{Kind: "magic"}, "exacta.planner is")
	f(Config{Cache: "on"}, "exacta.planner_cache")
	f(Config{Kind: Subprocess}, "exacta.planner_command is not set")
	f(Config{Kind: Subprocess, Command: []string{""}}, "exacta.planner_command is not set")
	f(Config{Kind: Subprocess, Command: []string{"p", "a\x00b"}}, "NUL")
	f(Config{Kind: Subprocess, Command: []string{"p", ""}}, "")
	f(Config{Kind: OpenAI, Model: "m"}, "exacta.planner_url is not set")
	f(Config{Kind: OpenAI, URL: "https://h"}, "")
	server := func(url, want string) {
		t.Helper()
		f(Config{Kind: OpenAI, URL: url, Model: "m", Key: "k"}, want)
	}
	for _, url := range []string{"https://h", "https://h:1/v1/", "http://localhost/v1", "http://127.0.0.1:1", "http://127.9.9.9", "http://[::1]:2/v1"} {
		server(url, "")
	}
	for _, url := range []string{"http://h/v1", "http://10.0.0.1", "http://localhost.evil.example", "http://0.0.0.0", "ftp://127.0.0.1", "unix://x/y"} {
		server(url, "want https, or http to this machine")
	}
	for _, url := range []string{"h/v1", "https://", "https:///v1", "https://u:hunter2@h", "https://h?key=hunter2", "https://h?", "https://h#x", "https://h\n", "://"} {
		server(url, "no address")
	}
	f(Config{Kind: OpenAI, URL: "https://h", Model: "m", Key: "a\nb"}, "one line")
	f(Config{Kind: OpenAI, URL: "https://h", Model: "m", Key: "ä"}, "one line")
}

// TestReady: a project gets what the operator enabled and nothing else.
func TestReady(t *testing.T) {
	f := func(c Config, provider, endpoint, want string) {
		t.Helper()
		p := New(c)
		defer p.Close()
		got := p.Ready(&workspace.Config{Provider: provider, Endpoint: endpoint})
		if got == nil && want != "" || got != nil && (got.Code != "CFG-003" && got.Code+" "+got.Values[0] != "CFG-002 ai.model" || got.Values[0] != want) {
			t.Errorf("%v %s %s: %v, want %s", c.Kind, provider, endpoint, got, want)
		}
	}
	sub := Config{Kind: Subprocess, Command: []string{"p"}}
	server := Config{Kind: OpenAI, URL: "https://h/v1", Model: "m"}
	for _, c := range []Config{{}, {Kind: Builtin}, sub, server} {
		f(c, Builtin, "https://evil.example", "")
	}
	f(Config{}, Subprocess, "", "ai.provider")
	f(Config{Kind: Builtin}, OpenAI, "", "ai.provider")
	f(sub, OpenAI, "", "ai.provider")
	f(server, Subprocess, "", "ai.provider")
	f(sub, Subprocess, "https://evil.example", "")
	f(server, OpenAI, "", "")
	f(server, OpenAI, "https://h/v1", "")
	f(server, OpenAI, "https://h/v1/", "ai.endpoint")
	f(server, OpenAI, "https://evil.example", "ai.endpoint")
	free := server
	free.Model = ""
	f(free, OpenAI, "", "ai.model")
	f(free, OpenAI, "https://evil.example", "ai.endpoint")
	if got := New(free).Ready(&workspace.Config{Provider: OpenAI, Model: "m"}); got != nil {
		t.Error(got)
	}
}
