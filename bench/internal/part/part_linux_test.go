package part

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// parts are two that measure nothing. extra is a flag that only the second has.
func parts(run func(*Run) error, extra *int) []Part {
	return []Part{
		{Name: "a", What: "the first", Run: run, Defaults: func(o *Options) { o.Rounds = 7 }, Quick: func(o *Options) { o.Rows = 3 }},
		{Name: "b", What: "the second", Run: run, Flags: func(f *flag.FlagSet) { f.IntVar(extra, "extra", 1, "") }},
	}
}

func TestArguments(t *testing.T) {
	server := filepath.Join(t.TempDir(), "server")
	if err := os.WriteFile(server, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	f := func(line string, status int, want ...string) {
		t.Helper()
		var got []string
		extra := 0
		run := func(r *Run) error {
			got = append(got, r.Report.Part+" "+strings.Trim(strings.Join([]string{goal.Text(r.Options.Rounds), goal.Text(r.Rows), goal.Text(extra), r.JSON}, " "), " "))
			return nil
		}
		var out, complain bytes.Buffer
		args := strings.Fields(line)
		if len(args) > 0 && status != exitUsage {
			args = append(args, "-server", server)
		}
		if s := Main(parts(run, &extra), args, &out, &complain); s != status || strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: status %d, %q; %s", line, s, got, complain.String())
		}
	}
	dir := t.TempDir()
	f("", exitUsage)
	f("nosuch", exitUsage)
	f("a -rounds 0", exitUsage)
	f("a -rounds 1 b", exitUsage)
	f("a -only (", exitUsage)
	f("a -extra 2", exitUsage)
	f("a -json "+dir, 0, "a 7 10000 0 "+dir)
	f("a b -extra 2 -json "+dir, 0, "a 7 10000 2 "+dir, "b 5 10000 2 "+dir)
	f("a -quick", 0, "a 2 3 0")
	f("a -quick -rounds 4 -rows 5 -json "+dir, 0, "a 4 5 0 "+dir)
	f("b -only x", 0, "b 5 10000 1")
	if _, err := os.Stat(filepath.Join(dir, "a.json")); err != nil {
		t.Error(err)
	}
}

// TestStatus: faults, errors, and goals that are missed under -strict fail the run.
func TestStatus(t *testing.T) {
	f := func(status int, said string, run func(*Run) error, flags ...string) {
		t.Helper()
		var out bytes.Buffer
		args := append([]string{"a", "-json", "", "-server", os.Args[0]}, flags...)
		if s := Main(parts(run, new(int)), args, &out, &out); s != status || !strings.Contains(out.String(), said) {
			t.Errorf("status %d, want %d and %q: %s", s, status, said, out.String())
		}
	}
	missed := func(r *Run) error {
		g := goal.Goal{What: "x", Must: 1}
		g.Add("m", 2)
		r.Report.Goal(g)
		return nil
	}
	f(exitFailed, "a: broken", func(*Run) error { return errors.New("broken") })
	f(exitFailed, "FAIL x is wrong", func(r *Run) error { r.Report.Fault("%s is wrong", "x"); return nil })
	f(0, "PASS", func(r *Run) error { r.Report.Checked = true; return nil })
	f(0, "MISS", missed)
	f(exitFailed, "MISS", missed, "-strict")
}

func TestSections(t *testing.T) {
	f := func(flags string, status int, want string) {
		t.Helper()
		var got []string
		var before *load.Server
		run := func(r *Run) error {
			section := func(name string) Section {
				return Section{name, func(r *Run) error {
					if before != nil && before.Alive() {
						t.Error("a process of the section before is left")
					}
					s, err := r.Rig.Peer(name, "/bin/sh", "-c", "echo listening x; exec sleep 60")
					got, before = append(got, name), s
					if name == "broken" {
						return errors.New("broken")
					}
					r.Report.Samples = append(r.Report.Samples, goal.Sample{Cell: goal.Cell{Server: name}, CPU: 2}, goal.Sample{Cell: goal.Cell{Server: name}, CPU: 4})
					return err
				}}
			}
			err := r.Sections(section("one"), section("two"), section("broken"))
			two := goal.Cell{Server: "two"}
			if got := r.Report.Median(two, goal.CPU); err == nil && got != 3 || r.Report.Ratio(two, two, goal.Rate) != 0 {
				t.Errorf("median %v", got)
			}
			return err
		}
		var out bytes.Buffer
		args := append(strings.Fields("a -json= "+flags), "-server", os.Args[0])
		if s := Main(parts(run, new(int)), args, &out, &out); s != status || strings.Join(got, " ") != want {
			t.Errorf("%s: status %d, measured %q; %s", flags, s, got, out.String())
		}
	}
	f("-only two", 0, "two")
	f("-only ^(one|two)$", 0, "one two")
	f("", exitFailed, "one two broken")
	f("-only three", exitFailed, "")
}

// TestChildren: a child gets its arguments and nothing is measured; its error fails the process.
func TestChildren(t *testing.T) {
	var got []string
	list := parts(func(*Run) error { t.Error("a part ran"); return nil }, new(int))
	list[1].Children = map[string]func([]string) error{
		"echo":   func(args []string) error { got = args; return nil },
		"broken": func([]string) error { return errors.New("no port") },
	}
	f := func(status int, said string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		if s := Main(list, args, &out, &out); s != status || !strings.Contains(out.String(), said) {
			t.Errorf("%q: status %d, %q", args, s, out.String())
		}
	}
	f(0, "", ChildArgs("echo", "a", "-x")...)
	if strings.Join(got, " ") != "a -x" {
		t.Errorf("the child got %q", got)
	}
	f(exitFailed, "broken: no port", ChildArgs("broken")...)
	f(exitUsage, "cannot be", ChildArgs("nosuch")...)
	f(exitUsage, "cannot be", ChildArgs("")[:1]...)
	if IsChild(nil) || IsChild([]string{"a", childFlag}) {
		t.Error("the arguments of a run are a child's")
	}
}

// TestModule: a part of another module gets its name and all flags, and its status counts.
func TestModule(t *testing.T) {
	dir := t.TempDir()
	program := "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfmt.Println(os.Args[1:])\n\tos.Exit(len(os.Args) - 4)\n}\n"
	for name, text := range map[string]string{"go.mod": "module m\n", "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := append(parts(func(*Run) error { t.Error("a part ran"); return nil }, new(int)), Part{Name: "c", What: "the third", Module: dir})
	f := func(status int, said string, args ...string) {
		t.Helper()
		var out, complain bytes.Buffer
		if s := Main(list, args, &out, &complain); s != status || out.String() != said {
			t.Errorf("%q: status %d, %q, %q", args, s, out.String(), complain.String())
		}
	}
	f(0, "[c -x 5]\n", "c", "-x", "5")
	f(exitFailed, "[c -x 5 y]\n", "c", "-x", "5", "y")
}
