package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// again kills the server and starts it again.
func (c *client) again() *client {
	c.t.Helper()
	c.server.kill()
	c.server.start()
	return c.server.connect()
}

// TestDamagedPoints3_7: a rollback point that cannot be read is named at each open, whatever the
// state is, and nothing is taken back.
func TestDamagedPoints3_7(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	point := c.ask("ApplyDiffSet", diffs(create("n.txt"), modify("a.txt", "@@ -1,1 +1,1 @@\n-a\n+b\n"))).field("rollback_point_id")
	manifest := ".exacta/rollback/" + point + "/manifest.json"
	whole := c.read(manifest)
	c.server.write(manifest, whole[:len(whole)-20])
	for range 2 {
		c = c.again()
		r := c.opens(`"state":"Failed"`)
		if got := r.shorts(); got != "raised ST-002; Idle→Failed SessionRestored" || !strings.Contains(r.events[0].line, "rollback/"+point) {
			t.Errorf("events %s: %s", got, r.events[0].line)
		}
		if c.read("a.txt") != "b\n" || c.read("n.txt") == "-" {
			t.Error("files were taken back")
		}
	}
	c.remove(manifest)
	c = c.again()
	if got := c.opens(`"state":"Failed"`).shorts(); got != "raised ST-002; Idle→Failed SessionRestored" {
		t.Errorf("without its manifest: events %s", got)
	}
	if err := os.RemoveAll(filepath.Join(c.dir(), ".exacta/rollback", point)); err != nil {
		t.Fatal(err)
	}
	c = c.again()
	if got := c.opens(`"state":"Failed"`).shorts(); got != "Idle→Failed SessionRestored" {
		t.Errorf("without the point: events %s", got)
	}
	c.completes(`append "x" to a.txt`)
}

// moved kills the server and starts that of another installation, which has another key: the
// project came to it as a clone does.
func (c *client) moved() *client {
	c.t.Helper()
	c.server.kill()
	if err := os.RemoveAll(filepath.Join(c.home, ".config/trunkline/exacta.key")); err != nil {
		c.t.Fatal(err)
	}
	c.server.start()
	return c.server.connect()
}

// TestCloned5_6: an execution and a set of diffs that came with a clone do not go on, and nothing
// is taken back by them; what is at rest is named only.
func TestCloned5_6(t *testing.T) {
	t.Run("Paused", func(t *testing.T) {
		t.Parallel()
		c := open(t, stdio, inMake...)
		c.server.write("slow", "")
		x := c.executes(`append "x" to a.txt; build; create n.txt`)
		c.until("build 0/1")
		c = c.moved()
		c.remove("slow")
		if got := c.opens(`"state":"Failed"`).shorts(); got != "raised ST-002; raised ST-002; Idle→Failed SessionRestored" {
			t.Errorf("events %s", got)
		}
		c.ask("Resume", `{"execution_id":"`+x+`"}`).is("ST-001 ")
		if c.read("a.txt") != "a\nx\n" || c.read("n.txt") != "-" {
			t.Errorf("a.txt has %q, n.txt %q", c.read("a.txt"), c.read("n.txt"))
		}
		c.completes(`append "y" to a.txt`) // with an approval
	})
	t.Run("set", func(t *testing.T) {
		t.Parallel()
		c := open(t, stdio, inMake...)
		point := c.ask("ApplyDiffSet", diffs(modify("a.txt", "@@ -1,1 +1,1 @@\n-a\n+b\n"))).field("rollback_point_id")
		manifest := ".exacta/rollback/" + point + "/manifest.json"
		c.server.write(manifest, strings.Replace(c.read(manifest), `"sealed":true`, `"sealed":false`, 1))
		for range 2 {
			c = c.again()
			c.logs = true
			got := c.opens(`"state":"Idle"`).shorts()
			if c.logs = false; !strings.Contains(got, "WARN: not written by this installation") || !strings.Contains(got, "raised ST-002") || c.read("a.txt") != "b\n" {
				t.Errorf("events %s, a.txt has %q", got, c.read("a.txt"))
			}
		}
	})
	t.Run("at rest", func(t *testing.T) {
		t.Parallel()
		c := open(t, stdio, inMake...)
		c.completes(`append "x" to a.txt`)
		c = c.moved()
		c.logs = true
		if got := c.opens(`"state":"Completed"`).shorts(); strings.Count(got, "WARN: not written by this installation") != 2 || strings.Contains(got, "raised") {
			t.Errorf("events %s", got)
		}
	})
}

// TestReplacedDirectory4_17: where the path of an open project has come to name another directory,
// edits and builds are refused: they would be of two trees.
func TestReplacedDirectory4_17(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, append(inMake, "Makefile", "all:\n\ttouch built\n")...)
	moved := c.dir() + ".moved"
	if err := os.Rename(c.dir(), moved); err != nil {
		t.Fatal(err)
	}
	set := diffs(modify("a.txt", "@@ -1,1 +1,1 @@\n-a\n+b\n"))
	for range 2 {
		c.ask("Build", "").is("FS-001 replaced: ")
		c.ask("ApplyDiffSet", set).is("FS-001 replaced: ")
		c.server.write("a.txt", "a\n") // a new directory, for the second time
		c.server.write("Makefile", "all:\n\ttouch built\n")
	}
	if old, err := os.ReadFile(filepath.Join(moved, "a.txt")); err != nil || string(old) != "a\n" || c.read("a.txt") != "a\n" || c.read("built") != "-" {
		t.Errorf("%q %v, %q, built: %q", old, err, c.read("a.txt"), c.read("built"))
	}
	c.ask("CloseProject", "").is(`{"closed":true}`)
	c.opens(`"state":"Idle"`)
	c.ask("ApplyDiffSet", set).is(`{"applied":true,…}`)
	if c.read("a.txt") != "b\n" {
		t.Errorf("a.txt has %q", c.read("a.txt"))
	}
}

// TestOwner4_17: a rewrite keeps the owner, the group and the mode of a file.
func TestOwner4_17(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("root alone may give a file to another owner, and this test runs as another user")
	}
	t.Parallel()
	c := open(t, stdio, inMake...)
	path := filepath.Join(c.dir(), "a.txt")
	if err := errors.Join(os.Chown(path, 1234, 2345), os.Chmod(path, os.ModeSetuid|0o755)); err != nil {
		t.Fatal(err)
	}
	has := func() string {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sys := st.Sys().(*syscall.Stat_t)
		return fmt.Sprint(sys.Uid, sys.Gid, st.Mode())
	}
	had := has()
	c.ask("ApplyDiffSet", diffs(modify("a.txt", "@@ -1,1 +1,1 @@\n-a\n+b\n"))).is(`{"applied":true,…}`)
	if got := has(); got != had || c.read("a.txt") != "b\n" {
		t.Errorf("%s, want %s", got, had)
	}
}
