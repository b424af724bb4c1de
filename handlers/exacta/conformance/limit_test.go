package conformance

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestPlanExpires5_4 has a plan whose time is over: that is seen before the gate.
func TestPlanExpires5_4(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		s := serveIn(t, via, realTemp(t), "--set", "exacta.plan_validity_seconds=1")
		s.write("go.mod", "module x\n")
		c := s.connect()
		c.opens("")
		plan := c.approved("create n.txt")
		for deadline := time.Now().Add(waitFor); ; time.Sleep(20 * time.Millisecond) {
			r := c.ask("ValidatePlan", `{"plan_id":"`+plan+`"}`)
			if !r.end.OK {
				r.want("AwaitingApproval→Idle PlanExpired", "ST-001 Expected AwaitingApproval before ValidatePlan.")
				if r.events[0].Request != nil {
					t.Errorf("no request caused %s", r.events[0].line)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("it does not expire")
			}
		}
		// another plan waits: the old one is known
		c.plan("create m.txt")
		c.ask("ApprovePlan", `{"plan_id":"`+plan+`"}`).want("", "VAL-005 plan_expired: ttl")
	})
}

// TestLock4_18 opens a project that another server changes.
func TestLock4_18(t *testing.T) {
	t.Parallel()
	one := open(t, stdio)
	one.intent("create n.txt") // the first change takes the lock
	two := serveIn(t, stdio, one.home, fixed...).connect()
	two.at(one.dir(), "FS-005 ")
	one.ask("CloseProject", "")
	two.at(one.dir(), "{…}")
	two.project = one.project
	two.intent("create n.txt")
	one.at(one.dir(), "FS-005 ")
	two.server.kill() // a lock does not outlive its process
	one.at(one.dir(), "{…}")
}

// TestJournal2_5 has a journal that does not hold all events any more.
func TestJournal2_5(t *testing.T) {
	overAll(t, func(t *testing.T, via *carrier) {
		c := openWith(t, via, []string{"--set", "exacta.journal_events=100"})
		c.joined = true
		for range 104 {
			c.opens("") // one LogEntry each
		}
		c.subscribe(`,"after_stream_seq":4`).is("IPC-007 ")
		c.logs = true
		c.subscribe(`,"after_stream_seq":5`).is(`{…"oldest_stream_seq":6,"last_stream_seq":105,"replayed":100}`)
		for i, got := range c.stream(100) {
			if got != 6+i {
				t.Fatalf("event %d is %d", i, got)
			}
		}
	})
}

// TestReplayCache4_0_4 keeps as many answers as the setting allows.
func TestReplayCache4_0_4(t *testing.T) {
	t.Parallel()
	c := openWith(t, stdio, []string{"--set", "exacta.replay_cache_entries=16"})
	line := c.line(c.id(), "Pause", `{"execution_id":"`+noID+`"}`)
	first := c.message(line).end.line
	for range 15 {
		c.ask("Pause", `{"execution_id":"`+noID+`"}`).is("ST-001 ")
	}
	if again := c.message(line).end.line; again != first {
		t.Errorf("got %s\nwant %s", again, first)
	}
	c.ask("Pause", `{"execution_id":"`+noID+`"}`)
	if again := c.message(line).is("ST-001 ").end.line; again == first {
		t.Error("17 answers are kept")
	}
}

// TestLogLevel3_4 sends no INFO where the setting is WARN, and counts without a gap.
func TestLogLevel3_4(t *testing.T) {
	t.Parallel()
	c := openWith(t, stdio, []string{"--set", "exacta.log_event_level=WARN"}, "go.mod", "module x\n")
	c.logs = true
	c.opens("")
	r := c.ask("GeneratePlan", `{"intent_id":"`+c.intent("Build a login page")+`"}`).is("VAL-004 ")
	if !strings.Contains(r.shorts(), "WARN: ") || strings.Contains(r.shorts(), "INFO: ") {
		t.Errorf("events %s", r.shorts())
	}
	if got := c.streams[c.project]; got != 2+len(r.events) {
		t.Errorf("the last event is %s", strconv.Itoa(got))
	}
}

// TestAllowedRoots6_1 opens projects in the directories that are allowed only.
func TestAllowedRoots6_1(t *testing.T) {
	t.Parallel()
	home := realTemp(t)
	s := serveIn(t, stdio, home, append(append([]string(nil), fixed...), "--set", "exacta.allowed_roots="+home+"/p")...)
	for _, name := range []string{"", "../pc/", "sub/"} {
		s.write(name+"go.mod", "module x\n")
	}
	c := s.connect()
	c.at(home+"/pc", "FS-003 ")
	c.at(s.dir()+"/sub", "{…}")
	c.at(home, "FS-003 ")
}
