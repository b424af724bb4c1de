package builtin

import "testing"

func TestEnvFrom(t *testing.T) {
	f := func(root, request, writeRoot, wd, wantRoot, wantRequest, wantWrite string) {
		t.Helper()
		vars := map[string]string{"MACHINA_ROOT": root, "MACHINA_REQUEST_DIR": request, "MACHINA_FS_WRITE_ROOT": writeRoot}
		e, err := EnvFrom(func(name string) string { return vars[name] }, wd)
		if err != nil {
			t.Errorf("%q in %q: %v", root, wd, err)
			return
		}
		if e.Root != wantRoot || e.RequestDir != wantRequest || e.WriteRoot != wantWrite {
			t.Errorf("%q in %q: got %q %q %q", root, wd, e.Root, e.RequestDir, e.WriteRoot)
		}
	}
	f("", "", "", "/w", "/w", "", "/w/work")
	f("/r/x/", "", "", "/w", "/r/x", "", "/r/x/work")
	f("/r/./x/../y", "", "", "", "/r/y", "", "/r/y/work")
	f("r", "q", "o", "/w", "/w/r", "/w/r/q", "/w/r/o")
	f("..", "../q", "../o", "/w/v", "/w", "/q", "/o")
	f("/r", "/q/", "/o//p", "/w", "/r", "/q", "/o/p")
	f("/", "", "", "/w", "/", "", "/work")
}

func TestEnvFromWithoutRoot(t *testing.T) {
	f := func(root, wd string) {
		t.Helper()
		if e, err := EnvFrom(func(string) string { return root }, wd); err == nil {
			t.Errorf("%q in %q: root %q", root, wd, e.Root)
		}
	}
	f("", "")
	f("r", "")
	f("r", "w")
}
