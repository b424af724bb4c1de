package conformance

import (
	"encoding/json"
	"strings"
	"testing"
)

// slowMake is a Makefile whose build lasts as long as there is a file slow, and fails if there is a
// file broken.
const slowMake = `all:
	@n=0; while test -e slow && test $$n -lt 1200; do sleep 0.05; n=$$((n+1)); done
	@test ! -e broken
run:
	@echo runs
`

// inMake are the files of a project whose tool is make.
var inMake = []string{"Makefile", slowMake, "a.txt", "a\n", "b.txt", "b\n"}

// gateRow is what a command leads to, where it is allowed, and how it is asked so that nothing
// changes.
type gateRow struct {
	command, payload, to, expected string
	allowed                        string // states
	outcome                        string
}

const restStates = "Idle Failed Completed"

// gateTable is exacta §5.3.
var gateTable = []gateRow{
	{"ExtractIntent", `{"user_input":" "}`, "ExtractingIntent", "Idle, Failed or Completed", restStates, "VAL-001 "},
	{"GeneratePlan", `{"intent_id":"` + noID + `"}`, "Planning", "Idle, AwaitingApproval, Failed or Completed", restStates, "VAL-001 "},
	{"ValidatePlan", `{"plan_id":"` + noID + `"}`, "ValidatePlan", "AwaitingApproval", "AwaitingApproval", "VAL-004 "},
	{"ApprovePlan", `{"plan_id":"` + noID + `"}`, "ApprovePlan", "AwaitingApproval", "AwaitingApproval", "VAL-004 "},
	{"RejectPlan", `{"plan_id":"` + noID + `"}`, "Idle", "AwaitingApproval", "AwaitingApproval", "VAL-004 "},
	{"ExecutePlan", `{"plan_id":"` + noID + `"}`, "Executing", "AwaitingApproval", "AwaitingApproval", "VAL-004 "},
	{"Pause", `{"execution_id":"` + noID + `"}`, "Paused", "Executing", "Executing", "ST-003 "},
	{"Resume", `{"execution_id":"` + noID + `"}`, "Executing", "Paused", "Paused", "ST-003 "},
	{"Cancel", `{"execution_id":"` + noID + `"}`, "Cancelling", "ExtractingIntent, Planning, AwaitingApproval, Executing, Paused or Cancelling", "AwaitingApproval Executing Paused", "ST-003 "},
	{"ApplyDiffSet", `{"diffs":["NO_CHANGES_REQUIRED"]}`, "ApplyDiffSet", "Idle, Failed or Completed", restStates, `{"applied":false,"rollback_point_id":"…"}`},
	{"Preview", `{}`, "Preview", "Idle or Completed", "Idle Completed", `{"started":true}`},
	{"ExportDiagnostics", `{"output_path":"../b.zip"}`, "", "", "Idle AwaitingApproval Executing Paused Failed Completed", "SEC-001 "},
	{"Build", `{}`, "Build", "Idle, Failed or Completed", restStates, `{"exit_code":…}`},
}

// gated tries all commands in a state. Nothing changes but by those that are allowed, and they
// leave the state.
func (c *client) gated(state string) {
	c.t.Helper()
	for _, g := range gateTable {
		r := c.ask(g.command, g.payload)
		if strings.Contains(g.allowed, state) {
			r.is(g.outcome)
			continue
		}
		if g.command == "GeneratePlan" && state == "AwaitingApproval" { // of another intent
			g.expected = "Idle, AwaitingApproval, Failed or Completed"
		}
		r.want("", "ST-001 Expected "+g.expected+" before "+g.to+".")
		if want := "Invalid state transition: " + state + " → " + g.to; r.end.OK || r.end.Error.Message != want {
			c.t.Errorf("got %s, want %s", r.end.line, want)
		}
	}
	if strings.Contains("Idle AwaitingApproval Failed Completed", state) {
		return // CloseProject is allowed
	}
	r := c.ask("CloseProject", "").want("", "ST-001 Expected Idle, AwaitingApproval, Failed or Completed before CloseProject.")
	if r.end.Error.Message != "Invalid state transition: "+state+" → CloseProject" {
		c.t.Errorf("got %s", r.end.line)
	}
}

// TestGate5_3 tries each command in each state that lasts.
func TestGate5_3(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := openWith(t, via, debugOn(via), inMake...)
		in := func(state string) {
			t.Helper()
			c.gated(state)
			c.opens(`"state":"` + state + `"`)
		}
		in("Idle")
		plan := c.plan(`append "1" to a.txt; build; create file z.txt`)
		in("AwaitingApproval")
		c.ask("ApprovePlan", `{"plan_id":"`+plan+`"}`)
		in("AwaitingApproval")
		c.server.write("slow", "")
		x := c.ask("ExecutePlan", `{"plan_id":"`+plan+`"}`).field("execution_id")
		c.until("build 0/1")
		in("Executing")
		pause := c.begin("Pause", `{"execution_id":"`+x+`"}`)
		c.remove("slow")
		c.await(pause).want("build 1/1; done true; apply 2/3; Executing→Paused Pause", `{"execution_id":"`+x+`","status":"paused"}`)
		in("Paused")
		c.ask("Resume", `{"execution_id":"`+x+`"}`)
		c.until("Executing→Completed ExecutionComplete")
		in("Completed")
		c.ask("GeneratePlan", `{"intent_id":"`+c.intent("delete nowhere.txt")+`"}`).
			want("Idle→Planning GeneratePlan; planning 1/3; raised VAL-004; Planning→Failed PlanInvalid", "VAL-004 ")
		in("Failed")
		c.ask("CloseProject", "").want("", `{"closed":true}`)
		for _, g := range gateTable {
			c.ask(g.command, g.payload).want("", "ST-003 ")
		}
	})
}

// TestTransitions5_2 takes each transition that a client can cause without a planner that hangs.
func TestTransitions5_2(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		const extracted = "Idle→ExtractingIntent ExtractIntent; ExtractingIntent→Idle IntentExtracted"
		const rejected = "Idle→ExtractingIntent ExtractIntent; raised VAL-001; ExtractingIntent→Idle IntentRejected"
		extract := func(input string) *reply { return c.ask("ExtractIntent", `{"user_input":`+quote(input)+`}`) }
		extract("Refactor everything").want(rejected, `{"intent":{…"type":"UnknownIntent","confidence":0,…}}`)
		append1 := extract(`append "1" to a.txt`).want(extracted, `{"intent":…}`).field("id")
		planned := func(from string) string {
			return from + "Idle→Planning GeneratePlan; planning 1/3; planning 2/3; planning 3/3; Planning→AwaitingApproval PlanReady"
		}
		generate := func(intent string) *reply { return c.ask("GeneratePlan", `{"intent_id":"`+intent+`"}`) }
		plan := generate(append1).want(planned("")+"; plan 1; diff", `{"plan_id":"…","version":1,"status":"pending"}`).field("plan_id")
		plan2 := generate(append1).want("AwaitingApproval→Planning GeneratePlan; planning 1/3; planning 2/3; planning 3/3; Planning→AwaitingApproval PlanReady; plan 2; diff",
			`{"plan_id":"…","version":2,"status":"pending"}`).field("plan_id")
		about := func(command, plan string) *reply { return c.ask(command, `{"plan_id":"`+plan+`"}`) }
		about("ApprovePlan", plan).want("", "VAL-005 plan_expired: superseded")
		about("RejectPlan", plan2).want("AwaitingApproval→Idle RejectPlan", `{"plan_id":"`+plan2+`","status":"rejected"}`)
		plan3 := generate(append1).field("plan_id")
		about("RejectPlan", plan2).want("", "VAL-005 plan_expired: rejected")
		c.ask("Cancel", `{"execution_id":"`+plan2+`"}`).want("", "ST-003 ")
		c.ask("Cancel", `{"execution_id":"`+strings.ToUpper(plan3)+`"}`).want("AwaitingApproval→Idle Cancel", `{"execution_id":"`+plan3+`","status":"cancelling"}`)
		plan4 := generate(append1).field("plan_id")
		about("ApprovePlan", plan3).want("", "VAL-005 plan_expired: cancelled")
		about("ExecutePlan", plan4).want("", "ST-001 Plan "+plan4+" is pending; ApprovePlan is required first.")
		about("ApprovePlan", plan4).want("", `{"plan_id":"`+plan4+`","status":"approved"}`)
		about("ApprovePlan", plan4).want("", `{"plan_id":"`+plan4+`","status":"approved"}`)
		about("RejectPlan", plan4).want("AwaitingApproval→Idle RejectPlan", `{"plan_id":"`+plan4+`","status":"rejected"}`)
		plan5 := generate(append1).field("plan_id")
		about("ApprovePlan", plan5)
		c.server.write("a.txt", "changed\n")
		about("ExecutePlan", plan5).want("raised VAL-005; AwaitingApproval→Idle PlanExpired", "VAL-005 plan_expired: drift")
		plan6 := generate(append1).field("plan_id")
		about("ApprovePlan", plan6)
		about("ExecutePlan", plan6).want("AwaitingApproval→Executing ExecutePlan", `{"execution_id":"…"}`)
		c.until("Executing→Completed ExecutionComplete")
		extract("create file new.txt").want("Completed→Idle Acknowledge; "+extracted, `{"intent":…}`)
		c.completes("create file new.txt")
		generate(append1).want(planned("Completed→Idle Acknowledge; ")+"; plan 7; diff", `{…"version":7,…}`)
		c.ask("CloseProject", "").want("AwaitingApproval→Idle PlanExpired", `{"closed":true}`)
		c.opens(`"state":"Idle"`)
		broken := extract(`append "2" to a.txt; build`).field("id")
		c.server.write("broken", "")
		about("ApprovePlan", generate(broken).field("plan_id"))
		c.lastPlan("ExecutePlan").want("AwaitingApproval→Executing ExecutePlan", `{"execution_id":"…"}`)
		if got := c.until("Executing→Failed StepFailed").shorts(); got != "step 1; diff; done true; apply 1/2; step 2; build 0/1; done false; raised BLD-002; Executing→Failed StepFailed" {
			t.Errorf("events %s", got)
		}
		if got := c.read("a.txt"); got != "changed\n1\n" {
			t.Errorf("a.txt has %q", got)
		}
		generate(broken).want("Failed→Planning GeneratePlan; planning 1/3; planning 2/3; planning 3/3; Planning→AwaitingApproval PlanReady; plan 2; diff", `{…"version":2,…}`)
	})
}

// lastPlan sends a command about the plan that waits.
func (c *client) lastPlan(command string) *reply {
	c.t.Helper()
	var out struct {
		Plan string `json:"active_plan_id"`
	}
	_ = json.Unmarshal(c.opens("").end.Result, &out) // its form was checked
	return c.ask(command, `{"plan_id":"`+out.Plan+`"}`)
}
