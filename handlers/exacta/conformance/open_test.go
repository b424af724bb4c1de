package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// at opens a path and expects an outcome.
func (c *client) at(path, outcome string) *reply {
	c.t.Helper()
	return c.ask("OpenProject", `{"path":`+quote(path)+`}`).is(outcome)
}

// TestRefusedPaths4_1 has the checks of OpenProject in their order (exacta §4.1, §8). What fails
// has no events.
func TestRefusedPaths4_1(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		s := serve(t, via)
		s.write("go.mod", "module x\n")
		s.write("sub/a.txt", "a\n")
		if err := syscall.Mkfifo(filepath.Join(s.home, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := s.connect()
		c.logs = true
		f := func(path, outcome string) {
			t.Helper()
			if r := c.at(path, outcome); r.shorts() != "" {
				t.Errorf("%s: events %s", path, r.shorts())
			}
		}
		c.ask("OpenProject", `{}`).want("", "IPC-009 path:")
		c.ask("OpenProject", `{"Path":`+quote(s.dir())+`}`).want("", "IPC-009 path:")
		c.ask("OpenProject", `{"path":5}`).want("", "IPC-009 path:")
		f("", "IPC-009 path:")
		f("relative", "IPC-009 path:")
		f("./p", "IPC-009 path:")
		f("/a\x00b", "IPC-009 path:")
		f("/"+strings.Repeat("a/", 2048), "IPC-009 path:")
		f(strings.Repeat("/a", 2048), "FS-001 ")
		f("/a/../b", "SEC-001 ")
		f(s.dir()+"/..", "SEC-001 ")
		f(s.dir()+"/missing", "FS-001 ")
		f(s.dir()+"/go.mod/x", "FS-001 ")
		f("/dev/null", "FS-003 ")
		f(filepath.Join(s.home, "fifo"), "FS-003 ")
		f("/", "FS-003 ")
		if os.Getuid() != 0 {
			if err := os.Mkdir(filepath.Join(s.home, "closed"), 0); err != nil {
				t.Fatal(err)
			}
			f(filepath.Join(s.home, "closed"), "FS-002 ")
		}
		c.logs = false
		c.at(s.dir(), `{…"project_root":`+quote(s.dir())+`,…}`)
		// the root of a path below is the root; an ancestor and a descendant of it are in use
		c.at(s.dir()+"/sub", `{…"project_root":`+quote(s.dir())+`,…}`)
		c.at(s.dir()+"/sub/a.txt", `{…"project_root":`+quote(s.dir())+`,…}`)
		s.write("sub/go.mod", "module y\n")
		c.at(s.dir()+"/sub", "FS-005 ")
		s.write("../go.mod", "module z\n")
		c.at(s.home, "FS-005 ")
		// a name that begins the same is another one
		if err := os.Mkdir(s.dir()+"c", 0o755); err != nil {
			t.Fatal(err)
		}
		s.write("../pc/go.mod", "module c\n")
		c.at(s.dir()+"c", `{…"project_root":`+quote(s.dir()+"c")+`,…}`)
		// a link of the path is followed, one in the place of .exacta is not
		if err := os.Symlink(s.dir(), filepath.Join(s.home, "link")); err != nil {
			t.Fatal(err)
		}
		c.at(filepath.Join(s.home, "link"), `{…"project_root":`+quote(s.dir())+`,…}`)
		s.write("../linked/go.mod", "module l\n")
		if err := os.Symlink(s.dir(), filepath.Join(s.home, "linked", ".exacta")); err != nil {
			t.Fatal(err)
		}
		c.at(filepath.Join(s.home, "linked"), "SEC-002 ")
	})
}

// TestMarkers4_1 has each marker, their order, and the search for a root.
func TestMarkers4_1(t *testing.T) {
	t.Parallel()
	s := serve(t, stdio)
	c := s.connect()
	f := func(name string, files string, markers string) {
		t.Helper()
		for _, file := range strings.Fields(files) {
			if strings.HasSuffix(file, "/") {
				if err := os.MkdirAll(filepath.Join(s.home, name, file), 0o755); err != nil {
					t.Fatal(err)
				}
			} else {
				s.write("../"+name+"/"+file, "{}")
			}
		}
		c.at(filepath.Join(s.home, name), `{…"detected_markers":[`+markers+`],…}`)
	}
	f("all", ".exacta/ x.sln y.sln z.csproj go.mod package.json Cargo.toml CMakeLists.txt Makefile GNUmakefile pyproject.toml pom.xml build.gradle build.gradle.kts .git/",
		`".exacta",".sln",".csproj","go.mod","package.json","Cargo.toml","CMakeLists.txt","Makefile","pyproject.toml","pom.xml","build.gradle",".git"`)
	f("f", "x.fsproj", `".csproj"`)
	f("v", "x.vbproj", `".csproj"`)
	f("m", "makefile", `"Makefile"`)
	f("k", "build.gradle.kts", `"build.gradle"`)
	f("g", ".git", `".git"`)
	f("none", "a.txt", "")
	f("dirs", "go.mod/ Makefile/", "")
	// the nearest ancestor with a marker of a root; Makefile is none
	s.write("../up/go.mod", "module up\n")
	s.write("../up/mid/Makefile", "")
	s.write("../up/mid/low/a.txt", "")
	s.write("../up/other/low/a.txt", "")
	c.at(filepath.Join(s.home, "up/other/low"), `{…"project_root":`+quote(filepath.Join(s.home, "up"))+`,…}`)
	c.ask("CloseProject", `{"project_id":"`+c.at(filepath.Join(s.home, "up/mid/low"), "").field("project_id")+`"}`).is(`{"closed":true}`)
	c.at(filepath.Join(s.home, "up/mid"), `{…"project_root":`+quote(filepath.Join(s.home, "up/mid"))+`,…}`)
	// HOME stops the search
	s.write("../go.mod", "module home\n")
	s.write("../alone/a.txt", "")
	c.at(filepath.Join(s.home, "alone"), `{…"project_root":`+quote(filepath.Join(s.home, "alone"))+`,"detected_markers":[],…}`)
}

// TestOpen4_1 has the result of OpenProject, which writes nothing and may be repeated.
func TestOpen4_1(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		s := serve(t, via)
		s.write("go.mod", "module x\n")
		c := s.connect()
		c.logs = true
		r := c.opens("")
		r.want("INFO: project opened; markers: go.mod", `{"project_id":"…","project_root":`+quote(s.dir())+
			`,"detected_markers":["go.mod"],"state":"Idle","session_id":"3bc566cf-3909-5250-87c2-645a45a2357d","stream_seq":1,"active_plan_id":null,"active_execution_id":null}`)
		again := c.opens("").is(`{…"state":"Idle",…"stream_seq":2,…}`)
		if again.field("project_id") != r.field("project_id") || again.end.Correlation == r.end.Correlation {
			t.Errorf("got %s and %s", r.end.line, again.end.line)
		}
		if _, err := os.Stat(filepath.Join(s.dir(), ".exacta")); err == nil {
			t.Error("OpenProject writes")
		}
		c.logs = false
		plan := c.plan("create n.txt")
		c.opens(`"active_plan_id":"` + plan + `","active_execution_id":null`)
		// the counter goes on after Close and Open
		before := c.opens("").end
		c.ask("CloseProject", "").want("AwaitingApproval→Idle PlanExpired", `{"closed":true}`)
		c.ask("ApprovePlan", `{"plan_id":"`+plan+`"}`).want("", "ST-003 ")
		after := c.opens(`"state":"Idle"`)
		if c.streams[c.project] < 15 || after.end.Request == nil || before.Correlation == after.end.Correlation {
			t.Errorf("got %s", after.end.line)
		}
		c.ask("ApprovePlan", `{"plan_id":"`+plan+`"}`).want("", "ST-001 ")
	})
}

// TestIDs6_2 computes the ids of a seed, and looks at random ones.
func TestIDs6_2(t *testing.T) {
	space := uuid5([16]byte{0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8}, "urn:exacta:ipc:1")
	if text(space) != "33db6d34-e306-58c4-80a2-974dbae4a4c2" {
		t.Fatalf("the namespace is %s", text(space))
	}
	of := func(scope, kind, n string) string { return text(uuid5(space, "t1|"+scope+"|"+kind+"|"+n)) }
	c := open(t, stdio)
	if c.project != of("server", "project", "1") {
		t.Errorf("project_id is %s", c.project)
	}
	r := c.opens(`"session_id":"` + of("server", "session", "1") + `"`)
	if r.end.Correlation != of("server", "correlation", "2") {
		t.Errorf("got %s", r.end.line)
	}
	r = c.message("{nope")
	if r.end.Correlation != of("server", "correlation", "3") {
		t.Errorf("got %s", r.end.line)
	}
	c.ask("Pause", `{"execution_id":7}`) // steps 1 to 16 draw of the server
	c.ask("Pause", `{"project_id":"`+noID+`","execution_id":"`+noID+`"}`)
	if r = c.message("[]"); r.end.Correlation != of("server", "correlation", "6") {
		t.Errorf("got %s", r.end.line)
	}
	r = c.ask("Pause", `{"execution_id":"`+noID+`"}`)
	if r.end.Correlation != of("p1", "correlation", "1") {
		t.Errorf("got %s", r.end.line)
	}
	if got := c.intent("create n.txt"); got != of("p1", "intent", "1") {
		t.Errorf("intent %s", got)
	}
	c.server.write("../q/go.mod", "module q\n")
	second := c.at(filepath.Join(c.home, "q"), "").field("project_id")
	if second != of("server", "project", "2") {
		t.Errorf("project_id is %s", second)
	}
	r = c.ask("Pause", `{"project_id":"`+second+`","execution_id":"`+noID+`"}`)
	if r.end.Correlation != of("p2", "correlation", "1") {
		t.Errorf("got %s", r.end.line)
	}
	// without a seed the id of a project is that of its root, and the others are random
	s := serveIn(t, stdio, realTemp(t))
	s.write("go.mod", "module x\n")
	c = s.connect()
	r = c.opens("")
	if c.project != text(uuid5(space, "project|"+s.dir())) || r.end.Correlation[14] != '4' || r.field("session_id")[14] != '4' {
		t.Errorf("got %s", r.end.line)
	}
}

// configs are config.json and what OpenProject answers (exacta §4.18, §8).
var configs = []struct{ text, outcome string }{
	{"{", "CFG-001 "}, {"", "CFG-001 "}, {"[]", "CFG-001 "}, {"null", "CFG-001 "}, {`{"schema_version":1,"schema_version":1}`, "CFG-001 "}, {"\xff", "CFG-001 "},
	{"{}", "CFG-002 "}, {`{"Schema_Version":1}`, "CFG-002 "},
	{`{"schema_version":2}`, "CFG-003 "}, {`{"schema_version":"1"}`, "CFG-003 "}, {`{"schema_version":1.0}`, "CFG-003 "}, {`{"schema_version":null}`, "CFG-003 "},
	{`{"schema_version":1}`, "{"}, {`{"schema_version":1,"other":{"x":[1]}}`, "{"},
	{`{"schema_version":1,"ai":5}`, "CFG-003 "}, {`{"schema_version":1,"ai":{"provider":"other"}}`, "CFG-003 "}, {`{"schema_version":1,"ai":{"provider":"openai_compatible"}}`, "{"},
	{`{"schema_version":1,"ai":{"model":5}}`, "CFG-003 "}, {`{"schema_version":1,"ai":{"max_input_tokens":100001}}`, "CFG-003 "}, {`{"schema_version":1,"ai":{"max_input_tokens":100000}}`, "{"},
	{`{"schema_version":1,"ai":{"max_output_tokens":16001}}`, "CFG-003 "}, {`{"schema_version":1,"ai":{"max_output_tokens":16000}}`, "{"},
	{`{"schema_version":1,"limits":{"max_steps_per_plan":11}}`, "CFG-003 "}, {`{"schema_version":1,"limits":{"max_steps_per_plan":10}}`, "{"}, {`{"schema_version":1,"limits":{"max_steps_per_plan":0}}`, "CFG-003 "},
	{`{"schema_version":1,"limits":{"max_total_files_per_plan":16}}`, "CFG-003 "}, {`{"schema_version":1,"limits":{"max_total_files_per_plan":15}}`, "{"},
	{`{"schema_version":1,"limits":{"max_diff_lines_per_step":501}}`, "CFG-003 "}, {`{"schema_version":1,"limits":{"max_diff_lines_per_step":500}}`, "{"},
	{`{"schema_version":1,"limits":{"build_timeout_seconds":3601}}`, "CFG-003 "}, {`{"schema_version":1,"limits":{"build_timeout_seconds":3600}}`, "{"}, {`{"schema_version":1,"limits":{"build_timeout_seconds":0}}`, "CFG-003 "},
	{`{"schema_version":1,"limits":{"ai_timeout_seconds":3600}}`, "{"}, {`{"schema_version":1,"limits":{"ai_timeout_seconds":3601}}`, "CFG-003 "},
	{`{"schema_version":1,"file_rules":{"deny":"x"}}`, "CFG-003 "}, {`{"schema_version":1,"file_rules":{"deny":[5]}}`, "CFG-003 "}, {`{"schema_version":1,"file_rules":{"deny":["x/"],"allow":["**/bin/"]}}`, "{"},
	{`{"schema_version":1,"build":{"tool":"bazel"}}`, "CFG-003 "}, {`{"schema_version":1,"build":{"tool":"auto"}}`, "{"}, {`{"schema_version":1,"build":{"configuration":"debug"}}`, "CFG-003 "},
	{`{"schema_version":1,"build":{"configuration":"Release"}}`, "{"}, {`{"schema_version":1,"build":{"working_directory":"../x"}}`, "CFG-003 "}, {`{"schema_version":1,"build":{"working_directory":"/x"}}`, "CFG-003 "},
	{`{"schema_version":1,"x":"ghp_01234567890123456789"}`, "SEC-003 "},
}

// TestConfig4_18 opens a project with each of them. A bad one is not opened, and no value is shown.
func TestConfig4_18(t *testing.T) {
	t.Parallel()
	s := serve(t, stdio)
	s.write("go.mod", "module x\n")
	c := s.connect()
	for _, f := range configs {
		s.write(".exacta/config.json", f.text)
		outcome := f.outcome
		if outcome == "{" {
			outcome = "{…}"
		}
		r := c.at(s.dir(), outcome)
		if r.end.OK {
			c.ask("CloseProject", `{"project_id":"`+r.field("project_id")+`"}`).is(`{"closed":true}`)
		} else if r.shorts() != "" || strings.Contains(r.end.line, "ghp_") {
			t.Errorf("%s: %s %s", f.text, r.shorts(), r.end.line)
		}
		if t.Failed() {
			t.Fatal(f.text)
		}
	}
	if err := os.Remove(filepath.Join(s.dir(), ".exacta/config.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../go.mod", filepath.Join(s.dir(), ".exacta/config.json")); err != nil {
		t.Fatal(err)
	}
	c.at(s.dir(), "SEC-002 ")
}

// TestManyProjects6_1 opens 32 projects, and not 33.
func TestManyProjects6_1(t *testing.T) {
	t.Parallel()
	s := serve(t, stdio)
	c := s.connect()
	var first string
	for i := range 33 {
		name := "d" + string(rune('A'+i))
		s.write("../"+name+"/go.mod", "module x\n")
		switch {
		case i == 0:
			first = c.at(filepath.Join(s.home, name), "{…}").field("project_id")
		case i < 32:
			c.at(filepath.Join(s.home, name), "{…}")
		default:
			c.at(filepath.Join(s.home, name), "RES-004 ")
			c.ask("CloseProject", `{"project_id":"`+first+`"}`)
			c.at(filepath.Join(s.home, name), "{…}")
		}
	}
}
