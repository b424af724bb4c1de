package conformance

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// tree returns all files of the project with their modes and bytes, without .exacta.
func (s *server) tree() string {
	s.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(s.dir(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == s.dir() {
			return err
		}
		if e.Name() == ".exacta" {
			return fs.SkipDir
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		var text []byte
		if !e.IsDir() {
			text, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %s %q\n", strings.TrimPrefix(path, s.dir()), st.Mode(), text)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return b.String()
}

const manySteps = `append "1" to m.txt; create file n/e/w.txt; delete d/x.txt; build; append "2" to d/y.txt; create file n/f.txt`

// scene starts a server with files that manySteps changes in all ways.
func scene(t *testing.T) *client {
	c := open(t, stdio, "go.mod", "module x\n", "Makefile", "all:\n\t@true\n", ".exacta/config.json", `{"schema_version":1,"build":{"tool":"make"}}`,
		"m.txt", "m\n", "d/x.txt", "x\n", "d/y.txt", "y\n")
	for name, mode := range map[string]fs.FileMode{"m.txt": 0o640, "d/x.txt": 0o700, "d/y.txt": 0o604} {
		if err := os.Chmod(filepath.Join(c.dir(), name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestKilled5_6 kills the program at random instants of an execution. At the next open the step
// that ran is taken back; Resume then leads to the tree after the plan, Cancel to the one before.
func TestKilled5_6(t *testing.T) {
	t.Parallel()
	c := scene(t)
	before := c.tree()
	plan := c.approved(manySteps)
	start := time.Now()
	c.begin("ExecutePlan", `{"plan_id":"`+plan+`"}`)
	c.until("Executing→Completed ExecutionComplete")
	took, after := time.Since(start), c.tree()
	c.stop()
	times := rounds.Of(4, 4)
	if rounds.Long() {
		times = 200
	}
	seen := make(map[string]int)
	for n := range times {
		c := scene(t)
		c.begin("ExecutePlan", `{"plan_id":"`+c.approved(manySteps)+`"}`)
		time.Sleep(rand.N(took + took/8)) // an instant of no meaning
		c.server.kill()
		c.server.start()
		c = c.server.connect()
		r := c.opens("")
		state, want, then := r.field("state"), before, ""
		switch {
		case state == "Completed":
			want = after
		case state == "Paused" && n%2 == 0:
			want, then = after, "resumed"
			c.ask("Resume", `{"execution_id":"`+r.field("active_execution_id")+`"}`).is(`…"status":"executing"}`)
			c.until("Executing→Completed ExecutionComplete")
		case state == "Paused":
			then = "cancelled"
			c.begin("Cancel", `{"execution_id":"`+r.field("active_execution_id")+`"}`)
			c.until("Cancelling→Idle RollbackComplete")
		case state != "Idle":
			t.Errorf("opened in %s", state)
		}
		if got := c.tree(); got != want {
			t.Errorf("opened in %s, %s\n%swant\n%s", state, then, got, want)
		}
		seen[state+" "+then]++
		c.stop()
	}
	t.Log(seen)
}
