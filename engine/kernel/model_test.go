package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// model is the kernel written plainly: maps, slices and full scans.
type model struct {
	cfg      Config
	nowMs    int64
	procs    map[string]*mproc
	seq      uint64
	ready    uint64
	done     uint64
	defaults Quota
	logs     map[string]*mlog
	activity int
	events   []string
}

type mproc struct {
	pid, user string
	prio      Priority
	state     State
	created   uint64
	ready     uint64 // order of entry into READY
	out       bool   // handed out
	leaseEnd  int64
	usage     Usage
	quota     Quota
	ranMs     int64
	sinceMs   int64
	completed int64
	done      uint64 // order of completion
}

type mlog struct {
	stamps   []int64
	activity int
}

func newModel(cfg Config) *model {
	return &model{cfg: cfg, procs: map[string]*mproc{}, logs: map[string]*mlog{}, defaults: cfg.Defaults}
}

func (m *model) tick() {
	for _, p := range m.procs {
		if p.out && m.cfg.DequeueLease > 0 && p.leaseEnd <= m.nowMs {
			p.out = false
		}
	}
}

// all returns the processes that keep(p) in ascending order of key(p).
func (m *model) all(keep func(*mproc) bool, key func(*mproc) uint64) (ps []*mproc) {
	for _, p := range m.procs {
		if keep(p) {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, func(a, b *mproc) int { return cmp.Compare(key(a), key(b)) })
	return ps
}

func (m *model) terminal() []*mproc {
	return m.all(func(p *mproc) bool { return p.state.terminal() }, func(p *mproc) uint64 { return p.done })
}

func (m *model) runnable() []*mproc {
	return m.all(func(p *mproc) bool { return p.state == Ready && !p.out },
		func(p *mproc) uint64 { return uint64(p.prio)<<32 | p.ready })
}

func (m *model) create(pid, user string, prio Priority, q QuotaPatch, noSchedule bool) (Result, RateDecision) {
	m.tick()
	if m.procs[pid] != nil {
		return AlreadyExists, RateDecision{}
	}
	full := len(m.procs) >= m.cfg.MaxProcesses
	if full && len(m.terminal()) == 0 {
		return TableFull, RateDecision{}
	}
	d := m.rate(user, true)
	if !d.Allowed {
		return RateLimited, d
	}
	if full {
		delete(m.procs, m.terminal()[0].pid)
	}
	m.seq++
	p := &mproc{pid: pid, user: user, prio: prio, created: m.seq, quota: m.defaults}
	for i := range p.quota {
		if q.Set&(1<<i) != 0 {
			p.quota[i] = q.Values[i]
		}
	}
	m.procs[pid] = p
	if !noSchedule {
		m.enter(p, Ready)
	}
	m.events = append(m.events, "process.created "+pid)
	return OK, d
}

func (m *model) enter(p *mproc, s State) {
	if p.state == Running {
		p.ranMs += m.nowMs - p.sinceMs
	}
	switch s {
	case Ready:
		m.ready++
		p.ready = m.ready
	case Running:
		p.sinceMs = m.nowMs
	case Terminated:
		m.done++
		p.completed, p.done = m.nowMs, m.done
	}
	p.state, p.out = s, false
}

func (m *model) changed(p *mproc, old State) {
	m.events = append(m.events, fmt.Sprintf("process.state_changed %s %v %v", p.pid, old, p.state))
}

func (m *model) schedule(pid string) Result {
	m.tick()
	p := m.procs[pid]
	switch {
	case p == nil:
		return NotFound
	case p.state == StateNew:
		m.enter(p, Ready)
		m.changed(p, StateNew)
	case p.state == Ready:
		p.out = false
	default:
		return NotSchedulable
	}
	return OK
}

func (m *model) next(start bool) (string, Result) {
	m.tick()
	ps := m.runnable()
	if len(ps) == 0 {
		return "", NoRunnable
	}
	p := ps[0]
	if start {
		m.enter(p, Running)
		m.changed(p, Ready)
	} else {
		p.out, p.leaseEnd = true, m.nowMs+m.cfg.DequeueLease.Milliseconds()
	}
	return p.pid, OK
}

func (m *model) transition(pid string, to State) Result {
	m.tick()
	p := m.procs[pid]
	if p == nil {
		return NotFound
	}
	allowed := map[State][]State{StateNew: {Ready, Terminated}, Ready: {Running, Terminated},
		Running: {Ready, Waiting, Blocked, Terminated}, Waiting: {Ready, Terminated}, Blocked: {Ready, Terminated}, Terminated: {Zombie}}
	if !slices.Contains(allowed[p.state], to) {
		return BadTransition
	}
	old := p.state
	m.enter(p, to)
	m.changed(p, old)
	if to == Terminated {
		m.events = append(m.events, "process.terminated "+pid)
	}
	return OK
}

func (m *model) terminate(pid string) Result {
	m.tick()
	p := m.procs[pid]
	if p == nil {
		return NotFound
	}
	if !p.state.terminal() {
		old := p.state
		m.enter(p, Terminated)
		m.events = append(m.events, "process.terminated "+pid)
		m.changed(p, old)
	}
	return OK
}

func (m *model) check(pid string) (reason string, res Result) {
	p := m.procs[pid]
	if p == nil {
		return "", NotFound
	}
	elapsed := p.ranMs
	if p.state == Running {
		elapsed += m.nowMs - p.sinceMs
	}
	u := &p.usage
	for _, row := range []struct {
		name string
		used int64
		f    QuotaField
	}{{"llm_calls", u[LLMCalls], MaxLLMCalls}, {"tool_calls", u[ToolCalls], MaxToolCalls}, {"agent_hops", u[AgentHops], MaxAgentHops},
		{"iterations", u[Iterations], MaxIterations}, {"tokens_in", u[TokensIn], MaxInputTokens},
		{"tokens_out", u[TokensOut], MaxOutputTokens}, {"elapsed_seconds", elapsed, TimeoutSeconds},
		{"inference_requests", u[InferenceRequests], MaxInferenceRequests},
		{"inference_input_chars", u[InferenceInputChars], MaxInferenceInputChars}} {
		limit, used := int64(p.quota[row.f]), fmt.Sprint(row.used)
		if row.f == TimeoutSeconds {
			limit, used = limit*1000, fmt.Sprint(float64(row.used)/1000)
		}
		if row.used > limit {
			m.events = append(m.events, "resource.exhausted "+pid)
			return fmt.Sprintf("Process %s quota exceeded: %s %s > %d", pid, row.name, used, p.quota[row.f]), OK
		}
	}
	return "", OK
}

func (m *model) rate(user string, record bool) RateDecision {
	log := m.logs[user]
	if log == nil {
		log = &mlog{}
	}
	within := func(window int64) (n int64) {
		for _, s := range log.stamps {
			if m.nowMs-s <= window {
				n++
			}
		}
		return n
	}
	rpm := int64(m.defaults[RateLimitRPM])
	d := RateDecision{Allowed: true, CurrentCount: within(60000), Limit: rpm}
	for _, w := range []struct {
		w     Window
		ms    int64
		limit int32
	}{{Hour, 3600000, m.defaults[RateLimitRPH]}, {Minute, 60000, m.defaults[RateLimitRPM]}, {Burst, 10000, m.defaults[RateLimitBurst]}} {
		if within(w.ms) >= int64(w.limit) {
			frees := log.stamps[len(log.stamps)-int(w.limit)] + w.ms
			d.Allowed, d.Window, d.WindowLimit = false, w.w, w.limit
			d.RetryAfter = max((frees-m.nowMs+999)/1000, 1)
			break
		}
	}
	if record {
		m.activity++
		log.activity = m.activity
		if d.Allowed {
			log.stamps = append(log.stamps, m.nowMs)
			d.CurrentCount++
			m.keep(user, log)
		}
	}
	if d.Allowed {
		d.Remaining = max(rpm-d.CurrentCount, 0)
	}
	return d
}

// keep stores user's log, dropping the least recently active other one if there are too many.
func (m *model) keep(user string, log *mlog) {
	if m.logs[user] == nil && len(m.logs) == m.cfg.MaxRateLimitUsers {
		oldest := ""
		for u, l := range m.logs {
			if oldest == "" || l.activity < m.logs[oldest].activity {
				oldest = u
			}
		}
		delete(m.logs, oldest)
	}
	m.logs[user] = log
}

func (m *model) sweep() (zombied, removed, logs int) {
	m.tick()
	for pid, p := range m.procs {
		if p.state.terminal() && m.nowMs-p.completed > m.cfg.ProcessRetention.Milliseconds() {
			if p.state == Terminated {
				zombied++
			}
			removed++
			delete(m.procs, pid)
		}
	}
	for user, l := range m.logs {
		if m.nowMs-l.stamps[len(l.stamps)-1] > time.Hour.Milliseconds() {
			logs++
			delete(m.logs, user)
		}
	}
	return zombied, removed, logs
}
