package planner

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/relpath"
)

// maxInput is the length of the longest request (exacta §4.3).
const maxInput = 32_768

// holds checks what is true of the intent and the plan of any input.
func holds(t *testing.T, input string, tr Tree, c *Config) {
	t.Helper()
	in, bad := Extract(input, tr, c)
	again, badAgain := Extract(input, tr, c)
	if !reflect.DeepEqual(in, again) || !reflect.DeepEqual(bad, badAgain) {
		t.Fatalf("%q: %+v, then %+v", input, in, again)
	}
	if bad != nil {
		if bad.Code != "SEC-001" && bad.Code != "FS-003" && bad.Code != "VAL-002" {
			t.Fatalf("%q: %v", input, bad)
		}
		return
	}
	if hundredths := in.Confidence * 100; in.Confidence < 0 || in.Confidence > 1 ||
		in.Confidence != math.Round(hundredths)/100 {
		t.Errorf("%q: confidence %v", input, in.Confidence)
	}
	if (in.Type == UnknownIntent) != (in.Confidence == 0) {
		t.Errorf("%q: %s %v", input, in.Type, in.Confidence)
	}
	seen := map[string]bool{}
	for _, f := range in.Files {
		if strings.Count(f, "/") < 20 && len(f) <= 1024 && !relpath.Valid(f) || seen[f] {
			t.Errorf("%q: file %q", input, f)
		}
		seen[f] = true
	}
	if len(in.Symbols) > maxSymbols || len([]rune(in.Description)) > 200 {
		t.Errorf("%q: %q %q", input, in.Symbols, in.Description)
	}
	list, bad := Plan(&in, tr, c)
	listAgain, badAgain := Plan(&in, tr, c)
	if !reflect.DeepEqual(list, listAgain) || !reflect.DeepEqual(bad, badAgain) {
		t.Fatalf("%q: %+v, then %+v", input, list, listAgain)
	}
	if bad != nil {
		if bad.Code != "VAL-004" {
			t.Errorf("%q: %v", input, bad)
		}
		return
	}
	holdsSteps(t, input, &in, list)
}

// holdsSteps checks a plan by the rules that do not depend on limits.
func holdsSteps(t *testing.T, input string, in *Intent, list []Step) {
	t.Helper()
	p := &plan.Plan{ID: "p", Version: 1, Intent: plan.Intent{Type: in.Type}}
	for i := range list {
		s := &list[i]
		if s.Type == plan.FileModify && string(s.Old) == string(s.New) {
			t.Errorf("%q: step %d changes nothing", input, i+1)
		}
		p.Steps = append(p.Steps, plan.Step{
			ID: string(rune('a' + i)), Order: i + 1, Type: s.Type, Target: s.Target, Description: s.Description,
		})
	}
	for _, v := range plan.Validate(p, plan.Facts{Tree: nowhere{}, Making: true}) {
		switch v.Code {
		case "PV-8", "PV-9", "PV-4": // limits of the project, and targets that are there
		default:
			t.Errorf("%q: %s %s", input, v.Code, v.Message)
		}
	}
}

// nowhere is a tree without files.
type nowhere struct{}

func (nowhere) Target(string) plan.Target { return plan.Target{} }
func (nowhere) Defining(string) []string  { return nil }

// seeds are inputs near every rule.
func seeds() []string {
	return []string{
		"Add a login button", `Append "Bye." to README.md`, "fix UserService and main.go", "create a go app named x",
		`append "1" to a.txt; build; create file z.txt`, "create x.txt:\n```\na\n```\nbuild", "delete a.txt and b.txt",
		`replace "a" with "b\n" in a.txt, then prepend "x" to main.go`, `insert "x" after "a" in a.txt`,
		`remove "a" from a.txt; never touch src/. always touch src/`, `append "x" to ../b`, "create node.js app",
		"`a` `b c` ``` \"\\\" ’ `", "don’t touch x; keep (run()). if possible", "release the production installer",
	}
}

// FuzzPlanner plans any input.
func FuzzPlanner(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, "go")
	}
	f.Fuzz(func(t *testing.T, input, toolchain string) {
		if len(input) > maxInput {
			return
		}
		holds(t, input, demo(), &Config{Configuration: "Debug", Toolchain: toolchain, RootName: "demo"})
	})
}

// TestHostileInputs plans the longest inputs that repeat what costs most. Quadratic work would take
// minutes.
func TestHostileInputs(t *testing.T) {
	big := strings.Repeat("func (", 1<<18/6) + strings.Repeat("a", 1<<18) + strings.Repeat(" ", 1<<18) + "UserService"
	tr := demo().with("big.go", big).with("as.txt", strings.Repeat("a\n", 1<<15))
	parts := append(seeds(), "`", `"`, `\"`, "```", "\n```\n", "\n", " ", ",", ";", ".", "'", "(", "()", "/", "../", `\`,
		"and ", "and,", "the the ", "a", "aB ", "aB", "a() ", "a.c ", "x", "é", "\xff", "\x00", "then ", "to ", "to in ",
		"no a.", "create a.go ", "create x.go;", `"x" `, `"x" to `, `before "x" in `, "delete a.txt ", "a/", "a/b/ ",
		`replace "a" with "aa" in as.txt;`, `append "x" to as.txt;`, `remove "none" from as.txt;`, "app ", "build;",
		`insert "q" before "a" in as.txt;`, "never a; ", "named ")
	heads := []string{"", "add ", "create ", "replace ", `insert "x" before "y" `, "delete ", "build ", `append "x" `}
	if testing.Short() {
		heads = heads[:2]
	}
	for _, part := range parts {
		for _, head := range heads {
			n := (maxInput - len(head)) / len(part)
			in, bad := Extract(head+strings.Repeat(part, n), tr, debug())
			if bad == nil {
				_, _ = Plan(&in, tr, debug())
			}
		}
		if len(part) > 1 {
			holds(t, strings.Repeat(part, 40), demo(), debug())
		}
	}
}
