package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// project is what is there now, by path.
type project struct {
	targets map[string]Target
	defines map[string][]string
}

func (p project) Target(path string) Target { return p.targets[path] }

func (p project) Defining(symbol string) []string { return p.defines[symbol] }

// here is a project where the steps of a good plan fit.
func here() Facts {
	text := func(hash string) Target { return Target{Exists: true, Text: true, Hash: hash} }
	return Facts{Tree: project{
		targets: map[string]Target{
			"a.txt": text("00"), "c.txt": text("03"), "src/user.go": text("04"), "src/db/x.go": text("05"),
			"srcs/y.go": text("06"), "tool": text("07"), "go.mod": text("08"), "README.md": text("09"),
			"bin.dat":  {Exists: true, Hash: "10"},
			"link.txt": {Exists: true, Text: true, Hash: "11", Unsafe: true},
			".env":     {Exists: true, Text: true, Hash: "12", Denied: true},
		},
		defines: map[string][]string{"UserService": {"src/user.go", "src/db/x.go"}},
	}, Config: "cf"}
}

// good is a plan without violations, with steps of every type.
func good() *Plan {
	p := sample()
	p.Constraints = nil
	return p
}

// broken returns what is wrong as "code order" of each violation.
func broken(p *Plan, f Facts) string {
	var out []string
	for _, v := range Validate(p, f) {
		out = append(out, v.Code+" "+strconv.Itoa(v.order))
	}
	return strings.Join(out, ", ")
}

// TestRules is a good plan, and for each rule what breaks it alone (exacta §4.5).
func TestRules(t *testing.T) {
	f := func(want string, change func(p *Plan, f *Facts)) {
		t.Helper()
		p, facts := good(), here()
		change(p, &facts)
		if got := broken(p, facts); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	step := func(n int, change func(*Step)) func(*Plan, *Facts) {
		return func(p *Plan, _ *Facts) { change(&p.Steps[n-1]) }
	}
	create := func(n int) func(*Plan, *Facts) { // a plan of n steps that create files
		return func(p *Plan, _ *Facts) {
			p.Steps = nil
			for i := range n {
				s := strconv.Itoa(i)
				p.Steps = append(p.Steps, Step{ID: s, Order: i + 1, Type: FileCreate, Target: "new" + s})
			}
		}
	}
	f("", func(*Plan, *Facts) {})
	f("PV-1 0", func(p *Plan, _ *Facts) { p.Steps, p.Intent.Type = nil, "Other" })
	f("PC-1 0, PV-1 0", func(p *Plan, _ *Facts) { p.Steps = nil })
	f("PV-2 4", step(4, func(s *Step) { s.Dependencies = []string{"none"} }))
	f("PV-3 4", step(4, func(s *Step) { s.Dependencies = []string{"s-4"} }))
	f("PV-3 1", step(1, func(s *Step) { s.Dependencies = []string{"s-2"} }))
	for _, target := range []string{
		"", "/x", "../x", "x/../y", "./x", "x//y", "x/", `x\y`, "c:/x", "x\x01", strings.Repeat("x", 1025),
		strings.Repeat("x/", 20) + "x",
	} {
		f("PV-4 2", step(2, func(s *Step) { s.Target = target }))
	}
	f("", step(2, func(s *Step) { s.Target = strings.Repeat("x/", 19) + "x" }))
	f("", step(2, func(s *Step) { s.Target = strings.Repeat("x", 1024) }))
	f("PV-4 1", step(1, func(s *Step) { s.Target, s.Pre = "link.txt", "11" }))
	f("PD-1 1, PV-4 1", step(1, func(s *Step) { s.Target = "link.txt" }))
	f("PV-10 1", step(1, func(s *Step) { s.Target = ".env" }))
	f("PV-4 4", step(4, func(s *Step) { s.Target = "x" }))
	f("PV-4 2", step(2, func(s *Step) { s.Target = "a.txt/x" }))
	f("PV-4 3", func(p *Plan, _ *Facts) { p.Steps[1].Target = "c.txt/d/x" })
	f("", step(2, func(s *Step) { s.Target = "a.txt.x" }))
	f("PV-4 2", func(p *Plan, _ *Facts) { create(2)(p, nil); p.Steps[0].Target, p.Steps[1].Target = "q/x.go", "q" })
	f("", func(p *Plan, _ *Facts) { p.EstimatedTokens = 100_000 })
	f("PV-5 0", func(p *Plan, _ *Facts) { p.EstimatedTokens = 100_001 })
	f("PV-6 2", step(2, func(s *Step) { s.ID = "s-1" }))
	f("PV-7 7", step(2, func(s *Step) { s.Order = 7 }))
	f("PV-9 2", func(p *Plan, f *Facts) { p.Steps[1].Target, p.Steps[1].Pre = "tool", "07" })
	f("PV-9 1", step(1, func(s *Step) { s.Target, s.Pre = "none", "" }))
	f("PV-9 3", step(3, func(s *Step) { s.Target, s.Pre = "none", "" }))
	f("PV-10 1", step(1, func(s *Step) { s.Target, s.Pre = ".env", "12" }))
	f("PV-11 1", step(1, func(s *Step) { s.Target, s.Pre = "bin.dat", "10" }))
	f("PV-11 3", step(3, func(s *Step) { s.Target, s.Pre = "bin.dat", "10" }))
	f("PS-2 3", step(3, func(s *Step) { s.Target, s.Pre, s.Type = "a.txt", "00", FileModify }))
	f("PS-2 3, PS-3 3", step(3, func(s *Step) { s.Target, s.Pre = "a.txt", "00" }))
	f("", step(3, func(s *Step) { *s = Step{ID: "s-3", Order: 3, Type: Build, Target: "."} }))
	f("PD-1 1", step(1, func(s *Step) { s.Pre = "other" }))
	f("PD-1 2", step(2, func(s *Step) { s.Pre = "other" }))
	f("PD-2 0", func(_ *Plan, f *Facts) { f.Config = "other" })
	f("", func(p *Plan, f *Facts) { f.Config, f.Making, p.Steps[0].Pre = "other", true, "other" })
	// PV-8
	f("", create(10))
	f("PV-8 0", create(11))
	f("PV-8 0", create(15))
	f("PV-8 0, PV-8 0", create(16))
	lines := func(n int) func(*Plan, *Facts) { return step(1, func(s *Step) { s.Diff = strings.Repeat("x\n", n) }) }
	f("", lines(500))
	f("PV-8 1", lines(501))
	constraints := func(n int) func(*Plan, *Facts) {
		return func(p *Plan, _ *Facts) { p.Constraints = make([]Constraint, n) }
	}
	f("", constraints(10))
	f("PV-8 0", constraints(11))
	f("PV-8 0", func(_ *Plan, f *Facts) { f.Limits.Steps = 3 })
	f("", func(_ *Plan, f *Facts) { f.Limits = Limits{4, 3, 2} })
	f("PV-8 0", func(_ *Plan, f *Facts) { f.Limits.Files = 2 })
	f("PV-8 1", func(_ *Plan, f *Facts) { f.Limits.DiffLines = 1 })
	f("PV-8 0", func(p *Plan, f *Facts) { create(11)(p, f); f.Limits.Steps = 100 })
	// PC-1
	intent := func(name string, steps ...Step) func(*Plan, *Facts) {
		return func(p *Plan, _ *Facts) {
			p.Intent.Type, p.Steps = name, steps
			for i := range steps {
				steps[i].Order, steps[i].ID = i+1, strconv.Itoa(i)
			}
		}
	}
	create1 := func(target string) Step { return Step{Type: FileCreate, Target: target} }
	build := Step{Type: Build, Target: "."}
	for _, name := range []string{"package.json", "x.csproj", "Makefile", "Cargo.toml", "d/x.sln"} {
		f("", intent("CreateProject", create1(name), create1("x")))
	}
	f("PC-1 0", intent("CreateProject", create1("package.json"), build))
	f("PC-1 0", intent("CreateProject", create1("x"), create1("y")))
	f("PC-1 0", intent("CreateProject", create1("x"), Step{Type: FileModify, Target: "go.mod", Pre: "08"}))
	f("", intent("AddFeature", create1("x"), build))
	f("PC-1 0", intent("AddFeature", build))
	f("PC-1 0", intent("FixBug", build))
	f("", intent("BuildPackage", build, build))
	f("PC-1 0", intent("BuildPackage", build, create1("x")))
}

// TestOrder is that violations are sorted by code, then step, and what a client gets of them.
func TestOrder(t *testing.T) {
	p, facts := good(), here()
	facts.Config = "other"
	p.Steps[0].Target, p.Steps[0].Pre = "bin.dat", "10"
	p.Steps[2].Target, p.Steps[2].Pre = "none", "x"
	p.Steps[3].Dependencies = []string{"none"}
	list := Validate(p, facts)
	if got := broken(p, facts); got != "PD-1 3, PD-2 0, PV-11 1, PV-2 4, PV-9 3" || !Drifted(list) {
		t.Error(got)
	}
	want := `[{"code":"PD-1","message":"none changed since the plan was made","step_id":"s-3"},` +
		`{"code":"PD-2","message":"the configuration changed since the plan was made","step_id":null}]`
	if got := string(AppendViolations(nil, list[:2])); got != want {
		t.Error(got)
	}
	if got := string(AppendViolations([]byte("x"), nil)); got != "x[]" || Drifted(list[2:]) {
		t.Error(got)
	}
}

// TestConstraints is PS-1, sentence by sentence (exacta §4.5).
func TestConstraints(t *testing.T) {
	steps := func(list ...string) *Plan {
		p := &Plan{Intent: Intent{Type: "Other"}, ConfigFingerprint: "cf"}
		for i, s := range list {
			kind, target, _ := strings.Cut(s, " ")
			p.Steps = append(p.Steps, Step{ID: strconv.Itoa(i), Order: i + 1, Type: kind, Target: target})
		}
		return p
	}
	// f is the orders of the steps that break a constraint, and whether it can be enforced.
	f := func(k Constraint, enforceable bool, p *Plan, want ...int) {
		t.Helper()
		facts := here()
		facts.Making = true
		p.Constraints = []Constraint{k}
		var got []int
		for _, v := range Validate(p, facts) {
			if v.Code == "PS-1" {
				got = append(got, v.order)
			}
		}
		if !slices.Equal(got, want) || Enforceable(&k, facts.Tree) != enforceable {
			t.Errorf("%v: %v, want %v, enforceable %v", k, got, want, enforceable)
		}
	}
	all := func() *Plan {
		return steps("file_modify src/user.go", "file_create src/db/new.go", "file_delete srcs/y.go", "build .",
			"file_modify go.mod", "file_modify tool")
	}
	// A path, and any word of touching.
	for w := range strings.FieldsSeq(touching) {
		f(Constraint{MustNot, w + " src/", "src"}, true, all(), 1, 2)
		f(Constraint{MustNot, "Ever " + strings.ToUpper(w) + ", src/db", "src/db"}, true, all(), 2)
	}
	f(Constraint{MustNot, "touch srcs/y.go", "srcs/y.go"}, true, all(), 3)
	f(Constraint{MustNot, "touch tool", "tool"}, true, all(), 6)
	f(Constraint{MustNot, "touch no/such", "no/such"}, true, all())
	f(Constraint{MustNot, "touching src/", "src"}, false, all())
	f(Constraint{MustNot, "touch it", Global}, false, all())
	// A name of code: the files that define it.
	f(Constraint{MustNot, "rename UserService", "UserService"}, true, all(), 1)
	f(Constraint{MustNot, "rename NoSuchName", "NoSuchName"}, false, all())
	// No deletion at all.
	f(Constraint{MustNot, "delete anything", Global}, true, all(), 3)
	f(Constraint{MustNot, "remove anything", Global}, true, all(), 3)
	f(Constraint{MustNot, "delete src/", "src"}, true, steps("file_delete a.txt", "file_delete src/user.go"), 2)
	// No change of dependencies.
	for w := range strings.FieldsSeq("dependency dependencies package packages third-party library libraries") {
		f(Constraint{MustNot, "use more " + w, Global}, true, all(), 5)
	}
	for m := range strings.FieldsSeq("go.mod go.sum package.json package-lock.json Cargo.toml Cargo.lock pyproject.toml" +
		" requirements.txt pom.xml App.csproj") {
		f(Constraint{MustNot, "add a dependency", Global}, true,
			steps("file_create d/"+m, "file_modify "+m, "file_delete x"+m+"x"), 1, 2)
	}
	// No build.
	f(Constraint{MustNot, "build", Global}, true, all(), 4)
	f(Constraint{MustNot, "compile tool", "tool"}, true, all(), 4)
	// No new file.
	for _, s := range []string{"create files", "add a file", "new file"} {
		f(Constraint{MustNot, s, Global}, true, all(), 2)
	}
	f(Constraint{MustNot, "create classes", Global}, false, all())
	f(Constraint{MustNot, "create files in srcs/", "srcs"}, true, all(), 3)
	// Only a path, and those that are named beside it.
	f(Constraint{Must, "only change src/", "src"}, true, all(), 3, 5, 6)
	f(Constraint{Must, "only change src/ or `srcs/y.go`, (go.mod).", "src"}, true, all(), 6)
	f(Constraint{Must, "only change tool", "tool"}, true, all(), 1, 2, 3, 5)
	f(Constraint{Must, "only change UserService", "UserService"}, false, all())
	f(Constraint{Must, "only change it", Global}, false, all())
	f(Constraint{Must, "change src/", "src"}, false, all())
	f(Constraint{Must, "keep src/", "src"}, false, all())
	f(Constraint{Prefer, "delete src/", "src"}, false, all())
}

// TestMessages is that each message names the rule's object.
func TestMessages(t *testing.T) {
	p, facts := good(), here()
	p.Constraints = []Constraint{{MustNot, "touch a.txt", "a.txt"}}
	list := Validate(p, facts)
	if len(list) != 1 || list[0].Message != "step 1 changes a.txt: MUST_NOT touch a.txt" || list[0].StepID != "s-1" {
		t.Errorf("%+v", list)
	}
}
