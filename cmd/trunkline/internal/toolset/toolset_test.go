package toolset

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// visible are the built-in tools that need no manifest (toolhost §4.7).
var visible = strings.Fields(`AID.ASK_SUP.v1 AID.EMBED.TEXT.v1 AID.ERROR_SCAN.v1 AID.FILE.READ.v1 AID.FILE.WRITE.v1 AID.HASH.DIGEST.v1
	AID.MEMORY.APPEND.v1 AID.MEMORY.QUERY.v1 AID.MEMORY.SEARCH.v1 AID.NOOP.v1 AID.PROC.SELF_METRICS.v1 AID.REPORT_SUMMARY.v1
	AID.VECDB.QUERY.v1 AID.VECDB.UPSERT.v1`)

func TestOneRegistry(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	mine := write(t, dir, "mine.json", manifestOf(declare("AID.NOOP.v1", ""), declare("AID.NOBODY.v1", ""),
		declare("AID.ALIAS.v1", `,"exec":{"kind":"builtin","name":"AID.NOOP.v1"}`), declare("AID.TEST.ECHO.v1", "")))
	ext := write(t, dir, "more/b.json", manifestOf(worker("AID.EXT.v1", "w.sh", "")))
	write(t, dir, "more/a.json", manifestOf(declare("AID.MODULE.v1", `,"exec":{"kind":"wasm","module":"m.wasm"}`)))
	write(t, dir, "more/deep/c.json", "not read")
	f := func(o Options, want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := open(t, o).aids(t); !slices.Equal(got, want) {
			t.Errorf("%v:\n got %v\nwant %v", o.Plugins, got, want)
		}
	}
	all := func(more ...string) []string { return append(slices.Clone(visible), more...) }
	bound := []string{"AID.NOOP.v1", "AID.ALIAS.v1", "AID.TEST.ECHO.v1"}
	f(plain())
	f(plain(t.TempDir()))
	f(plain("builtin"), visible...)
	f(plain("builtin", "builtin"), visible...)
	f(Options{Builtins: true}, visible...)
	f(plain(mine), bound...)
	f(plain(ext), "AID.EXT.v1")
	f(plain(filepath.Join(dir, "more")), "AID.EXT.v1", "AID.MODULE.v1")
	f(plain("builtin", mine), all("AID.ALIAS.v1", "AID.TEST.ECHO.v1")...)
	f(plain(filepath.Dir(ext), mine, "builtin"), all("AID.ALIAS.v1", "AID.TEST.ECHO.v1", "AID.EXT.v1", "AID.MODULE.v1")...)
	f(Options{Builtins: true, Plugins: []string{mine, ext}}, all("AID.ALIAS.v1", "AID.TEST.ECHO.v1", "AID.EXT.v1")...)
}

// TestManifestDescribes: a manifest that binds a built-in supplies what lists show; its tier can
// only rise (toolhost §4.4, §4.7).
func TestManifestDescribes(t *testing.T) {
	clean(t)
	as := func(name, more string) string { return `,"exec":{"kind":"builtin","name":"` + name + `"}` + more }
	path := write(t, t.TempDir(), "m.json", manifestOf(declare("AID.NOOP.v1", ""), declare("AID.SAFE.v1", as("AID.FILE.WRITE.v1", `,"tier":0`)),
		declare("AID.RAISED.v1", as("AID.NOOP.v1", `,"tier":3`)), declare("AID.SHELL.v1", as("AID.NOOP.v1", ""))))
	s := open(t, plain(path))
	tiers := map[string]int{"AID.NOOP.v1": 0, "AID.SAFE.v1": 1, "AID.RAISED.v1": 3, "AID.SHELL.v1": 2}
	for _, d := range s.Registry.Descriptors() {
		if d.Name != "declared" || len(d.Tags) != 1 || d.Tags[0] != "tag.t" || d.Tier != tiers[d.AID] {
			t.Errorf("%+v, want tier %d", d, tiers[d.AID])
		}
	}
	if got := s.run("AID.RAISED.v1", `{}`); got != `{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"slots":{}}}` {
		t.Error(got)
	}
	echo := open(t, plain(write(t, t.TempDir(), "m.json", manifestOf(declare("AID.TEST.ECHO.v1", "")))))
	if got := echo.run("AID.TEST.ECHO.v1", `{"inputs":{"x":1}}`); !strings.Contains(got, `"content_json":"{\"echo\":{\"x\":1}}"`) {
		t.Error(got)
	}
}

func TestRefusals(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, dir, "a.json", manifestOf(declare("AID.A.v1", "")))
	write(t, dir, "twice.json", manifestOf(declare("AID.A.v1", ""), declare("AID.A.v1", "")))
	write(t, dir, "pack/one.json", manifestOf(declare("AID.B.v1", "")))
	write(t, dir, "pack/two.json", manifestOf(worker("AID.A.v1", "w.sh", "")))
	// The worker before it has its thread already, which must not stay behind.
	write(t, dir, "nobuiltin.json", manifestOf(worker("AID.W.v1", "w.sh", ""), declare("AID.C.v1", `,"exec":{"kind":"builtin","name":"AID.NONE.v1"}`)))
	write(t, dir, "bad/one.json", manifestOf(declare("AID.B.v1", "")))
	write(t, dir, "bad/two.json", "{")
	write(t, dir, "lib.so", "")
	f := func(want string, o Options) {
		t.Helper()
		s, err := Open(o)
		if err == nil || err.Error() != want || s != nil {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	f("invalid manifest: twice.json: duplicate aid in registry: AID.A.v1", plain("twice.json"))
	f("invalid manifest: a.json: duplicate aid in registry: AID.A.v1", plain("a.json", "builtin", "a.json"))
	f("invalid manifest: pack/two.json: duplicate aid in registry: AID.A.v1", plain("a.json", "pack"))
	f("invalid manifest: a.json: duplicate aid in registry: AID.A.v1", plain("pack", "a.json"))
	f("invalid manifest: nobuiltin.json: no built-in tool is named AID.NONE.v1", plain("nobuiltin.json"))
	f("invalid manifest: bad/two.json: invalid JSON: unexpected end of input at offset 1", plain("bad"))
	f("unsupported plugin: native shared object: lib.so", plain("builtin", "lib.so"))
	f("plugin not found: nowhere", plain("nowhere"))
	f("plugin not found: ", plain(""))
	f("plugin not found: a.json,pack", plain("a.json,pack"))
	f("cannot use root: not a directory: nowhere", Options{Root: "nowhere"})
	f("cannot use root: not a directory: a.json", Options{Root: "a.json"})
	f("invalid manifest: bad/two.json: invalid JSON: unexpected end of input at offset 1", Options{Root: "nowhere", Plugins: []string{"bad"}})
}

func TestUnreadableFiles(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	clean(t)
	dir := t.TempDir()
	path := write(t, dir, "m.json", "{}")
	for _, p := range []string{path, dir} {
		if err := os.Chmod(p, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(p, 0o700) })
		if _, err := Open(plain(p)); err == nil || err.Error() != "invalid manifest: "+p+": cannot read: permission denied" {
			t.Errorf("%v", err)
		}
		_ = os.Chmod(p, 0o700)
	}
}

func TestTier0(t *testing.T) {
	root := t.TempDir()
	want := filepath.Join(root, "toolpacks", "tier0", "manifest.json")
	f := func(want string) {
		t.Helper()
		if got := Tier0(root); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	f("")
	write(t, root, "toolpacks/tier0/manifest.json", "{}")
	f(want)
	if err := os.Remove(want); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(want, 0o755); err != nil {
		t.Fatal(err)
	}
	f("")
}
