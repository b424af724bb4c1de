package workspace

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// openWith opens a root with this config.json.
func openWith(t *testing.T, config string) (*Config, string) {
	t.Helper()
	root := canonicalTemp(t)
	write(t, root, map[string]string{".exacta/config.json": config})
	p, f := Open(root, Options{Secret: func(b []byte) bool { return bytes.Contains(b, []byte("sk-")) }})
	if f != nil {
		if strings.Contains(f.Error(), "sk-") || strings.Contains(f.Error(), root) {
			t.Errorf("%v", f)
		}
		return nil, f.Code + " " + strings.Join(f.Values, "")
	}
	defer p.Close()
	return p.Config(), ""
}

func TestConfigDefaults(t *testing.T) {
	p := open(t, canonicalTemp(t), Options{})
	want := &Config{
		Provider: "builtin", MaxInputTokens: 100_000, MaxOutputTokens: 16_000, MaxSteps: 10, MaxFiles: 15, MaxDiffLines: 500,
		BuildTimeout: 300, AITimeout: 120, Tool: "auto", Text: []byte("{}"),
		Fingerprint: "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
	}
	if !reflect.DeepEqual(p.Config(), want) {
		t.Errorf("%+v", p.Config())
	}
	if entries, err := os.ReadDir(p.Root()); err != nil || len(entries) != 0 {
		t.Errorf("opening wrote %v %v", entries, err)
	}
}

func TestConfigValues(t *testing.T) {
	c, problem := openWith(t, ` {"unknown":[{"b":1.50,"a":null}], "schema_version" : 1,
		"ai":{"provider":"openai_compatible","model":"m","endpoint":"e","max_input_tokens":5,"max_output_tokens":6},
		"limits":{"max_steps_per_plan":1,"max_total_files_per_plan":2,"max_diff_lines_per_step":3,"build_timeout_seconds":3600,"ai_timeout_seconds":1},
		"file_rules":{"deny":["secret/"],"allow":["bin/a\u00e9"]},
		"build":{"tool":"make","configuration":"Release","working_directory":"src/x"}}`)
	if problem != "" {
		t.Fatal(problem)
	}
	text := `{"ai":{"endpoint":"e","max_input_tokens":5,"max_output_tokens":6,"model":"m","provider":"openai_compatible"},` +
		`"build":{"configuration":"Release","tool":"make","working_directory":"src/x"},"file_rules":{"allow":["bin/aé"],"deny":["secret/"]},` +
		`"limits":{"ai_timeout_seconds":1,"build_timeout_seconds":3600,"max_diff_lines_per_step":3,"max_steps_per_plan":1,"max_total_files_per_plan":2},` +
		`"schema_version":1,"unknown":[{"a":null,"b":1.50}]}`
	want := &Config{
		Provider: "openai_compatible", Model: "m", Endpoint: "e", MaxInputTokens: 5, MaxOutputTokens: 6, MaxSteps: 1, MaxFiles: 2,
		MaxDiffLines: 3, BuildTimeout: 3600, AITimeout: 1, Deny: []string{"secret/"}, Allow: []string{"bin/aé"}, Tool: "make",
		Configuration: "Release", WorkingDirectory: "src/x", Text: []byte(text), Fingerprint: Sum([]byte(text)),
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v\n%s", c, c.Text)
	}
}

// TestConfigProblems has the checks of config.json (exacta §4.18, §8) and their order.
func TestConfigProblems(t *testing.T) {
	f := func(config, want string) {
		t.Helper()
		if _, got := openWith(t, config); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
	for _, text := range []string{
		"", "{", "[]", "null", "1", `"x"`, "{}}", `{"a":1,"a":2}`, `{"a":NaN}`, "{\"a\":\"\xff\"}", "\ufeff\ufeff{}",
		`{"a":"\ud800"}`,
		`{"a":` + strings.Repeat("[", 33) + strings.Repeat("]", 33) + `}`,
		strings.Repeat(" ", maxConfig+1),
	} {
		f(text, "CFG-001 ")
	}
	f(`{}`, "CFG-002 schema_version")
	f(`{"Schema_version":1}`, "CFG-002 schema_version")
	for _, v := range []string{"2", "0", "1.0", "1e0", `"1"`, "true", "null", "{}"} {
		f(`{"schema_version":`+v+`}`, "CFG-003 schema_version")
	}
	g := func(section, setting string, values ...string) {
		t.Helper()
		for _, v := range values {
			f(`{"schema_version":1,"`+section+`":{"`+setting+`":`+v+`}}`, "CFG-003 "+section+"."+setting)
		}
	}
	g("ai", "provider", `"other"`, `""`, "null", "1")
	g("ai", "model", "1", "null", `"\u0000"`)
	g("ai", "endpoint", "[]")
	g("ai", "max_input_tokens", "0", "100001", "1.5", `"5"`)
	g("ai", "max_output_tokens", "0", "16001")
	g("limits", "max_steps_per_plan", "0", "11", "-1", "true")
	g("limits", "max_total_files_per_plan", "16")
	g("limits", "max_diff_lines_per_step", "501", "99999999999999999999")
	g("limits", "build_timeout_seconds", "0", "3601")
	g("limits", "ai_timeout_seconds", "0", "3601")
	g("file_rules", "deny", `"x"`, "[1]", `[""]`, "null")
	g("file_rules", "allow", "{}")
	g("build", "tool", `"bazel"`, "1")
	g("build", "configuration", `"debug"`, "1")
	g("build", "working_directory", `"/x"`, `"../x"`, `"a\\b"`, "1", `".git"`)
	for _, section := range []string{"ai", "limits", "file_rules", "build"} {
		f(`{"schema_version":1,"`+section+`":[]}`, "CFG-003 "+section)
	}
	f(`{"schema_version":1,"x":{"y":["sk-1"]}}`, "SEC-003 ")
	f(`{"schema_version":1,"x":"\u0073k-1"}`, "SEC-003 ")
	f(`{"schema_version":2,"x":"sk-1"}`, "CFG-003 schema_version")
	f(`{"schema_version":1,"limits":{"build_timeout_seconds":3600,"ai_timeout_seconds":3600},"build":{"working_directory":"."}}`, "")
}

// TestStorageIsNoDirectory: what stands in the place of .exacta and its files is not followed.
func TestStorageIsNoDirectory(t *testing.T) {
	outside := canonicalTemp(t)
	write(t, outside, map[string]string{"config.json": `{"schema_version":1}`})
	f := func(name, code string, prepare func(store string) error) {
		t.Helper()
		root := canonicalTemp(t)
		if err := prepare(filepath.Join(root, storeName)); err != nil {
			t.Fatal(err)
		}
		p, got := Open(root, Options{Lazy: true})
		if got == nil {
			got = p.SaveState(&State{})
			p.Close()
		}
		if got == nil || got.Code != code {
			t.Errorf("%s: %v, want %s", name, got, code)
		}
	}
	f("link", "SEC-002", func(s string) error { return os.Symlink(outside, s) })
	f("dangling link", "SEC-002", func(s string) error { return os.Symlink("none", s) })
	f("file", "SEC-002", func(s string) error { return os.WriteFile(s, nil, 0o644) })
	f("config link", "SEC-002", func(s string) error {
		if err := os.Mkdir(s, 0o755); err != nil {
			return err
		}
		return os.Symlink(filepath.Join(outside, "config.json"), filepath.Join(s, "config.json"))
	})
	f("config folder", "SEC-002", func(s string) error { return os.MkdirAll(filepath.Join(s, "config.json"), 0o755) })
	f("lock link", "SEC-002", func(s string) error {
		if err := os.Mkdir(s, 0o755); err != nil {
			return err
		}
		return os.Symlink(filepath.Join(outside, "lock"), filepath.Join(s, "lock"))
	})
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v %v", entries, err)
	}
}
