package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// scripted is a planner that runs the shell code in the file of an operation.
const scripted = `#!/bin/sh
while IFS= read -r line; do
	printf '%s\n' "$line" >> "{HOME}/asked"
	id=${line#*\"id\":\"}; id=${id%%\"*}
	op=${line#*\"op\":\"}; op=${op%%\"*}
	. "{HOME}/$op"
done
`

// hangs is the code of a planner that does not answer until there is a file go.
const hangs = `while test ! -e "{HOME}/go"; do sleep 0.02; done`

// anIntent is an answer of a planner for a file n.txt.
const anIntent = `{"type":"AddFeature","confidence":0.9,"target":{"files":["n.txt"],"symbols":[],"description":"x"},"constraints":[]}`

const aPlan = `{"steps":[{"type":"file_create","target":"n.txt","description":"new","dependencies":[],"content":"n\n"}]}`

// answers is the code of a planner that answers with a result.
func answers(result string) string {
	return `printf '{"id":"%s","ok":true,"result":%s}\n' "$id" '` + result + `'`
}

// withPlanner opens a project that uses a scripted planner.
func withPlanner(t testing.TB, via *carrier, flags ...string) *client {
	t.Helper()
	home := realTemp(t)
	if err := os.WriteFile(filepath.Join(home, "planner"), []byte(strings.ReplaceAll(scripted, "{HOME}", home)), 0o755); err != nil {
		t.Fatal(err)
	}
	flags = append(flags, fixed...)
	s := serveIn(t, via, home, append(flags, "--set", "exacta.planner=subprocess", "--set", `exacta.planner_command=["`+home+`/planner"]`)...)
	s.write(".exacta/config.json", `{"schema_version":1,"ai":{"provider":"subprocess"}}`)
	s.write("a.txt", "a\n")
	c := s.connect()
	c.opens("")
	c.script("extract_intent", answers(anIntent))
	c.script("generate_plan", answers(aPlan))
	return c
}

// script changes what the planner does for an operation.
func (c *client) script(op, code string) {
	c.t.Helper()
	c.server.write("../"+op, strings.ReplaceAll(code, "{HOME}", c.home)+"\n")
}

// TestActivities4_11 has the states of a planner that runs: the gate, a Cancel, a time limit, a
// failure (exacta §4.0.1, §4.0.3, §4.11, §5.2, §5.3).
func TestActivities4_11(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := withPlanner(t, via, "--set", "exacta.planner_cache=off")
		intent := c.intent("x")
		for _, f := range []struct{ command, payload, op, state, first string }{
			{"ExtractIntent", `{"user_input":"x"}`, "extract_intent", "ExtractingIntent", "ExtractingIntent ExtractIntent"},
			{"GeneratePlan", `{"intent_id":"` + intent + `"}`, "generate_plan", "Planning", "planning 1/3"}} {
			c.script(f.op, hangs)
			begins := func() (id, correlation string) {
				t.Helper()
				id = c.begin(f.command, f.payload)
				r := c.until(c.firstOf(f.first))
				return id, r.end.Correlation
			}
			id, correlation := begins()
			for _, g := range []string{"Pause", "Resume"} {
				r := c.ask(g, `{"execution_id":"`+noID+`"}`).want("", "ST-001 ")
				if !strings.HasPrefix(r.end.Error.Message, "Invalid state transition: "+f.state+" → ") {
					t.Errorf("got %s", r.end.line)
				}
			}
			c.ask("Cancel", `{"execution_id":"`+noID+`"}`).want("", "ST-003 ")
			// what comes meanwhile is parked, and gated when its turn comes
			parked := c.begin("ValidatePlan", `{"plan_id":"`+noID+`"}`)
			stop := c.begin("Cancel", `{"execution_id":"`+id+`"}`)
			c.await(id).want(f.state+"→Idle Cancel", "IPC-010 ")
			c.await(stop).want("", `{"execution_id":"`+id+`","status":"cancelling"}`)
			c.await(parked).is("ST-001 ")
			id, correlation = begins()
			stop = c.begin("Cancel", `{"execution_id":"`+correlation+`"}`)
			c.await(id).want(f.state+"→Idle Cancel", "IPC-010 ")
			c.await(stop).want("", `{"execution_id":"`+correlation+`","status":"cancelling"}`)
			// a time limit
			r := c.ask(f.command, strings.Replace(f.payload, "}", `,"timeout_ms":40}`, 1)).is("IPC-008 ")
			if !strings.HasSuffix(r.shorts(), "raised IPC-008; "+f.state+"→Failed Timeout") {
				t.Errorf("events %s", r.shorts())
			}
			// it is not the planner's any more
			c.script(f.op, "exit 3")
			r = c.ask(f.command, f.payload).is("AI-003 ")
			if !strings.HasSuffix(r.shorts(), "raised AI-003; "+f.state+"→Failed PlannerError") {
				t.Errorf("events %s", r.shorts())
			}
			c.script(f.op, answers(map[string]string{"extract_intent": anIntent, "generate_plan": aPlan}[f.op]))
			c.ask(f.command, f.payload).is("{…}")
		}
		c.opens(`"state":"AwaitingApproval"`)
	})
}

// firstOf completes the beginning of an event by the state that the project is in.
func (c *client) firstOf(part string) string {
	if strings.HasPrefix(part, "ExtractingIntent") {
		return "Idle→" + part
	}
	return part
}

// TestPlanner4_20 has what a planner may answer, and the codes of what it may not.
func TestPlanner4_20(t *testing.T) {
	t.Parallel()
	c := withPlanner(t, stdio, "--set", "exacta.planner_cache=off")
	extract := func(code, outcome string) *reply {
		t.Helper()
		c.script("extract_intent", code)
		return c.ask("ExtractIntent", `{"user_input":"x"}`).is(outcome)
	}
	extract(answers(anIntent), `{"intent":{"id":"…","type":"AddFeature","confidence":0.9,"raw_input":"x","target":{"files":["n.txt"],"symbols":[],"description":"x"},"constraints":[],"timestamp":"2026-01-15T00:00:00.000Z"}}`)
	asked := strings.TrimSpace(c.read("../asked"))
	if !matches(`{"protocol":"exacta-planner/1","id":"…","op":"extract_intent","input":{"user_input":"x","files":[{"path":"a.txt","size":2}],"markers":[".exacta"],"toolchain":null}}`, asked) {
		t.Errorf("asked %s", asked)
	}
	// E15
	extract(answers(`{"type":"UnknownIntent","confidence":0,"target":{"files":[],"symbols":[],"description":"x"},"constraints":[]}`), `{"intent":{…"type":"UnknownIntent","confidence":0,…}}`)
	for _, code := range []string{"AI-001", "AI-002", "AI-003", "AI-004", "AI-005"} {
		extract(`printf '{"id":"%s","ok":false,"error":{"code":"`+code+`","message":"no"}}\n' "$id"`, code+" ")
	}
	for _, bad := range []string{`{}`, strings.Replace(anIntent, "0.9", "1.1", 1), strings.Replace(anIntent, "0.9", `"0.9"`, 1), strings.Replace(anIntent, "AddFeature", "Other", 1),
		strings.Replace(anIntent, `"n.txt"`, `"../n.txt"`, 1), strings.Replace(anIntent, `"n.txt"`, `"/n.txt"`, 1), strings.Replace(anIntent, `"n.txt"`, `5`, 1),
		strings.Replace(anIntent, `"constraints":[]`, `"constraints":[{"type":"MAY","description":"x","scope":"global"}]`, 1), strings.Replace(anIntent, `,"constraints":[]`, ``, 1)} {
		extract(answers(bad), "AI-005 ")
	}
	extract("echo garbage", "AI-005 ")
	extract(strings.Replace(answers(anIntent), `"$id"`, noID, 1), "AI-005 ")
	extract(strings.Replace(answers(strings.Replace(anIntent, `"x"`, `"AKIA0123456789ABCDEF"`, 1)), "", "", 0), "SEC-003 ")
	extract(`printf '{"id":"%s","ok":true,"x":"' "$id"; n=0; while test $n -lt 70; do printf '%065536d' 0; n=$((n+1)); done; printf '"}\n'`, "AI-004 ")
	extract("exit 0", "AI-003 ")
	intent := extract(answers(anIntent), "{…}").field("id")
	generate := func(result, outcome string) *reply {
		t.Helper()
		c.script("generate_plan", answers(result))
		return c.ask("GeneratePlan", `{"intent_id":"`+intent+`"}`).is(outcome)
	}
	step := func(kind, target, rest string) string {
		return `{"type":"` + kind + `","target":"` + target + `","description":"d","dependencies":[]` + rest + `}`
	}
	steps := func(list ...string) string { return `{"steps":[` + strings.Join(list, ",") + `]}` }
	for _, bad := range []string{`{}`, `{"steps":5}`, steps(step("file_rename", "n.txt", "")), steps(step("file_create", "n.txt", "")), steps(step("file_create", "../n.txt", `,"content":"x"`)),
		steps(step("file_create", "/n.txt", `,"content":"x"`)), steps(`{"type":"build","target":".","dependencies":[]}`)} {
		generate(bad, "AI-005 ")
	}
	// the rules of plans that the built-in planner does not break
	for rule, list := range map[string]string{
		"PV-1": steps(), "PS-2": steps(step("file_create", "n.txt", `,"content":"x\n"`), step("file_create", "n.txt", `,"content":"y\n"`)),
		"PC-1": steps(step("build", ".", "")), "PV-9": steps(step("file_create", "a.txt", `,"content":"x\n"`)), "PV-10": steps(step("file_create", ".git/x", `,"content":"x\n"`)),
		"PV-2": steps(strings.Replace(step("file_create", "n.txt", `,"content":"x\n"`), `"dependencies":[]`, `"dependencies":[5]`, 1)),
		"PV-3": steps(strings.Replace(step("file_create", "n.txt", `,"content":"x\n"`), `"dependencies":[]`, `"dependencies":[1]`, 1))} {
		r := generate(list, "VAL-004 ")
		if !strings.Contains(r.outcome(), `"code":"`+rule+`"`) {
			t.Errorf("%s: %s", rule, r.outcome())
		}
	}
	generate(steps(step("file_create", "n.txt", `,"content":"AKIA0123456789ABCDEF\n"`)), "SEC-003 ")
	good := generate(steps(step("file_create", "n.txt", `,"content":"n\n"`), strings.Replace(step("build", ".", ""), "[]", "[1]", 1)), `{"plan_id":"…","version":1,"status":"pending"}`)
	if !strings.HasSuffix(good.shorts(), "plan 1; diff") {
		t.Errorf("events %s", good.shorts())
	}
}

// TestPlannerOrCFG4_20 has a project that names a planner that the operator did not enable.
func TestPlannerOrCFG4_20(t *testing.T) {
	t.Parallel()
	c := open(t, stdio, "go.mod", "module x\n")
	intent := c.intent("create n.txt")
	for config, setting := range map[string]string{`{"provider":"subprocess"}`: "ai.provider", `{"provider":"openai_compatible"}`: "ai.provider"} {
		c.server.write(".exacta/config.json", `{"schema_version":1,"ai":`+config+`}`)
		for _, r := range []*reply{c.ask("ExtractIntent", `{"user_input":"create n.txt"}`), c.ask("GeneratePlan", `{"intent_id":"`+intent+`"}`)} {
			r.want("", "CFG-003 ")
			if r.end.Error.Message != "A setting has an invalid value: "+setting+"." {
				t.Errorf("got %s", r.end.line)
			}
		}
	}
}

// TestCache4_20 asks the same twice: the planner is asked once.
func TestCache4_20(t *testing.T) {
	t.Parallel()
	c := withPlanner(t, stdio)
	first := c.ask("ExtractIntent", `{"user_input":"x"}`).is("{…}")
	c.script("extract_intent", "exit 1")
	again := c.ask("ExtractIntent", `{"user_input":"x"}`).is("{…}")
	if n := strings.Count(c.read("../asked"), "\n"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	plan := c.ask("GeneratePlan", `{"intent_id":"`+first.field("id")+`"}`).is("{…}").field("plan_id")
	c.script("generate_plan", "exit 1")
	c.ask("RejectPlan", `{"plan_id":"`+plan+`"}`)
	plan = c.ask("GeneratePlan", `{"intent_id":"`+again.field("id")+`"}`).is("{…}").field("plan_id")
	c.ask("RejectPlan", `{"plan_id":"`+plan+`"}`)
	// a changed file is another question
	c.server.write("n.txt", "there\n")
	c.ask("GeneratePlan", `{"intent_id":"`+again.field("id")+`"}`).is("AI-003 ")
	c.ask("ExtractIntent", `{"user_input":"y"}`).is("AI-003 ")
}

// TestPlannerLeavesItsGroup4_20: a planner that is killed ends with what it started in another
// session.
func TestPlannerLeavesItsGroup4_20(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil || runtime.GOOS != "linux" {
		t.Skip("setsid is not installed, or the system shows no descendants")
	}
	t.Parallel()
	c := withPlanner(t, stdio)
	c.script("extract_intent", `setsid sh -c 'echo $$ > {HOME}/new; mv {HOME}/new {HOME}/pid; exec sleep 600' & sleep 600`)
	id := c.begin("ExtractIntent", `{"user_input":"x"}`)
	eventually := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(waitFor); !holds(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("not in time: " + what)
			}
		}
	}
	pid := ""
	eventually("the planner has started another session", func() bool { pid = strings.TrimSpace(c.read("../pid")); return pid != "-" })
	c.ask("Cancel", `{"execution_id":"`+id+`"}`).is("{…}")
	eventually("what it started has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}
