package envelope

// goals is the goal bookkeeping of one step: read when it is needed, written once at the end.
type goals struct {
	loaded, allSet, remainingSet, statusSet bool
	// tooMany means that there are more goals than maxElements.
	tooMany bool

	all, remaining [][]byte
	known, open    nameSet // of all, and of remaining; a goal that was reached stays in open
	status         []pair  // raw is the value's encoding
	statusOf       nameSet // indexes into status
}

// The statuses that the engine gives.
const (
	pending   = "pending"
	satisfied = "satisfied"
)

func (g *goals) reset() {
	g.loaded, g.allSet, g.remainingSet, g.statusSet, g.tooMany = false, false, false, false, false
	g.all, g.remaining, g.status = recycle(g.all), recycle(g.remaining), recycle(g.status)
	g.known.reset()
	g.open.reset()
	g.statusOf.reset()
}

// load reads the three members, once.
func (g *goals) load(e *Env) {
	if g.loaded {
		return
	}
	g.loaded = true
	g.all = e.strings(AllGoals, g.all)
	for _, name := range g.all {
		g.known.add(name)
	}
	g.remaining = e.strings(RemainingGoals, g.remaining)
	for _, name := range g.remaining {
		g.open.add(name)
	}
	v := e.Value(GoalCompletionStatus)
	if v.Kind != Map {
		return
	}
	it := openMap(e.form, v.Raw)
	for it.next() {
		if before := g.statusOf.add(e.unescape(it.name)); before >= 0 {
			g.status[before].raw = it.v.Raw
		} else {
			g.status = append(g.status, pair{spelled: it.spelled, raw: it.v.Raw})
		}
	}
}

func (g *goals) setStatus(e *Env, name []byte, status string) {
	at := g.statusOf.add(name)
	if at >= 0 {
		if was, _ := e.Str(valueOf(e.form, g.status[at].raw)); string(was) == status {
			return
		}
	}
	raw := e.keep(encodeText(e.arena, e.form, status))
	if at >= 0 {
		g.status[at].raw, g.statusSet = raw, true
		return
	}
	g.status = append(g.status, pair{spelled: e.spell(name), raw: raw})
	g.statusSet = true
}

// done reports whether a goal's status means that nothing remains to do (envelope §3.2).
func (g *goals) done(e *Env, name []byte) bool {
	at := g.statusOf.find(name)
	if at < 0 {
		return false
	}
	s, _ := e.Str(valueOf(e.form, g.status[at].raw))
	return string(s) == "satisfied" || string(s) == "complete"
}

// normalise fills in what is missing: the remaining goals, and the status of each goal (envelope
// §3.2).
func (g *goals) normalise(e *Env) {
	if e.f[AllGoals].raw == nil {
		return
	}
	g.load(e)
	if e.f[RemainingGoals].raw == nil {
		for _, name := range g.all {
			if !g.done(e, name) {
				g.remaining, g.remainingSet = append(g.remaining, name), true
				g.open.add(name)
			}
		}
	}
	for _, name := range g.all {
		if g.statusOf.find(name) >= 0 {
			continue
		}
		if g.open.find(name) >= 0 {
			g.setStatus(e, name, pending)
		} else {
			g.setStatus(e, name, satisfied)
		}
	}
}

// add appends the new ones of list, all of them pending.
func (g *goals) add(e *Env, list Value) {
	g.load(e)
	it := openList(e.form, list.Raw)
	for it.next() {
		if it.v.Kind != String {
			continue
		}
		if g.tooMany = g.tooMany || len(g.all) >= maxElements || len(g.status) >= maxElements; g.tooMany {
			return
		}
		name := e.textOf(it.v)
		if g.known.add(name) >= 0 {
			continue
		}
		g.all, g.allSet = append(g.all, name), true
		if g.open.add(name) < 0 {
			g.remaining, g.remainingSet = append(g.remaining, name), true
		}
		g.setStatus(e, name, pending)
	}
}

func (g *goals) satisfy(e *Env, list [][]byte) {
	g.load(e)
	var reached nameSet
	for _, name := range list {
		reached.add(name)
		if g.tooMany = g.tooMany || len(g.status) >= maxElements && g.statusOf.find(name) < 0; g.tooMany {
			return
		}
		g.setStatus(e, name, satisfied)
	}
	kept := g.remaining[:0]
	for _, name := range g.remaining {
		if reached.find(name) < 0 {
			kept = append(kept, name)
		} else {
			g.remainingSet = true
		}
	}
	g.remaining = kept
}

func (g *goals) store(e *Env) {
	if g.allSet {
		e.setStrings(AllGoals, g.all)
	}
	if g.remainingSet {
		e.setStrings(RemainingGoals, g.remaining)
	}
	if g.statusSet {
		e.setMap(GoalCompletionStatus, g.status)
	}
}
