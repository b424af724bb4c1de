package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCancel4_11 has the table of situations: what a Cancel must name, and what comes.
func TestCancel4_11(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		cancel := func(handle string) string { return c.begin("Cancel", `{"execution_id":"`+handle+`"}`) }
		result := func(handle string) string { return `{"execution_id":"` + handle + `","status":"cancelling"}` }
		if err := os.Chmod(filepath.Join(c.dir(), "a.txt"), 0o751); err != nil {
			t.Fatal(err)
		}
		before := tree(t, c.dir())
		// a build step is killed (E13)
		c.server.write("slow", "")
		x := c.executes(`append "1" to a.txt; build; create file z.txt`)
		c.until("build 0/1")
		c.ask("Cancel", `{"execution_id":"`+noID+`"}`).want("", "ST-003 ")
		c.await(cancel(x)).want("done false; Executing→Cancelling Cancel", result(x))
		c.until("Cancelling→Idle RollbackComplete")
		c.remove("slow")
		if after := tree(t, c.dir()); after != before {
			t.Errorf("the tree is %s\nbefore %s", after, before)
		}
		c.ask("Cancel", `{"execution_id":"`+x+`"}`).want("", "ST-001 ")
		// a Pause that waits is refused
		c.server.write("slow", "")
		x = c.executes(`append "1" to a.txt; build`)
		c.until("build 0/1")
		pause := c.begin("Pause", `{"execution_id":"`+x+`"}`)
		c.ask("Pause", `{"execution_id":"`+x+`"}`).want("", "ST-001 Expected Executing before Paused.")
		c.await(cancel(x)).want("done false; Executing→Cancelling Cancel", result(x))
		c.await(pause).is("ST-001 ")
		c.opens(`"state":"Idle"`)
		c.remove("slow")
		// Paused
		c.server.write("slow", "")
		x = c.executes(`append "1" to a.txt; build; create n.txt`)
		c.until("build 0/1")
		pause = c.begin("Pause", `{"execution_id":"`+x+`"}`)
		c.remove("slow")
		c.await(pause).is(`{"execution_id":"` + x + `","status":"paused"}`)
		c.await(cancel(x)).want("Paused→Cancelling Cancel", result(x))
		c.until("Cancelling→Idle RollbackComplete")
		if after := tree(t, c.dir()); after != before {
			t.Errorf("the tree is %s\nbefore %s", after, before)
		}
		// a Pause behind the last step comes too late
		c.server.write("slow", "")
		x = c.executes("create n.txt; build")
		c.until("build 0/1")
		c.remove("slow")
		c.until("Executing→Completed ExecutionComplete")
		c.ask("Pause", `{"execution_id":"`+x+`"}`).want("", "ST-001 Expected Executing before Paused.")
		c.ask("Cancel", `{"execution_id":"`+x+`"}`).want("", "ST-001 ")
		c.remove("n.txt")
		// a build, by its request and by its correlation
		for _, byRequest := range []bool{true, false} {
			c.server.write("slow", "")
			build := c.begin("Build", "")
			handle := c.until("build 0/1").end.Correlation
			if byRequest {
				handle = strings.ToUpper(build)
			}
			c.ask("Cancel", `{"execution_id":"`+noID+`"}`).want("", "ST-001 ")
			stop := cancel(handle)
			c.await(build).want("raised IPC-010", "IPC-010 ")
			c.await(stop).want("", `{"execution_id":"`+strings.ToLower(handle)+`","status":"cancelling"}`)
			c.remove("slow")
			c.opens(`"state":"Completed"`)
		}
		// a conflict
		c.server.write("slow", "")
		x = c.executes(`append "1" to a.txt; build`)
		c.until("build 0/1")
		c.server.write("a.txt", "mine\n")
		c.await(cancel(x)).want("done false; Executing→Cancelling Cancel", result(x))
		if got := c.until("Cancelling→Failed RollbackFailed").shorts(); got != "raised FS-006; Cancelling→Failed RollbackFailed" || c.read("a.txt") != "mine\n" {
			t.Errorf("events %s", got)
		}
	})
}

// TestWhose4_0_2 looks at the request_id and the correlation_id of events.
func TestWhose4_0_2(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		of := func(r *reply, request, correlation string) {
			t.Helper()
			for _, m := range append(r.events, r.end) {
				if m.Request == nil || *m.Request != request || m.Correlation != correlation {
					t.Errorf("not of %s, %s: %s", request, correlation, m.line)
				}
			}
		}
		id := c.begin("ExtractIntent", `{"user_input":"append \"1\" to a.txt; build; create n.txt"}`)
		r := c.await(id)
		flow := r.end.Correlation
		of(r, id, flow)
		intent := r.field("id")
		id = c.begin("GeneratePlan", `{"intent_id":"`+intent+`"}`)
		r = c.await(id)
		of(r, id, flow)
		plan := r.field("plan_id")
		for _, command := range []string{"ExecutePlan", "ValidatePlan", "ApprovePlan"} {
			id = c.begin(command, `{"plan_id":"`+plan+`"}`)
			of(c.await(id), id, flow)
		}
		c.server.write("slow", "")
		execute := c.begin("ExecutePlan", `{"plan_id":"`+plan+`"}`)
		r = c.await(execute)
		of(r, execute, flow)
		x := r.field("execution_id")
		of(c.until("build 0/1"), execute, flow)
		pause := c.begin("Pause", `{"execution_id":"`+x+`"}`)
		c.remove("slow")
		r = c.await(pause) // the events up to it are of the execution
		for _, m := range r.events {
			if *m.Request != execute || m.Correlation != flow {
				t.Errorf("not of the execution: %s", m.line)
			}
		}
		if r.end.Correlation != flow {
			t.Errorf("got %s", r.end.line)
		}
		resume := c.begin("Resume", `{"execution_id":"`+x+`"}`)
		of(c.await(resume), resume, flow)
		of(c.until("Executing→Completed ExecutionComplete"), resume, flow)
		seen := map[string]bool{flow: true}
		for _, command := range []string{"Build", "ApplyDiffSet", "Pause", "Build"} { // of no flow
			payload := map[string]string{"ApplyDiffSet": diffs("NO_CHANGES_REQUIRED"), "Pause": `{"execution_id":"` + noID + `"}`}[command]
			if command == "ApplyDiffSet" && via.name != "stdio" && via.name != "unix" {
				continue
			}
			id = c.begin(command, payload)
			r = c.await(id)
			if seen[r.end.Correlation] {
				t.Errorf("not a new correlation: %s", r.end.line)
			}
			of(r, id, r.end.Correlation)
			seen[r.end.Correlation] = true
		}
	})
}

// TestParked4_0_1 sends requests behind a build: they wait in order, up to 64.
func TestParked4_0_1(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		c.server.write("slow", "")
		build := c.begin("Build", "")
		c.until("build 0/1")
		// 63 beside the build: the connection may have 64 that are not answered
		var waiting []string
		for i := range 63 {
			if i%2 == 0 {
				waiting = append(waiting, c.begin("ValidatePlan", `{"plan_id":"`+noID+`"}`))
			} else {
				waiting = append(waiting, c.begin("ExtractIntent", `{"user_input":" "}`))
			}
		}
		c.ask("ValidatePlan", `{"plan_id":"`+noID+`"}`).want("", "RES-004 ")
		// those are never parked
		c.ask("Pause", `{"execution_id":"`+noID+`"}`).want("", "ST-001 ")
		c.ask("Resume", `{"execution_id":"`+noID+`"}`).want("", "ST-001 ")
		c.ask("Cancel", `{"execution_id":"`+noID+`"}`).want("", "ST-001 ")
		stop := c.begin("Cancel", `{"execution_id":"`+build+`"}`)
		c.await(build).want("raised IPC-010", "IPC-010 ")
		c.await(stop).want("", "{…}")
		for i, id := range waiting {
			if i%2 == 0 {
				c.await(id).want("", "ST-001 ")
			} else {
				c.await(id).want("", "VAL-001 ")
			}
		}
		c.ask("ValidatePlan", `{"plan_id":"`+noID+`"}`).want("", "ST-001 ")
	})
}

// TestTimeouts4_0_3 has the rows of the table that a client can cause.
func TestTimeouts4_0_3(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		c.server.write("slow", "")
		late := func(r *reply, ms string) {
			t.Helper()
			if r.end.OK || r.end.Error.Message != "The request timed out after "+ms+" ms." {
				t.Errorf("got %s", r.end.line)
			}
		}
		// Build: killed
		r := c.ask("Build", `{"timeout_ms":30}`).want("build 0/1; raised IPC-008", "IPC-008 ")
		late(r, "30")
		// the smaller one of the two
		id := c.id()
		r = c.message(strings.TrimSuffix(c.line(id, "Build", `{"timeout_ms":3600000}`), "}") + `,"timeout_ms":31}`)
		late(r.want("build 0/1; raised IPC-008", "IPC-008 "), "31")
		// parked: nothing is done
		build := c.begin("Build", "")
		c.until("build 0/1")
		late(c.ask("ExtractIntent", `{"user_input":"create n.txt","timeout_ms":1}`).want("", "IPC-008 "), "1")
		c.begin("Cancel", `{"execution_id":"`+build+`"}`)
		c.await(build)
		c.next() // of the Cancel
		// a time limit of the build itself
		c.ask("Build", `{"timeout_seconds":1}`).want("build 0/1; raised BLD-004", "BLD-004 ")
		c.opens(`"state":"Idle"`)
		// a Pause is withdrawn, the execution goes on
		x := c.executes("create n.txt; build")
		c.until("build 0/1")
		late(c.ask("Pause", `{"execution_id":"`+x+`","timeout_ms":5}`).want("", "IPC-008 "), "5")
		pause := c.begin("Pause", `{"execution_id":"`+x+`","timeout_ms":5}`)
		c.await(pause).is("IPC-008 ") // it can be asked again
		c.remove("slow")
		c.until("Executing→Completed ExecutionComplete")
		// operations that are short finish
		c.ask("ValidatePlan", `{"plan_id":"`+noID+`","timeout_ms":1}`).is("ST-001 ")
	})
}

// TestReplay4_0_4 repeats requests on one connection.
func TestReplay4_0_4(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := open(t, via, inMake...)
		id := "abcdef00-0000-4000-8000-00000000000a"
		line := c.line(id, "ExtractIntent", `{"user_input":"create n.txt","x":{"a":1,"b":[1.0,"é"]}}`)
		first := c.message(line)
		same := func(line string) {
			t.Helper()
			if r := c.message(line).want("", "{…}"); !strings.EqualFold(r.end.line, first.end.line) {
				t.Errorf("got %s\nwant %s", r.end.line, first.end.line)
			}
		}
		same(line)
		same(strings.Replace(line, id, strings.ToUpper(id), 1))
		same(strings.Replace(line, "2026-01-15T00:00:00Z", "2027-01-15T00:00:00Z", 1))
		same(strings.Replace(line, `"ipc_version":"1.0"`, `"ipc_version":"1.3"`, 1))
		same(strings.Replace(line, `"type"`, `"timeout_ms":9,"type"`, 1))
		same(strings.Replace(line, `"x"`, `"timeout_ms":9,"sent_at":1,"ipc_version":2,"request_id":3,"x"`, 1))
		same(strings.Replace(line, `{"a":1,"b":[1.0,"é"]}`, ` { "b":[1,"\u00e9"] , "a":1e0 } `, 1))
		conflict := func(line string) { t.Helper(); c.message(line).want("", "IPC-006 ") }
		conflict(strings.Replace(line, `"a":1`, `"a":2`, 1))
		conflict(strings.Replace(line, "create n.txt", "create m.txt", 1))
		conflict(strings.Replace(line, `,"x":`, `,"y":`, 1))
		conflict(strings.Replace(line, "ExtractIntent", "GeneratePlan", 1))
		conflict(c.line(id, "Build", `{"configuration":"no"}`)) // 13 before 14
		same(line)
		// a refusal of a state is stored, one of a schema is not
		refused := c.line(c.id(), "ApprovePlan", `{"plan_id":"`+noID+`"}`)
		before := c.message(refused).is("ST-001 ")
		c.ask("RejectPlan", `{"plan_id":"`+c.plan("create n.txt")+`"}`)
		if again := c.message(refused); again.end.line != before.end.line {
			t.Errorf("got %s\nwant %s", again.end.line, before.end.line)
		}
		free := c.id()
		c.message(c.line(free, "Build", `{"configuration":"no"}`)).is("IPC-009 ")
		c.message(c.line(free, "Pause", `{"execution_id":"`+noID+`"}`)).is("ST-001 ")
		// a repeat while the request runs: two answers, with the same bytes
		c.server.write("slow", "")
		build := c.begin("Build", "")
		c.until("build 0/1")
		c.sends(c.line(build, "Build", ""))
		conflict(c.line(build, "Build", `{"configuration":"Debug"}`))
		c.remove("slow")
		one := c.await(build).want("build 1/1", `{"exit_code":0,…}`)
		two := c.await(build).want("", `{"exit_code":0,…}`)
		if one.end.line != two.end.line {
			t.Errorf("got %s and %s", one.end.line, two.end.line)
		}
		// an execution does not run twice
		plan := c.approved("create n.txt")
		execute := c.line(c.id(), "ExecutePlan", `{"plan_id":"`+plan+`"}`)
		x := c.message(execute).field("execution_id")
		c.until("Executing→Completed ExecutionComplete")
		c.remove("n.txt")
		if r := c.message(execute).want("", "{…}"); r.field("execution_id") != x || c.read("n.txt") != "-" {
			t.Errorf("got %s", r.end.line)
		}
	})
}
