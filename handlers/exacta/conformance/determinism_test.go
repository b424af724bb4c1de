package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/fuzz/rounds"
)

// tour does something with every command and returns all that was sent, with the root replaced.
func tour(t *testing.T, via *carrier, home string) string {
	t.Helper()
	s := serveIn(t, via, home, append(append([]string(nil), fixed...), debugOn(via)...)...)
	for i := 0; i < len(inMake); i += 2 {
		s.write(inMake[i], inMake[i+1])
	}
	s.write("README.md", "# Demo\n")
	s.write("noise", "a.c:1:1: warning: w\n")
	c := s.connect()
	var all strings.Builder
	c.heard = func(line string) { all.WriteString(line + "\n") }
	c.opens("")
	for range 2 {
		for _, input := range []string{"Refactor everything", "Build a login page", "Append \"x\" to README.md and don't touch src/db/. should be small", `append "x" to ../b`} {
			c.ask("ExtractIntent", `{"user_input":`+quote(input)+`}`)
		}
		c.ask("GeneratePlan", `{"intent_id":"`+c.intent("Build a login page")+`"}`)
		c.ask("RejectPlan", `{"plan_id":"`+c.plan("create z/n.txt, z/m.txt and y.go; delete b.txt")+`"}`)
		c.completes(`append "x" to a.txt; build; create z/n.txt`)
		c.server.write("slow", "")
		x := c.executes(`append "y" to a.txt; build`)
		c.until("build 0/1")
		c.ask("Cancel", `{"execution_id":"`+x+`"}`)
		c.until("Cancelling→Idle RollbackComplete")
		c.remove("slow")
		c.ask("ApplyDiffSet", diffs(create("w.txt"), create("v.txt"), "NO_CHANGES_REQUIRED"))
		c.ask("ApplyDiffSet", diffs(create("w.txt")))
		c.ask("Build", "")
		c.server.write("broken", "")
		c.ask("Build", "")
		c.remove("broken")
		c.message("{nope")
		c.subscribe("")
		c.ask("CloseProject", "")
		for name, text := range map[string]string{"z": "-", "w.txt": "-", "v.txt": "-", "y.go": "-", "a.txt": "a\n"} {
			if c.remove(name); text != "-" {
				c.server.write(name, text)
			}
		}
		c.opens("")
	}
	s.stop()
	return strings.ReplaceAll(all.String(), c.dir(), "{DIR}")
}

// TestDeterminism6_4 makes the tour twice in two directories over each carrier: the output has the
// same bytes. In other than the long form each carrier has one of the directories.
func TestDeterminism6_4(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not installed")
	}
	first := ""
	names := []string{"one", "a longer name of a directory; with $(signs) 'in it'"}
	for i, via := range carriers {
		some := names
		if !rounds.Long() {
			some = names[i%2 : i%2+1]
		}
		for _, name := range some {
			home := filepath.Join(realTemp(t), name)
			if err := os.Mkdir(home, 0o755); err != nil {
				t.Fatal(err)
			}
			got := tour(t, via, home)
			if strings.Contains(got, home) || strings.Count(got, "\n") < 200 {
				t.Errorf("%s: %d lines, or the path: %s", via.name, strings.Count(got, "\n"), got)
			}
			if first == "" {
				first = got
			}
			differs(t, via.name+" "+name, got, first)
		}
	}
}

// differs reports the first line that is another.
func differs(t *testing.T, what, got, want string) {
	t.Helper()
	lines := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("%s: line %d is %s\nwant %s", what, i+1, line, lines[min(i, len(lines)-1)])
		}
	}
}
