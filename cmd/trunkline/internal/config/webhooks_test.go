package config

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hooksYAML returns a settings file with webhooks, each a flow mapping.
func hooksYAML(hooks ...string) string {
	return "threads:\n  webhooks:\n    - " + strings.Join(hooks, "\n    - ") + "\n"
}

func TestWebhooks(t *testing.T) {
	c := mustLoad(t, nil, nil, hooksYAML(
		`{name: a-1_b, url: "https://example.org/hook?x=y", secret_file: /s}`,
		`{name: b, url: "http://[::1]:8080", secret_file: /s, workspace: w, thread_types: [incident], event_types: [message, unread_dormant, fix_pushed], allow_private: ["::1", LOCALHOST]}`,
		`{name: c, url: "http://localhost/", secret_file: /s, allow_private: [LOCALHOST]}`))
	if len(c.Threads.Webhooks) != 3 || c.Threads.Webhooks[1].EventTypes[1] != "unread_dormant" || c.Threads.Webhooks[1].Workspace != "w" {
		t.Errorf("%+v", c.Threads.Webhooks)
	}
	want := `[{"name":"a-1_b","url":"https://example.org/hook?x=y","secret_file":"/s"},`
	if v, o := row(t, c, "threads.webhooks"); !strings.HasPrefix(v.(string), want) || o != "file" && !strings.HasPrefix(o, "file ") {
		t.Errorf("%s (%s)", v, o)
	}
	if c := mustLoad(t, nil, nil, "threads: {webhooks: []}"); len(c.Threads.Webhooks) != 0 {
		t.Errorf("%+v", c.Threads.Webhooks)
	}
}

// TestWebhooksRefused has what keeps a server from starting.
func TestWebhooksRefused(t *testing.T) {
	f := func(want string, hooks ...string) {
		t.Helper()
		if _, err := load(t, nil, nil, hooksYAML(hooks...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", hooks, err, want)
		}
	}
	hook := func(members string) string { return `{name: a, url: "https://h", secret_file: /s, ` + members + `}` }
	f("webhook 1: unknown member secretfile; the nearest known one is secret_file", hook("secretfile: x"))
	f("webhook 2: unknown member even_types; the nearest known one is event_types", hook(""), `{name: b, url: "https://h", secret_file: /s, even_types: x}`)
	f("webhook 1: unknown member Name", hook("Name: b"))
	f(`webhook 2: name "a" is in the list twice`, hook(""), hook(""))
	f(`thread_types: "chat" is none of conversation, workflow, incident`, hook("thread_types: [chat]"))
	f("want members that are texts or lists of texts", hook("thread_types: incident"))
	f("want members that are texts or lists of texts", hook("workspace: 7"))
	f("want members that are texts or lists of texts", hook("allow_private: [7]"))
	f("want members that are texts or lists of texts", "text")
	f(`webhook 1: name ""`, "")
	f(`webhook 1: name ""`, `{url: "https://h", secret_file: /s}`)
	f("a: secret_file is not set", `{name: a, url: "https://h"}`)
	for _, name := range []string{"A", "a.b", "ä", "a b", strings.Repeat("a", 65)} {
		f("want 1 to 64 of a-z", fmt.Sprintf(`{name: %q, url: "https://h", secret_file: /s}`, name))
	}
	for _, url := range []string{"", "h", "https://", "https:///x", "https://user:pw@h", "https://h#f", "https://h\u0001", ":"} {
		f("want https://HOST/PATH", fmt.Sprintf(`{name: a, url: %q, secret_file: /s}`, url))
	}
	for _, url := range []string{"http://h", "ftp://h", "ws://h"} {
		f("want https, or http to a host", fmt.Sprintf(`{name: a, url: %q, secret_file: /s, allow_private: [other]}`, url))
	}
	f("want https, or http", `{name: a, url: "ftp://h", secret_file: /s, allow_private: [h]}`)
	if _, err := load(t, nil, nil, hooksYAML(hook("url2: x"), `{name: b, url: "https://u:pw@h", secret_file: /s}`)); err == nil {
		t.Error("taken")
	}
	for _, set := range []string{"threads.webhooks=x", "threads.webhooks="} {
		if _, err := load(t, []string{"--set=" + set}, nil, ""); err == nil || !strings.Contains(err.Error(), "in the settings file") {
			t.Errorf("%s: %v", set, err)
		}
	}
	if _, err := load(t, nil, []string{"TRUNKLINE_THREADS_WEBHOOKS=[]"}, ""); err == nil || !strings.Contains(err.Error(), "in the settings file") {
		t.Error(err)
	}
}

// TestWebhookLimits holds the limits at their values and one beyond.
func TestWebhookLimits(t *testing.T) {
	list := func(n int) string {
		var hooks []string
		for i := range n {
			hooks = append(hooks, fmt.Sprintf(`{name: h%d, url: "https://h", secret_file: /s}`, i))
		}
		return hooksYAML(hooks...)
	}
	mustLoad(t, nil, nil, list(maxWebhooks))
	if _, err := load(t, nil, nil, list(maxWebhooks+1)); err == nil || !strings.Contains(err.Error(), "at most 64 webhooks") {
		t.Error(err)
	}
	mustLoad(t, nil, nil, hooksYAML(fmt.Sprintf(`{name: %s, url: "https://h", secret_file: /s}`, strings.Repeat("a", 64))))
	file := filepath.Join(t.TempDir(), "secret")
	f := func(text string, want int) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		threads := Threads{Webhooks: []Webhook{{Name: "a", URL: "https://h", SecretFile: file}}}
		got, err := threads.WebhookTargets()
		if want == 0 && (err == nil || !strings.Contains(err.Error(), "secret_file of webhook a")) || want > 0 && (err != nil || len(got[0].Secret) != want) {
			t.Errorf("%d bytes: %v, %v, want %d", len(text), got, err, want)
		}
	}
	encoded := func(n int) string { return secretPrefix + base64.StdEncoding.EncodeToString(make([]byte, n)) + "\n" }
	f(encoded(minWebhookSecret), minWebhookSecret)
	f(encoded(minWebhookSecret-1), 0)
	f(encoded(maxWebhookSecret), maxWebhookSecret)
	f(encoded(maxWebhookSecret+1), 0)
	f(secretPrefix+strings.Repeat("-", 32), 0)
	f(strings.Repeat("s", minWebhookSecret)+"\n", minWebhookSecret)
	f(strings.Repeat("s", minWebhookSecret-1)+"\n", 0)
	f(strings.Repeat("s", maxWebhookText), maxWebhookText)
	f(strings.Repeat("s", maxWebhookText+1), 0)
	_ = os.Remove(file)
	threads := Threads{Webhooks: []Webhook{{Name: "a", URL: "https://h", SecretFile: file}}}
	if _, err := threads.WebhookTargets(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// TestWebhookTargets: a host may be private if allow_private names it.
func TestWebhookTargets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(strings.Repeat("s", 24)), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{"https://h.example": false, "https://HOOKS.local:8443/x": true, "https://10.1.2.3": true, "https://10.1.2.4": false,
		"https://[fd00::1]:1/": true, "https://x.hooks.local": false} {
		threads := Threads{Webhooks: []Webhook{{Name: "a", URL: url, SecretFile: file, Workspace: "w", ThreadTypes: []string{"incident"}, EventTypes: []string{"x"},
			AllowPrivate: []string{"hooks.local", "10.1.2.3", "[fd00::1]"}}}}
		got, err := threads.WebhookTargets()
		if err != nil || len(got) != 1 || got[0].Private != want || got[0].URL != url || got[0].Name != "a" || got[0].Workspace != "w" || got[0].Types[0] != "incident" || got[0].Events[0] != "x" {
			t.Errorf("%s: %+v, %v, want private %v", url, got, err, want)
		}
	}
}

// TestWebhooksReloaded: another list is a change that a reload makes.
func TestWebhooksReloaded(t *testing.T) {
	hook := `{name: a, url: "https://h", secret_file: /s}`
	was := mustLoad(t, nil, nil, hooksYAML(hook))
	for _, hooks := range []string{"{}", hooksYAML(hook, strings.Replace(hook, "a,", "b,", 1)), hooksYAML(strings.Replace(hook, "https://h", "https://i", 1))} {
		got, changed, restart, err := was.Reloaded(mustLoad(t, nil, nil, hooks))
		if err != nil || len(restart) > 0 || len(changed) != 1 || changed[0] != "threads.webhooks" || len(got.Threads.Webhooks) == 1 && got.Threads.Webhooks[0].URL != "https://i" {
			t.Errorf("%s: %v, %v, %v", hooks, changed, restart, err)
		}
	}
	if _, changed, _, err := was.Reloaded(mustLoad(t, nil, nil, hooksYAML(hook))); err != nil || len(changed) > 0 {
		t.Error(changed, err)
	}
}

// FuzzWebhooks: for any list there are webhooks that keep the rules, and are the same once they are
// shown and read again, or an error.
func FuzzWebhooks(f *testing.F) {
	f.Add(`[{"name":"a","url":"https://h","secret_file":"/s"}]`)
	f.Add(`[{"name":"a","url":"http://h:1/x?y","secret_file":"/s","workspace":"w","thread_types":["incident"],"event_types":["message"],"allow_private":["H"]}]`)
	f.Add(`[{"name":"a","url":"http://[fe80::1%25eth0]","secret_file":"/s","allow_private":["[fe80::1%eth0]"]},{"name":"b"}]`)
	f.Add("- {name: a, url: https://h, secret_file: /s}\n- {name: a}")
	f.Add("- &x {name: a}\n- *x")
	f.Add("- {1: 2}")
	f.Add("x")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseYAML([]byte("threads:\n  webhooks: " + strings.ReplaceAll("\n"+text, "\n", "\n    ")))
		if err != nil {
			return
		}
		section, _ := m["threads"].(map[string]any)
		var list []Webhook
		if assignWebhooks(&list, section["webhooks"]) != nil {
			if list != nil {
				t.Fatal("a list that was refused is taken")
			}
			return
		}
		names := map[string]bool{}
		for _, w := range list {
			https := strings.HasPrefix(strings.ToLower(w.URL), "https://")
			if names[w.Name] || len(w.Name) == 0 || len(w.Name) > 64 || w.SecretFile == "" || !https && len(w.AllowPrivate) == 0 {
				t.Fatalf("%+v is taken", w)
			}
			names[w.Name] = true
		}
		shown := showWebhooks(list)
		var v any
		var again []Webhook
		if err := json.Unmarshal([]byte(shown), &v); err != nil {
			t.Fatal(err)
		}
		if err := assignWebhooks(&again, v); err != nil || showWebhooks(again) != shown || len(list) > maxWebhooks {
			t.Fatalf("%s is %s when it is read again: %v", shown, showWebhooks(again), err)
		}
	})
}
