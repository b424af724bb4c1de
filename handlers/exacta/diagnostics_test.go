package exacta

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/engine/projects"
)

// entries returns the names of an archive, and its text.
func entries(t testing.TB, data []byte) (names, text string) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.File {
		if !f.Modified.Equal(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		names, text = names+f.Name+" ", text+string(b)
	}
	return names, text
}

// TestBundlesAreEqual: equal projects have equal bundles, in different places (exacta §6.4), and
// neither has text of clients, content, or a name of the machine.
func TestBundlesAreEqual(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	var first []byte
	for range 2 {
		s, dir := newServer(t), newRoot(t)
		files(t, dir, map[string]string{"secret/token=abcdef": "CONTENT", ".exacta/config.json": `{"schema_version":1,"other":"MARK","ai":{"model":"` + home + `/m"},"file_rules":{"deny":["no/"]}}`, "no/x": ""})
		p := newPeer(t, s, 1)
		p.send(ask(1, "OpenProject", `"path":"`+dir+`"`), ask(2, "ExtractIntent", `"user_input":"append \"MARK\" to a.txt"`))
		p.want(6, "LogEntry1 101:ok StateChanged2 StateChanged3 LogEntry4 102:ok")
		p.send(ask(3, "ExtractIntent", `"user_input":"append \"MARK\" to /MARK/x.txt"`))
		p.want(4, "StateChanged5 ErrorRaised6 StateChanged7 103:FS-003")
		p.send(ask(4, "ExportDiagnostics", `"output_path":"b.zip","include_debug":true,"include_project_tree":true`))
		p.want(2, "LogEntry8 104:ok")
		data, err := os.ReadFile(filepath.Join(dir, ".exacta", "diagnostics", "b.zip"))
		if err != nil {
			t.Fatal(err)
		}
		names, text := entries(t, data)
		if names != "system_info.json config_sanitized.json recent_logs.jsonl state_snapshot.json error_details.json debug_logs.jsonl project_structure.txt " {
			t.Error(names)
		}
		host, _ := os.Hostname()
		for _, bad := range []string{"MARK", "CONTENT", dir, home, "abcdef", "no/x", "\r"} {
			if strings.Contains(text, bad) {
				t.Errorf("a bundle has %q: %s", bad, text)
			}
		}
		if len(host) > 5 && strings.Contains(text, host) {
			t.Error("a bundle has the name of the host")
		}
		if !strings.HasSuffix(text, "{PROJECT_ROOT}/\na.txt\ngo.mod\nsecret/\nsecret/[REDACTED]\n") || !strings.Contains(text, `"model":"{HOME}/m"`) {
			t.Error(text)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Error("another bundle")
		}
	}
}

// TestBundlesAreChecked again as a whole before they are written.
func TestBundlesAreChecked(t *testing.T) {
	f := func(name, data, want string) {
		t.Helper()
		err := (&file{name, []byte(data)}).check()
		if want == "" && err == nil {
			return
		}
		if err == nil || err.Code != want {
			t.Errorf("%s %s: %v, want %s", name, data, err, want)
		}
	}
	f("a.json", `{"api_key":"[REDACTED]"}`, "")
	f("a.json", `{"a":["token: abcdef"]}`, "SEC-003")
	f("a.json", `{"token: abcdef":1}`, "SEC-003")
	f("a.json", `{"a":"sk-\u0061aaaaaaaaaaaaaaaaaaaaaaa"}`, "SEC-003")
	f("a.json", `{`, "ST-002")
	f("a.jsonl", "{}\n{\"a\":\"password=abcd\"}\n", "SEC-003")
	f("a.jsonl", "{}\n{\n", "ST-002")
	f("a.jsonl", "", "")
	f("a.txt", "a\nb\n", "")
	f("a.txt", "a\npassword=abcd\n", "SEC-003")
}

// TestNewestLines at the limit, and one byte above.
func TestNewestLines(t *testing.T) {
	f := func(most int, want string) {
		t.Helper()
		if got := string(newest([]byte("ab\ncd\nef\n"), []int{3, 6, 9}, most)); got != want {
			t.Errorf("%d: %q, want %q", most, got, want)
		}
	}
	f(9, "ab\ncd\nef\n")
	f(8, "cd\nef\n")
	f(3, "ef\n")
	f(2, "")
	long := projects.Record{Event: "LogEntry", Level: "INFO"}
	b := &bundle{cfg: &Config{}, hide: func(string) string { return strings.Repeat("x", 1000) }, snap: &projects.Snapshot{}}
	out, ends := b.lines(append(make([]projects.Record, 1999), long))
	if out = newest(out, ends, maxDebug); len(out) > maxDebug || len(out) < maxDebug-2000 || out[0] != '{' {
		t.Errorf("%d bytes", len(out))
	}
}

// TestHidden has what is removed from every text of a bundle (exacta §6.6).
func TestHidden(t *testing.T) {
	hide := hider("/u/me/p", "/u/me")
	f := func(text, want string) {
		t.Helper()
		if got := hide(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f("in /u/me/p/a.txt, /u/me/b", "in {PROJECT_ROOT}/a.txt, {HOME}/b")
	f("by a.b+c@mail.example.com.", "by [REDACTED].")
	f("password=abcdef", "[REDACTED]")
	f("a@b", "a@b")
	if got := hider("/p", "/")("/a/p"); got != "/a{PROJECT_ROOT}" {
		t.Error(got)
	}
}

// FuzzHidden: a text that is hidden passes the check of its bundle.
func FuzzHidden(f *testing.F) {
	for _, text := range []string{"a@b.c", "token: abcdef", "/r/x", "://a:b@c.de", "sk-aaaaaaaaaaaaaaaaaaaaaaa"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := &bundle{cfg: &Config{}, hide: hider("/r", "/h"), snap: &projects.Snapshot{}}
		b.cfg.Version = text
		for _, e := range []file{{"system_info.json", b.system()}, {"state_snapshot.json", b.state()}, {"error_details.json", b.raised()}} {
			if err := e.check(); err != nil {
				t.Errorf("%q: %v in %s", text, err, e.data)
			}
		}
	})
}
