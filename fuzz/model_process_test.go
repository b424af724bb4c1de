package fuzz

import (
	"slices"
	"strings"
)

// proc is a process of kernel-ipc §5.1.
type proc struct {
	pid                string
	requestID, session any // string or *made
	user               string
	state, priority    string
	usage, quota       map[string]int64
	created, readied   int   // places in the orders of creation and of entry into READY
	leased             bool  // handed out while READY
	leaseEnd           int64 // ms
	ran, started       int64 // ms RUNNING before, and since
	completedAt        int64
	completed          int // place in the order of completion
}

var (
	states     = []string{"NEW", "READY", "RUNNING", "WAITING", "BLOCKED", "TERMINATED", "ZOMBIE"}
	priorities = []string{"REALTIME", "HIGH", "NORMAL", "LOW", "IDLE"}
	usageKeys  = []string{"llm_calls", "tool_calls", "agent_hops", "tokens_in", "tokens_out"}
)

// transitions is the table of kernel-ipc §5.1.
var transitions = map[string][]string{
	"NEW":     {"READY", "TERMINATED"},
	"READY":   {"RUNNING", "TERMINATED"},
	"RUNNING": {"READY", "WAITING", "BLOCKED", "TERMINATED"},
	"WAITING": {"READY", "TERMINATED"}, "BLOCKED": {"READY", "TERMINATED"},
	"TERMINATED": {"ZOMBIE"},
}

func (p *proc) terminal() bool { return p.state == "TERMINATED" || p.state == "ZOMBIE" }

func (p *proc) usageBody() object {
	o := object{}
	for _, k := range usageKeys {
		o = append(o, member{k, p.usage[k]})
	}
	return o
}

// pcb is the shape of kernel-ipc §4.0.
func (m *model) pcb(p *proc) object {
	return object{{"pid", p.pid}, {"request_id", p.requestID}, {"user_id", p.user}, {"session_id", p.session},
		{"state", p.state}, {"priority", p.priority}, {"usage", p.usageBody()}, {"current_stage", m.stageOf(p.pid)}}
}

func (m *model) find(pid string) *proc {
	for _, p := range m.procs {
		if p.pid == pid {
			return p
		}
	}
	return nil
}

// process reads pid and finds it once the other fields are read.
func (k *call) known(pid string) *proc {
	if k.bad != nil {
		return nil
	}
	p := k.model.find(pid)
	if p == nil {
		k.refuse("NOT_FOUND", "Process %s not found", pid)
	}
	return p
}

// oneOf reads a name in any letter case.
func oneOf(names []string, s string) (string, bool) {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}, s)
	return s, slices.Contains(names, s)
}

// orMade is s, or a made-up UUID where it is "".
func orMade(s string) any {
	if s == "" {
		return &made{form: uuidForm, size: 36}
	}
	return s
}

// createProcess is kernel-ipc §4.1.
func createProcess(k *call) object {
	m := k.model
	p := &proc{pid: k.requiredID("pid"), priority: "NORMAL", state: "NEW", usage: map[string]int64{}}
	p.requestID = orMade(k.optionalID("request_id"))
	if p.user = k.optionalID("user_id"); p.user == "" {
		p.user = "anonymous"
	}
	p.session = orMade(k.optionalID("session_id"))
	if v := k.field("priority"); v != nil {
		text, isText := v.(string)
		name, known := oneOf(priorities, text)
		if !isText {
			k.invalid("priority must be a string")
		} else if !known {
			k.invalid("Invalid priority: %s", text)
		}
		p.priority = name
	}
	p.quota = map[string]int64{}
	for _, q := range quotaTable {
		p.quota[q.name] = m.quota[q.name]
	}
	k.quota(func(name string, n int64) { p.quota[name] = n })
	schedule := k.flag("schedule", true)
	if k.bad != nil || !k.admit(p) {
		return nil
	}
	m.created++
	p.created = m.created
	m.procs = append(m.procs, p)
	body := m.pcb(p)
	if schedule {
		m.enter(p, "READY")
	}
	m.emit("process.created", object{{"pid", p.pid}, {"request_id", p.requestID}, {"user_id", p.user}, {"session_id", p.session}})
	return body
}

// admit makes room for p and takes its rate slot, or refuses and changes nothing.
func (k *call) admit(p *proc) bool {
	m := k.model
	if m.find(p.pid) != nil {
		k.refuse("FAILED_PRECONDITION", "Process %s already exists", p.pid)
		return false
	}
	var oldest *proc
	if len(m.procs) >= m.set.maxProcesses {
		for _, t := range m.procs {
			if t.terminal() && (oldest == nil || t.completed < oldest.completed) {
				oldest = t
			}
		}
		if oldest == nil {
			k.refuse("RESOURCE_EXHAUSTED", "Process table is full")
			k.bad.with("retryable", true)
			return false
		}
	}
	d := m.rate(p.user, true)
	if !d.allowed {
		k.refuse("RESOURCE_EXHAUSTED", "%s", d.reason)
		k.bad.with("retry_after_seconds", d.retryAfter)
		return false
	}
	m.remove(oldest)
	return true
}

func (m *model) remove(p *proc) {
	if p != nil {
		m.procs = slices.DeleteFunc(m.procs, func(o *proc) bool { return o == p })
		m.dropSession(p.pid)
	}
}

// enter moves p to a state (kernel-ipc §5.1).
func (m *model) enter(p *proc, state string) {
	if p.state == "RUNNING" {
		p.ran += m.ms - p.started
	}
	p.state, p.leased = state, false
	switch state {
	case "READY":
		m.readied++
		p.readied = m.readied
	case "RUNNING":
		p.started = m.ms
	case "TERMINATED":
		m.completed++
		p.completed, p.completedAt = m.completed, m.ms
	}
}

func (m *model) emitChanged(p *proc, old, reason string) {
	m.emit("process.state_changed", object{{"pid", p.pid}, {"old_state", old}, {"new_state", p.state}, {"reason", reason},
		{"session_id", p.session}})
}

func (m *model) emitTerminated(p *proc, reason string) {
	m.emit("process.terminated", object{{"pid", p.pid}, {"session_id", p.session}, {"reason", reason}})
}

// getProcess is kernel-ipc §4.2.
func getProcess(k *call) object {
	if p := k.known(k.requiredID("pid")); p != nil {
		return k.model.pcb(p)
	}
	return nil
}

// scheduleProcess is kernel-ipc §4.3.
func scheduleProcess(k *call) object {
	p := k.known(k.requiredID("pid"))
	if p == nil {
		return nil
	}
	switch p.state {
	case "NEW":
		k.model.enter(p, "READY")
		k.model.emitChanged(p, "NEW", "")
	case "READY":
		p.leased = false
	default:
		k.refuse("FAILED_PRECONDITION", "Cannot schedule process %s: state is %s, expected NEW", p.pid, p.state)
	}
	return k.model.pcb(p)
}

// getNextRunnable is kernel-ipc §4.4.
func getNextRunnable(k *call) object {
	start := k.flag("start", false)
	if k.bad != nil {
		return nil
	}
	m := k.model
	var best *proc
	for _, p := range m.procs {
		if p.state == "READY" && !p.leased && (best == nil || before(p, best)) {
			best = p
		}
	}
	if best == nil {
		k.refuse("NOT_FOUND", "No runnable processes")
		return nil
	}
	if start {
		m.enter(best, "RUNNING")
		m.emitChanged(best, "READY", "")
	} else {
		best.leased, best.leaseEnd = true, m.ms+m.set.lease
	}
	return m.pcb(best)
}

func before(a, b *proc) bool {
	pa, pb := slices.Index(priorities, a.priority), slices.Index(priorities, b.priority)
	return pa < pb || pa == pb && a.readied < b.readied
}

// transitionState is kernel-ipc §4.5.
func transitionState(k *call) object {
	pid := k.requiredID("pid")
	text, ok := k.field("new_state").(string)
	if !ok {
		k.invalid("Missing required field: new_state")
	}
	state, known := oneOf(states, text)
	if !known {
		k.invalid("Invalid process state: %s", text)
	}
	reason := k.text("reason")
	p := k.known(pid)
	if p == nil {
		return nil
	}
	old := p.state
	if !slices.Contains(transitions[old], state) {
		k.refuse("FAILED_PRECONDITION", "Invalid transition from %s to %s", old, state)
		return nil
	}
	k.model.enter(p, state)
	k.model.emitChanged(p, old, reason)
	if state == "TERMINATED" {
		k.model.emitTerminated(p, reason)
		k.model.processEnded(pid)
	}
	return k.model.pcb(p)
}

// terminateProcess is kernel-ipc §4.6.
func terminateProcess(k *call) object {
	pid, reason := k.requiredID("pid"), k.text("reason")
	p := k.known(pid)
	if p == nil {
		return nil
	}
	if old := p.state; !p.terminal() {
		k.model.enter(p, "TERMINATED")
		k.model.emitTerminated(p, reason)
		k.model.emitChanged(p, old, reason)
	}
	k.model.processEnded(pid)
	return k.model.pcb(p)
}

// sweep is the garbage collection of kernel-ipc §5.3 and envelope §5.3.
func (m *model) sweep() {
	for _, p := range slices.Clone(m.procs) {
		if p.terminal() && m.ms-p.completedAt > m.set.retention {
			m.remove(p)
		}
	}
	m.sweepEnvelopes()
}
