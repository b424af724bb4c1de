package doctor

import (
	"path/filepath"
	"testing"
)

func TestDirectories(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	file, missing := write(t, filepath.Join(dir, "file"), "x"), filepath.Join(dir, "missing")
	f := func(key, value string, result Result, evidence string, args ...string) {
		t.Helper()
		r.want(r.run(append(args, "--set", key+"="+value)...), "directories", key, result, evidence)
	}
	r.want(r.run(), "directories", "", Skipped, "no directory is named")
	for key, bad := range map[string]Result{"threads.supervisor_workdir": Failed, "exacta.allowed_roots": Warning, "exacta.diagnostics_dirs": Warning} {
		f(key, dir, OK, dir+" is a directory")
		f(key, missing, bad, "no such file")
		f(key, file, bad, "not a directory")
	}
	f("exacta.allowed_roots", dir+","+missing, Warning, missing)
	tools := []string{"--toolhost-listen", "127.0.0.1:0"}
	f("toolhost.root", dir, OK, dir+" is a directory", tools...)
	f("toolhost.root", missing, Failed, "no such file", tools...)
	f("toolhost.plugins", "builtin", OK, "can be read", tools...)
	f("toolhost.plugins", "builtin,"+missing, Failed, "missing", tools...)
	f("toolhost.plugins", file, Failed, "file", tools...)
}
