package toolhost

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var tokenText = regexp.MustCompile(`"token_id":"(lease_[0-9a-f]{32})"`)

var runText = regexp.MustCompile(`"run_id":"[0-9a-f]{32}"`)

// lease has a token issued.
func (p *peer) lease(members string) string {
	p.t.Helper()
	reply := p.ask(`{"aid":"_lease.issue",` + members + `}`)
	m := tokenText.FindStringSubmatch(reply)
	if m == nil {
		p.t.Fatalf("no lease for %s: %s", members, reply)
	}
	return m[1]
}

func TestLeaseIssue(t *testing.T) {
	r := newRig(t, nil)
	p := r.open(Stdin)
	f := func(members, want string) {
		t.Helper()
		reply := p.ask(`{"aid":"_lease.issue",` + members + `}`)
		if got := tokenText.ReplaceAllString(reply, `"token_id":"T"`); got != want {
			t.Errorf("%s\n got %s\nwant %s", members, got, want)
		}
	}
	good := func(members, rest string) { t.Helper(); f(members, `{"ok":true,"token_id":"T","tool_aid":`+rest+`}`) }
	good(`"tool_aid":"AID.WRITE.v1"`, `"AID.WRITE.v1","tier":1,"ttl_ms":10000`)
	good(`"tool_aid":"AID.WRITE.v1","tier":3,"ttl_ms":5000`, `"AID.WRITE.v1","tier":3,"ttl_ms":5000`)
	good(`"tool_aid":"AID.NOOP.v1","ttl_ms":-9223372036854775808`, `"AID.NOOP.v1","tier":0,"ttl_ms":1000`)
	good(`"tool_aid":"*","tier":0,"ttl_ms":300001`, `"*","tier":0,"ttl_ms":300000`)
	good(`"tool_aid":"AID.NOPE\u0022.v1","tier":2,"request_id":7`, `"AID.NOPE\".v1","tier":2,"ttl_ms":10000,"request_id":7`)
	bad := func(members, why string) { t.Helper(); f(members, fault("invalid field: "+why)) }
	bad(`"x":1`, "tool_aid: must be a non-empty string")
	bad(`"tool_aid":""`, "tool_aid: must be a non-empty string")
	bad(`"tool_aid":5`, "tool_aid: must be a non-empty string")
	bad(`"tool_aid":"`+strings.Repeat("a", 257)+`","tier":1`, "tool_aid: too long")
	bad(`"tool_aid":"*"`, "tier: required for a tool that is not registered")
	bad(`"tool_aid":"AID.NOPE.v1"`, "tier: required for a tool that is not registered")
	for _, tier := range []string{"-1", "4", "1.5", `"1"`, "[]"} {
		bad(`"tool_aid":"*","tier":`+tier, "tier: must be an integer from 0 to 3")
	}
	bad(`"tool_aid":"AID.EXEC.v1","tier":1`, "tier: below the tool's tier")
	for _, ttl := range []string{"1.5", `"1"`, "9223372036854775808"} {
		bad(`"tool_aid":"*","tier":1,"ttl_ms":`+ttl, "ttl_ms: must be an integer")
	}
}

// Each check of the verification with its reason, in its order (D23).
func TestLeaseReasons(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases = EnforceOn })
	p := r.open(Stdin)
	use := func(aid, token, want string) {
		t.Helper()
		p.want(`{"aid":"`+aid+`","_lease_token":"`+token+`"}`, want)
	}
	rejected := func(aid, token, reason string) {
		t.Helper()
		use(aid, token, `{"ok":false,"error":"lease_rejected","reason":"`+reason+`"}`)
	}
	required := `{"ok":false,"error":"lease_required","tier":1,"aid":"AID.WRITE.v1"}`
	p.want(`{"aid":"AID.WRITE.v1"}`, required)
	use("AID.WRITE.v1", "", required)
	p.want(`{"aid":"AID.EXEC.v1","_lease_token":null}`, `{"ok":false,"error":"lease_required","tier":2,"aid":"AID.EXEC.v1"}`)
	use("AID.COUNT.v1", "any", okReply)
	rejected("AID.WRITE.v1", "lease_0", "not found")

	write := p.lease(`"tool_aid":"AID.WRITE.v1"`)
	rejected("AID.EXEC.v1", write, "tool mismatch: expected=AID.WRITE.v1 got=AID.EXEC.v1")
	any1 := p.lease(`"tool_aid":"*","tier":1`)
	rejected("AID.EXEC.v1", any1, "tier mismatch: lease=1 tool=2")
	use("AID.COUNT.v1", write, okReply) // tier 0 consumes nothing
	use("AID.WRITE.v1", write, okReply)
	rejected("AID.WRITE.v1", write, "already consumed")
	rejected("AID.EXEC.v1", write, "already consumed")
	use("AID.WRITE.v1", any1, okReply)

	edge, late := p.lease(`"tool_aid":"*","tier":3,"ttl_ms":1000`), p.lease(`"tool_aid":"*","tier":3,"ttl_ms":1000`)
	r.pass(time.Second)
	use("AID.EXEC.v1", edge, okReply)
	r.pass(1)
	for range 2 {
		rejected("AID.WRITE.v1", late, "expired")
		rejected("AID.WRITE.v1", edge, "expired")
		r.pass(300*time.Second - 1)
	}
	rejected("AID.WRITE.v1", late, "not found")
	if got := r.runs.Load(); got != 5 {
		t.Errorf("%d runs, want 5", got)
	}
}

// Two parsers could disagree about which token, tool or tier counts (toolhost §2.4), so neither
// does: the one that asks learns no more.
func TestOperationsRefuseRepeatedMembers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.OperatorToken, c.APIToken = "op", "tk" })
	f := func(line, name string) {
		t.Helper()
		r.open(TCP).want(line, fault("duplicate key: "+name))
	}
	f(`{"aid":"_auth","token":"bad","token":"tk"}`, "token")
	f(`{"aid":"_auth","token":"bad","tok\u0065n":"tk"}`, "token")
	p := r.open(TCP)
	p.want(`{"aid":"_auth","token":"tk"}`, `{"ok":true,"principal":"somebody"}`)
	for _, twice := range []string{`"tool_aid":"a","tool_aid":"*"`, `"tier":1,"tier":3`, `"ttl_ms":1,"ttl_ms":1`, `"_operator_token":"x","_operator_token":"op"`} {
		name := strings.SplitN(twice, `"`, 3)[1]
		p.want(`{"aid":"_lease.issue",`+twice+`}`, fault("duplicate key: "+name))
	}
	p.want(`{"aid":"_lease.gc","_operator_token":"x","_operator_token":"op"}`, fault("duplicate key: _operator_token"))
	p.want(`{"aid":"_lease.gc","x":1,"x":2,"_operator_token":"op"}`, `{"ok":true,"active":0,"issued":0,"consumed":0,"rejected":0}`)
}

// However fast tokens are issued, the reasons of the latest 8,192 stay what they were (toolhost
// §4.4), and there are never more than 12,288.
func TestLeaseReasonsStayUnderLoad(t *testing.T) {
	var l leases
	e := &Entry{}
	e.AID, e.Tier = "AID.WRITE.v1", 1
	reason := func(now int64, token string) string {
		r := l.use(now, []byte(token), e, true)
		return r.fixed
	}
	var tokens []string
	now, most := int64(0), 0
	for range 5 {
		for range maxLeases {
			token, ok := l.issue(now, anyTool, 3, minLeaseTTL)
			if !ok {
				t.Fatalf("refused with %d tokens", len(l.tokens))
			}
			tokens, most = append(tokens, token), max(most, len(l.tokens))
		}
		if why := reason(now, tokens[len(tokens)-1]); why != "" {
			t.Fatal(why)
		}
		now += (minLeaseTTL + 1) * nsPerMs
	}
	if most != 3*maxLeases {
		t.Errorf("%d tokens at most, want %d", most, 3*maxLeases)
	}
	for i, want := range map[int]string{0: "not found", len(tokens) - 2*maxLeases: "expired", len(tokens) - 1: "expired"} {
		if got := reason(now, tokens[i]); got != want {
			t.Errorf("token %d: %q, want %q", i, got, want)
		}
	}
}

func TestLeaseCounts(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases = EnforceOn })
	p := r.open(Stdin)
	f := func(want string) {
		t.Helper()
		p.want(`{"aid":"_lease.gc"}`, `{"ok":true,`+want+`}`)
	}
	f(`"active":0,"issued":0,"consumed":0,"rejected":0`)
	a, _ := p.lease(`"tool_aid":"AID.WRITE.v1"`), p.lease(`"tool_aid":"AID.WRITE.v1","ttl_ms":20000`)
	p.ask(`{"aid":"AID.WRITE.v1"}`, `{"aid":"AID.WRITE.v1","_lease_token":"`+a+`"}`, `{"aid":"AID.WRITE.v1","_lease_token":"`+a+`"}`)
	f(`"active":1,"issued":2,"consumed":1,"rejected":1`)
	p.want(`{"aid":"AID.WRITE.v1","_lease_token":"`+a+`"}`, `{"ok":false,"error":"lease_rejected","reason":"not found"}`)
	r.pass(20 * time.Second)
	f(`"active":1,"issued":2,"consumed":1,"rejected":2`)
	r.pass(1)
	f(`"active":0,"issued":2,"consumed":1,"rejected":2`)
}

// The limit counts live tokens, and what is remembered beyond them is bounded as well.
func TestLeaseLimit(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Events = nil })
	p := r.open(Stdin)
	const line = `{"aid":"_lease.issue","tool_aid":"*","tier":1,"ttl_ms":1000}`
	for range 4 {
		for range maxLeases {
			p.lease(`"tool_aid":"*","tier":1,"ttl_ms":1000`)
		}
		p.want(line, fault("lease_limit"))
		if n := len(r.srv.leases.tokens); n > 3*maxLeases {
			t.Fatalf("%d tokens are kept", n)
		}
		r.pass(time.Second + 1)
	}
	p.lease(`"tool_aid":"*","tier":1`)
}

// Of any number of concurrent uses one wins.
func TestLeaseIsUsedOnce(t *testing.T) {
	r := newRig(t, nil)
	token, ok := r.srv.leases.issue(0, "*", 3, 1000)
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if no := r.srv.leases.use(0, []byte(token), r.srv.cfg.Registry.find([]byte("AID.EXEC.v1")), true); !no.refuses() {
				won.Add(1)
			}
		})
	}
	if wg.Wait(); !ok || won.Load() != 1 {
		t.Errorf("%d uses", won.Load())
	}
}

// Authority over leases (D21), and what a connection may try.
func TestOperator(t *testing.T) {
	const wrong, right = `{"aid":"_lease.gc","_operator_token":"oq"}`, `{"aid":"_lease.gc","_operator_token":"op"}`
	counts := `{"ok":true,"active":0,"issued":0,"consumed":0,"rejected":0}`
	f := func(token string, via Transport, line, want string) {
		t.Helper()
		newRig(t, func(c *Config) { c.OperatorToken = token }).open(via).want(line, want)
	}
	f("", Stdin, wrong, counts)
	f("", Unix, right, fault("lease_forbidden"))
	f("", TCP, `{"aid":"_lease.issue","tool_aid":5}`, fault("lease_forbidden"))
	for _, via := range []Transport{Stdin, Unix, TCP} {
		f("op", via, right, counts)
		f("op", via, wrong, fault("lease_forbidden"))
		f("op", via, `{"aid":"_lease.gc"}`, fault("lease_forbidden"))
		f("op", via, `{"aid":"_lease.gc","_operator_token":["op"]}`, fault("lease_forbidden"))
	}
	for _, token := range []string{"", "op"} {
		p := newRig(t, func(c *Config) { c.OperatorToken = token }).open(Unix)
		for i := range maxOperatorFailures {
			if p.closed {
				t.Fatalf("closed after %d", i)
			}
			p.want(wrong, fault("lease_forbidden"))
			if token != "" && i < maxOperatorFailures-1 {
				p.want(right, counts)
			}
		}
		if !p.closed {
			t.Error("still open")
		}
	}
}

func TestEnforcement(t *testing.T) {
	f := func(e Enforcement, want ...Transport) {
		t.Helper()
		for _, via := range []Transport{Stdin, Unix, TCP} {
			if e.on(via) != slices.Contains(want, via) {
				t.Errorf("%d: transport %d", e, via)
			}
		}
	}
	f(EnforceTCP, TCP)
	f(EnforceOn, Stdin, Unix, TCP)
	f(EnforceOff)
	r := newRig(t, func(c *Config) { c.EnforceLeases = EnforceTCP })
	r.open(Unix).want(`{"aid":"AID.WRITE.v1","_lease_token":"ignored"}`, okReply)
	// Over TCP the refusal has how to get one.
	const required = `{"ok":false,"error":"lease_required","tier":1,"aid":"AID.WRITE.v1","hint":"`
	r.open(TCP).want(`{"aid":"AID.WRITE.v1"}`,
		required+`this server issues leases on stdin only: MACHINA_OPERATOR_TOKEN lets operators issue them here, MACHINA_LEASE_ENFORCE=0 asks for none"}`)
	r = newRig(t, func(c *Config) { c.EnforceLeases, c.OperatorToken = EnforceTCP, "op" })
	r.open(TCP).want(`{"aid":"AID.WRITE.v1"}`,
		required+`an operator gets a token for one call by _lease.issue, with _operator_token; the call carries it in _lease_token"}`)
}
