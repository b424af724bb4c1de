package toolset

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/handlers/toolhost"
)

// TestUnusable: tools that cannot be run are named with the reason, in the list and at the start,
// and the others are not.
func TestUnusable(t *testing.T) {
	clean(t)
	dir := t.TempDir()
	write(t, dir, "w.sh", script)
	write(t, dir, "plain.txt", "not executable")
	zeros := strings.Repeat("0", 64)
	exec := func(aid, exec string) string { return declare(aid, `,"exec":`+exec) }
	path := write(t, dir, "m.json", manifestOf(
		worker("AID.A.FINE.v1", "w.sh", ""),
		declare("AID.NOOP.v1", ""),
		declare("AID.B.NOTHING.v1", ""),
		exec("AID.C.GONE.v1", `{"kind":"process","command":["no-such-program"]}`),
		exec("AID.D.ABSENT.v1", `{"kind":"process","command":["./nowhere.sh"]}`),
		exec("AID.E.PLAIN.v1", `{"kind":"process","command":["./plain.txt"]}`),
		worker("AID.F.HASH.v1", "w.sh", `,"sha256":"`+zeros+`"`),
		worker("AID.G.DIR.v1", "w.sh", `,"cwd":"nowhere"`),
		exec("AID.H.WASM.v1", `{"kind":"wasm","module":"nowhere.wasm"}`),
		exec("AID.I.WASM.v1", `{"kind":"wasm","module":"plain.txt","sha256":"`+zeros+`"}`)))
	s := open(t, plain(path))
	want := []toolhost.Unusable{
		{AID: "AID.B.NOTHING.v1", Why: "it has no exec, and there is no built-in tool of that AID"},
		{AID: "AID.C.GONE.v1", Why: "executable not found in PATH: no-such-program"},
		{AID: "AID.D.ABSENT.v1", Why: "stat " + filepath.Join(dir, "nowhere.sh") + ": no such file or directory"},
		{AID: "AID.E.PLAIN.v1", Why: "exec " + filepath.Join(dir, "plain.txt") + ": permission denied"},
		{AID: "AID.F.HASH.v1", Why: "hash mismatch"},
		{AID: "AID.G.DIR.v1", Why: "chdir " + filepath.Join(dir, "nowhere") + ": not a directory"},
		{AID: "AID.H.WASM.v1", Why: "stat " + filepath.Join(dir, "nowhere.wasm") + ": no such file or directory"},
		{AID: "AID.I.WASM.v1", Why: "hash mismatch"},
	}
	got := s.Unusable()
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	var log bytes.Buffer
	s.Warn(slog.New(slog.NewTextHandler(&log, nil)))
	list := string((&toolhost.Single{Registry: s.Registry, Unusable: got}).List())
	tools, unusable, _ := strings.Cut(list, `],"unusable":[`)
	for _, u := range want {
		if strings.Contains(tools, u.AID) || !strings.Contains(unusable, `{"aid":"`+u.AID+`","why":"`+u.Why+`"}`) || !strings.Contains(log.String(), "aid="+u.AID) {
			t.Errorf("%s is missing in %s or in %s", u.AID, list, &log)
		}
	}
	for _, aid := range []string{"AID.A.FINE.v1", "AID.NOOP.v1"} {
		if !strings.Contains(tools, aid) || strings.Contains(unusable+log.String(), aid) {
			t.Errorf("%s is called unusable: %s", aid, list)
		}
	}
	if strings.Count(list, "\n") != 1 || !strings.HasPrefix(list, `{"ok":true,"tools":[{"aid":"AID.A.FINE.v1"`) {
		t.Error(list)
	}
	if got := open(t, plain("builtin")).Unusable(); got != nil {
		t.Errorf("%v of the built-in tools", got)
	}
}
