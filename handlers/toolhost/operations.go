package toolhost

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/selector"
)

// operation is a request about the server (toolhost §4.3 step 4). handle appends the reply, or
// starts run, which makes it off the loop, and has the session await ownCall.
type operation struct {
	row    int          // of the meter, behind those of the tools
	names  *jsonx.Names // its own members, none of which may be repeated (toolhost §2.4)
	handle func(c *call, line, out []byte) []byte
	run    func(ctx context.Context, c *call) // off the loop: it makes c.reply
}

const maxOwnNames = 4

var operations = map[string]*operation{
	"_health":      {row: 0, handle: (*call).health},
	"_stats":       {row: 1, handle: (*call).stats},
	"_auth":        {row: 2, handle: (*call).auth, names: jsonx.NewNames("token")},
	"_tools.list":  {row: 3, handle: (*call).listTools},
	"_lease.issue": {row: 4, handle: (*call).issueLease, names: jsonx.NewNames("tool_aid", "tier", "ttl_ms", "_operator_token")},
	"_lease.gc":    {row: 5, handle: (*call).collectLeases, names: jsonx.NewNames("_operator_token")},
	"_run.open":    {row: 6, handle: (*call).openRun},
	"_run.select":  {row: 7, handle: (*call).selectInRun, run: runSelect},
	"_run.close":   {row: 8, handle: (*call).closeRun},
}

func openToAll(aid []byte) bool { return string(aid) == "_health" || string(aid) == "_auth" }

func (c *call) operate(op *operation, line, out []byte) []byte {
	if _, ok := c.req.requestID(); !ok {
		return appendFault(out, errRequestID, c.id)
	}
	if op.names != nil {
		var room [maxOwnNames]jsonx.Member
		if r, which := op.names.Scan(line, maxDepth, room[:]); r == jsonx.ScanDuplicate {
			return appendFaultAbout(out, "duplicate key: ", []byte(op.names.Name(which)), c.id)
		}
	}
	c.op, c.row = op, c.srv.cfg.Registry.len()+op.row
	return op.handle(c, line, out)
}

func (c *call) health(_, out []byte) []byte {
	b := jsonx.Build(out).Bool("ok", true).Text("spec_version", specVersion)
	return c.id.end(b.Int("tools", int64(c.srv.cfg.Registry.len())))
}

func (c *call) stats(_, out []byte) []byte {
	st := c.srv.Stats()
	return c.id.end(jsonx.Build(out).Bool("ok", true).Int("sessions", st.Sessions).Int("in_flight", st.InFlight).
		Int("idempotency_entries", st.IdempotencyEntries).Int("idempotency_hits", st.IdempotencyHits).
		Int("lease_active", st.LeaseActive).Int("breakers_open", st.BreakersOpen).Int("workers", st.Workers))
}

func (c *call) listTools(_, out []byte) []byte {
	return c.id.end(c.srv.cfg.Registry.appendList(out, true, nil))
}

// same compares secrets without revealing where they differ.
func same(a, b []byte) bool {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// auth is toolhost §4.6.
func (c *call) auth(line, out []byte) []byte {
	s := c.s
	if s.via == TCP && c.srv.cfg.APIToken != "" {
		token, _ := member(line, "token").Text()
		if !same(token, []byte(c.srv.cfg.APIToken)) {
			s.failures++
			return appendFault(out, "auth_failed", c.id)
		}
		s.until = 0
	}
	return c.id.end(jsonx.Build(out).Bool("ok", true).Bytes("principal", s.principal))
}

// member returns a member of a checked line, the last one of that name.
func member(line []byte, name string) jsonx.Value {
	var v [1]jsonx.Value
	jsonx.Pick(line, []string{name}, v[:])
	return v[0]
}

// operator reports whether the request may issue and collect leases (D21); if not, it replies.
func (c *call) operator(line, out []byte) (_ []byte, ok bool) {
	s, want := c.s, c.srv.cfg.OperatorToken
	token, _ := member(line, "_operator_token").Text()
	if want == "" && s.via == Stdin || want != "" && same(token, []byte(want)) {
		return out, true
	}
	s.strange++
	return appendFault(out, "lease_forbidden", c.id), false
}

func (c *call) issueLease(line, out []byte) []byte {
	out, ok := c.operator(line, out)
	if !ok {
		return out
	}
	aid, tier, ttl, fault := c.leaseArgs(line)
	if fault != "" {
		return appendFault(out, fault, c.id)
	}
	token, ok := c.srv.leases.issue(c.s.now.Mono, aid, tier, ttl)
	if !ok {
		return appendFault(out, "lease_limit", c.id)
	}
	c.srv.leaseIssued(token, aid, tier, ttl, c.s.principal)
	return c.id.end(jsonx.Build(out).Bool("ok", true).Text("token_id", token).Text("tool_aid", aid).
		Int("tier", int64(tier)).Int("ttl_ms", ttl))
}

func (c *call) leaseArgs(line []byte) (aid string, tier int, ttl int64, fault string) {
	text, ok := member(line, "tool_aid").Text()
	switch {
	case !ok || len(text) == 0:
		return "", 0, 0, "invalid field: tool_aid: must be a non-empty string"
	case len(text) > maxAID:
		return "", 0, 0, "invalid field: tool_aid: too long"
	}
	aid = string(text)
	e := c.srv.cfg.Registry.find(text)
	switch v := member(line, "tier"); v.Kind {
	case jsonx.End, jsonx.Null:
		if e == nil {
			return "", 0, 0, "invalid field: tier: required for a tool that is not registered"
		}
		tier = e.Tier
	default:
		n, ok := jsonx.ParseInt(v.Raw)
		if v.Kind != jsonx.Number || !ok || n < 0 || n > 3 {
			return "", 0, 0, "invalid field: tier: must be an integer from 0 to 3"
		}
		if tier = int(n); e != nil && tier < e.Tier {
			return "", 0, 0, "invalid field: tier: below the tool's tier"
		}
	}
	ttl = defaultLeaseTTL
	if v := member(line, "ttl_ms"); v.Kind != jsonx.End && v.Kind != jsonx.Null {
		n, ok := jsonx.ParseInt(v.Raw)
		if v.Kind != jsonx.Number || !ok {
			return "", 0, 0, "invalid field: ttl_ms: must be an integer"
		}
		ttl = min(max(n, minLeaseTTL), maxLeaseTTL)
	}
	return aid, tier, ttl, ""
}

func (c *call) collectLeases(line, out []byte) []byte {
	out, ok := c.operator(line, out)
	if !ok {
		return out
	}
	n := c.srv.leases.gc(c.s.now.Mono)
	return c.id.end(jsonx.Build(out).Bool("ok", true).Int("active", n.active).Int("issued", n.issued).
		Int("consumed", n.consumed).Int("rejected", n.rejected))
}

func (c *call) openRun(line, out []byte) []byte {
	s := c.s
	r, why := selector.ReadOpen(line)
	switch {
	case why != "":
	case s.run != nil:
		why = "run already open"
	default:
		s.run, why = selector.Open(&selector.Config{Tools: c.srv.cfg.Registry.Descriptors(), Policy: c.srv.cfg.Policy}, r)
	}
	if why != "" {
		return appendFault(out, why, c.id)
	}
	c.srv.runOpened(s.run, r.GoalID)
	return c.id.end(s.run.AppendOpened(out))
}

// selectInRun is _run.select: a policy is a process, so it runs off the loop.
func (c *call) selectInRun(_, out []byte) []byte {
	s := c.s
	if s.run == nil {
		return appendFault(out, errNoRun, c.id)
	}
	if !c.srv.exec.admit() {
		return appendFault(out, errOverloaded, c.id)
	}
	c.keepID()
	c.before = s.lend()
	c.startAway(c.runAway)
	return out
}

func runSelect(ctx context.Context, c *call) {
	slots := c.srv.exec.slots
	if c.srv.cfg.Policy != nil {
		slots = c.srv.exec.long // a policy is a process, and may take seconds
	}
	c.place.x = &c.srv.exec
	if c.place.take(ctx, slots) != nil {
		c.reply = appendFault(c.reply[:0], "overloaded", c.id)
		return
	}
	defer c.place.free()
	run := c.s.run // the session is blocked: nothing else touches it
	step := run.Select(ctx, &c.before)
	c.reply = c.id.end(step.Append(c.reply[:0]))
	if len(c.reply) > maxReply {
		c.reply = appendFault(c.reply[:0], errTooLarge, c.id)
	}
	c.srv.selected(run, &step)
	c.runEnded = step.Ended
}

func (c *call) closeRun(_, out []byte) []byte {
	s := c.s
	if s.run == nil {
		return appendFault(out, errNoRun, c.id)
	}
	out = c.id.end(s.run.AppendClosed(out))
	s.endRun("close")
	return out
}

const runLost = "session end"

// endRun drops the open run, if there is one; how is the reason.
func (s *session) endRun(how string) {
	if s.run != nil {
		s.srv.runClosed(s.run, how)
		s.run = nil
	}
}
