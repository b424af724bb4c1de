package exacta

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/engine/projects/codec"
	"trunkline/handlers/exacta/workspace"
)

// sealedPoint reports whether the rollback point of the first execution is complete.
func sealedPoint(t *testing.T, dir string) bool {
	t.Helper()
	ws, f := workspace.Open(dir, workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	defer ws.Close()
	pt, f := ws.LoadPoint(nth(codec.Execution, 1))
	if f != nil {
		t.Fatal(f)
	}
	return pt.Sealed
}

// TestSealed: the rollback point of an execution that is complete is sealed, whatever its last step
// is, and also if a crash came right before (exacta §4.18).
func TestSealed(t *testing.T) {
	fakeBuild(t)
	for _, text := range []string{planOf(clauses[:1]), planOf(clauses[:1]) + "; build"} {
		dir := scene(t)
		list := counted(t, dir, "Completed", executes(dir, text))
		if !sealedPoint(t, dir) {
			t.Errorf("%s: not sealed", text)
		}
		dir = scene(t)
		crash(t, list.last("create manifest.json.tmp"), executes(dir, text))
		p, state := reopened(t, dir)
		if state != "Paused" {
			t.Fatal(state)
		}
		p.send(ask(2, "Resume", `"execution_id":"`+nth(codec.Execution, 1)+`"`))
		p.reach("Completed")
		p.sess.(*session).srv.Close()
		if !sealedPoint(t, dir) {
			t.Errorf("%s, after a crash: not sealed", text)
		}
	}
}

// paused returns a project whose execution is paused in its fifth step, by a crash.
func paused(t *testing.T) (dir string) {
	t.Helper()
	fakeBuild(t)
	dir = scene(t)
	list := counted(t, dir, "Completed", executes(dir, planOf(clauses)))
	dir = scene(t)
	crash(t, list.at("rename y.txt"), executes(dir, planOf(clauses)))
	return dir
}

// TestDamagedWayBack: an execution does not go on if the original bytes of a step that was done are
// not those that were saved (exacta §4.10).
func TestDamagedWayBack(t *testing.T) {
	dir := paused(t)
	blob := filepath.Join(dir, ".exacta", "rollback", nth(codec.Execution, 1), "1.bin")
	if err := os.WriteFile(blob, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, _ := reopened(t, dir)
	p.send(ask(2, "Resume", `"execution_id":"`+nth(codec.Execution, 1)+`"`))
	if got := p.until(2); !strings.Contains(got, `"to":"Failed","trigger":"ResumeFailed"`) || !strings.Contains(got, "ST-002") {
		t.Error(brief(got))
	}
}

// TestInterruptedStepInConflict: where another program changed the file of the interrupted step,
// that is reported, its bytes stay, and the execution is paused: nothing is lost.
func TestInterruptedStepInConflict(t *testing.T) {
	dir := paused(t)
	file := filepath.Join(dir, "d/y.txt")
	if err := os.WriteFile(file, []byte("of the user\n"), 0o604); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	p := newPeer(t, s, 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	if got := p.until(1); !strings.Contains(got, `"code":"FS-006"`) || !strings.Contains(got, `"state":"Paused"`) {
		t.Error(brief(got))
	}
	resume := `"execution_id":"` + nth(codec.Execution, 1) + `"`
	p.send(ask(2, "Resume", resume))
	if got := p.until(2); !strings.Contains(got, "VAL-005") {
		t.Error(brief(got))
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "of the user\n" {
		t.Errorf("%q %v", text, err)
	}
	if err := os.WriteFile(file, []byte("old\n"), 0o604); err != nil {
		t.Fatal(err)
	}
	p.send(ask(3, "Resume", resume))
	p.reach("Completed")
	if got := whole(t, dir); !strings.Contains(got, `/d/y.txt -rw----r-- "old\n2\n"`) {
		t.Error(got)
	}
}

// TestRedirectedEntry: an entry of a rollback point that is of no step of its plan restores
// nothing.
func TestRedirectedEntry(t *testing.T) {
	dir := paused(t)
	ws, f := workspace.Open(dir, workspace.Options{Key: key()})
	if f != nil {
		t.Fatal(f)
	}
	pt, f := ws.LoadPoint(nth(codec.Execution, 1))
	if f != nil {
		t.Fatal(f)
	}
	pt.Entries[0].Path = "go.mod"
	if f := pt.Seal(); f != nil {
		t.Fatal(f)
	}
	ws.Close()
	before := whole(t, dir)
	p := newPeer(t, newServer(t), 1)
	p.send(ask(1, "OpenProject", `"path":"`+dir+`"`))
	if got := p.until(1); !strings.Contains(got, `"code":"ST-002"`) || !strings.Contains(got, `"to":"Failed"`) || whole(t, dir) != before {
		t.Error(brief(got), whole(t, dir))
	}
}
