package toolhost

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"trunkline/handlers/toolhost/tool"
)

func TestEvents(t *testing.T) {
	r := newRig(t, func(c *Config) { c.EnforceLeases = EnforceOn })
	p := r.openAs(Stdin, "who")
	f := func(line, want string) {
		t.Helper()
		p.ask(line)
		if got := strings.TrimSuffix(r.events.take(true), "\n"); got != want {
			t.Errorf("%s\n got %s\nwant %s", line, got, want)
		}
	}
	finished := func(aid, status, hit, kind, id string) string {
		return `toolhost.tool.finished {"aid":"` + aid + `","status":"` + status + `","duration_us":0,"idempotent_hit":` + hit + `,"error_type":"` + kind + `","request_id":` + id + `}`
	}
	f(`{"aid":"AID.NOPE.v1"}`, "")
	f(`{"aid":"AID.NOOP.v1","request_id":"a\n"}`, finished("AID.NOOP.v1", "OK", "false", "", `"a\n"`))
	f(keyed("AID.AWAY.v1", "k", `,"request_id":-7`), finished("AID.AWAY.v1", "OK", "false", "", `-7`))
	f(keyed("AID.AWAY.v1", "k", ``), finished("AID.AWAY.v1", "OK", "true", "", `""`))
	f(keyed("AID.PANIC.v1", "k", ``), finished("AID.PANIC.v1", "TOOL_ERROR", "false", "exception", `""`))
	f(keyed("AID.PANIC.v1", "k", ``), finished("AID.PANIC.v1", "TOOL_ERROR", "true", "exception", `""`))

	token := p.lease(`"tool_aid":"*","tier":1,"ttl_ms":5000`)
	sum := sha256.Sum256([]byte(token))
	fp := hex.EncodeToString(sum[:4])
	if got, want := r.events.take(true), `toolhost.lease.issued {"token_fp":"`+fp+`","tool_aid":"*","tier":1,"ttl_ms":5000,"principal":"who"}`+"\n"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	f(`{"aid":"AID.EXEC.v1","_lease_token":"`+token+`"}`,
		`toolhost.lease.rejected {"token_fp":"`+fp+`","tool_aid":"AID.EXEC.v1","tier":2,"aid":"AID.EXEC.v1","reason":"tier mismatch: lease=1 tool=2"}`)
	f(`{"aid":"AID.WRITE.v1","_lease_token":"`+token+`"}`,
		`toolhost.lease.consumed {"token_fp":"`+fp+`","tool_aid":"AID.WRITE.v1","tier":1,"aid":"AID.WRITE.v1"}`+"\n"+finished("AID.WRITE.v1", "OK", "false", "", `""`))
	f(`{"aid":"AID.WRITE.v1"}`, "")
}

func TestEventsOfWorkers(t *testing.T) {
	f := func(e Event, want string) {
		t.Helper()
		if got := e.Name + " " + string(e.Payload); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	f(BreakerEvent("A", tool.BreakerOpen, 5), `toolhost.breaker.opened {"aid":"A","failures":5}`)
	f(BreakerEvent("A", tool.BreakerHalfOpen, 5), `toolhost.breaker.half_open {"aid":"A","failures":5}`)
	f(WorkerStarted("A", 7), `toolhost.worker.started {"aid":"A","pid":7}`)
	f(WorkerExited("A", 7, 137, "kill\n"), `toolhost.worker.exited {"aid":"A","pid":7,"exit_code":137,"reason":"kill\n"}`)
}
