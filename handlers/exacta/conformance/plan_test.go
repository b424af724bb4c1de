package conformance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// broken expects that a plan of a request breaks a rule, while it is made (exacta §4.4, §4.5).
func (c *client) broken(input, rule string) {
	c.t.Helper()
	r := c.ask("GeneratePlan", `{"intent_id":"`+c.intent(input)+`"}`)
	if r.end.OK || !strings.HasPrefix(r.end.Error.Detail, `[{"code":"`+rule+`","message":"`) || !strings.HasSuffix(r.shorts(), "raised VAL-004; Planning→Failed PlanInvalid") {
		c.t.Errorf("%.100s: %s; %s", input, r.shorts(), r.end.line)
		return
	}
	message, _, _ := strings.Cut(strings.TrimPrefix(r.end.Error.Detail, `[{"code":"`+rule+`","message":"`), `"`)
	if r.end.Error.Message != "The plan is not valid: "+message+"." {
		c.t.Errorf("%s: %s", input, r.end.line)
	}
}

// creates returns a request that creates n files.
func creates(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "f" + strconv.Itoa(i) + ".txt"
	}
	return "create " + strings.Join(out, ", ")
}

// TestRules4_5 has the rules that a request can break.
func TestRules4_5(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	fine := func(input string) {
		t.Helper()
		c.ask("RejectPlan", `{"plan_id":"`+c.plan(input)+`"}`).is("{…}")
	}
	fine(creates(10))
	c.broken(creates(11), "PV-8")
	fine(`create n.txt with "` + strings.Repeat(`x\n`, 496) + `x"`) // and 3 lines of head
	c.broken(`create n.txt with "`+strings.Repeat(`x\n`, 497)+`x"`, "PV-8")
	c.broken("create file a.txt", "PV-9")
	c.broken("create n.pem.json and sub/.env", "PV-10")
	constraints := strings.Repeat(". do not touch x.go", 10)
	fine("create n.txt" + constraints)
	c.broken("create n.txt"+constraints+". do not touch y.go", "PV-8")
	// PS-1
	for _, f := range []struct{ edit, constraint string }{
		{`append "x" to a.txt`, "don't touch a.txt"}, {`append "x" to a.txt`, "do not modify `a.txt`"}, {"create d/n.txt", "never change d/"}, {"delete a.txt", "avoid delete a.txt"},
		{"create main.go", "must not update main.go"}, {"delete a.txt", "no deletes; never remove anything"}, {"create go.mod", "no new dependencies"},
		{"create package.json", "avoid third-party packages"}, {"build", "do not build"}, {"create n.txt", "do not create new files"}, {"create n.txt", "only touch a.txt"},
		{"create d/n.txt", "only change e/"}} {
		c.broken(f.edit+". "+f.constraint, "PS-1")
	}
	for _, f := range []struct{ edit, constraint string }{
		{`append "x" to a.txt`, "don't touch b.txt"}, {`append "x" to a.txt`, "don't look at a.txt"}, {"create d.txt", "never change d/"}, {"create n.txt", "do not delete anything"},
		{"delete a.txt", "do not create new files"}, {"create n.txt", "no new dependencies"}, {"create n.txt", "only touch n.txt"}, {"create e/n.txt", "only change e/"}, {"create n.txt", "do not build"}} {
		fine(f.edit + ". " + f.constraint)
	}
	// a symbol protects each file that defines it
	c.server.write("u.go", "package x\n\ntype UserService struct{}\n")
	c.broken(`append "// x" to u.go. don't touch UserService`, "PS-1")
	// limits of the project
	c.server.write(".exacta/config.json", `{"schema_version":1,"limits":{"max_steps_per_plan":3,"max_total_files_per_plan":2,"max_diff_lines_per_step":6},"file_rules":{"deny":["x/"],"allow":["bin/"]}}`)
	fine(creates(2))
	c.broken(creates(3), "PV-8")
	c.broken("create a1.txt; build; build; build", "PV-8")
	c.broken(`create n.txt with "`+strings.Repeat(`x\n`, 4)+`"`, "PV-8")
	c.broken("create x/n.txt", "PV-10")
	fine("create bin/n.txt")
}

// TestDrift4_6 changes a target, or the configuration, between the steps of a flow.
func TestDrift4_6(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		about := func(command, plan string) *reply { t.Helper(); return c.ask(command, `{"plan_id":"`+plan+`"}`) }
		expired := "raised VAL-005; AwaitingApproval→Idle PlanExpired"
		for name, text := range map[string]string{"a.txt": "changed\n", ".exacta/config.json": `{"schema_version":1,"x":1}`, "b.txt": "-", "n.txt": "there\n"} {
			old := c.read(name)
			change := func() {
				if c.remove(name); text != "-" {
					c.server.write(name, text)
				}
			}
			restore := func() {
				if c.remove(name); old != "-" {
					c.server.write(name, old)
				}
			}
			input := `append "x" to a.txt; delete b.txt; create n.txt`
			plan := c.plan(input)
			about("ValidatePlan", plan).want("", `{"valid":true,"violations":[]}`)
			change()
			r := about("ValidatePlan", plan).want("", `{"valid":false,"violations":[{"code":"P…","message":"…","step_id":…}…]}`)
			if !strings.Contains(string(r.end.Result), `"code":"PD-`) {
				t.Errorf("%s: %s", name, r.end.line)
			}
			about("ApprovePlan", plan).want(expired, "VAL-005 plan_expired: drift")
			restore()
			plan = c.approved(input)
			change()
			about("ApprovePlan", plan).want(expired, "VAL-005 plan_expired: drift")
			restore()
			plan = c.approved(input)
			change()
			about("ExecutePlan", plan).want(expired, "VAL-005 plan_expired: drift")
			about("ExecutePlan", plan).want("", "ST-001 ")
			restore()
		}
	})
}

// TestLazyLinks4_5 has a target that becomes a link: the plan is invalid.
func TestLazyLinks4_5(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	plan := c.plan(`append "x" to a.txt`)
	c.remove("a.txt")
	if err := os.Symlink("b.txt", filepath.Join(c.dir(), "a.txt")); err != nil {
		t.Fatal(err)
	}
	c.ask("ValidatePlan", `{"plan_id":"`+plan+`"}`).is(`{"valid":false,"violations":[…{"code":"PV-4",…}]}`)
	r := c.ask("ApprovePlan", `{"plan_id":"`+plan+`"}`)
	if r.end.OK || !strings.HasSuffix(r.shorts(), "AwaitingApproval→Idle PlanExpired") {
		t.Errorf("%s; %s", r.shorts(), r.end.line)
	}
	if got := c.read("b.txt"); got != "b\n" {
		t.Errorf("b.txt has %q", got)
	}
}

// TestPlansStay6_3 has a fixed clock: a plan does not expire by time.
func TestPlansStay6_3(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	plan := c.approved("create n.txt")
	c.ask("ValidatePlan", `{"plan_id":"`+plan+`"}`).want("", `{"valid":true,"violations":[]}`)
}

// TestExecution4_8 has a conflict of a rollback, a step that fails, and drift between two steps.
func TestExecution4_8(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, inMake...)
	input := `append "x" to a.txt; create d/n.txt; build; append "x" to b.txt`
	if err := os.Chmod(filepath.Join(c.dir(), "a.txt"), 0o751); err != nil {
		t.Fatal(err)
	}
	before := tree(t, c.dir())
	c.server.write("slow", "")
	c.executes(input)
	c.until("build 0/1")
	c.server.write("b.txt", "mine\n")
	c.remove("slow")
	got := c.until("Executing→Failed StepFailed").shorts()
	if got != "done true; apply 3/4; step 4; diff; done false; raised VAL-005; Executing→Failed StepFailed" && got != "build 1/1; done true; apply 3/4; step 4; diff; done false; raised VAL-005; Executing→Failed StepFailed" {
		t.Errorf("events %s", got)
	}
	c.server.write("b.txt", "b\n")
	if after := tree(t, c.dir()); after != before {
		t.Errorf("the tree is %s\nbefore %s", after, before)
	}
	// what another program wrote stays, and the point too
	c.server.write("slow", "")
	x := c.executes(input)
	c.until("build 0/1")
	c.server.write("a.txt", "mine\n")
	c.server.write("broken", "")
	c.remove("slow")
	r := c.until("Executing→Failed StepFailed")
	if got := r.shorts(); got != "done false; raised BLD-002; raised FS-006; Executing→Failed StepFailed" {
		t.Errorf("events %s", got)
	}
	if c.read("a.txt") != "mine\n" || c.read("d/n.txt") != "-" || c.read("d") != "-" || c.read(".exacta/rollback/"+x+"/manifest.json") == "-" {
		t.Error("the rollback did something else")
	}
	for _, m := range r.events {
		if m.short() == "raised FS-006" && !strings.Contains(m.line, `"message":"Rollback could not restore 1 file(s)."`) {
			t.Errorf("got %s", m.line)
		}
	}
}
