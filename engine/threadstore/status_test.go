package threadstore

import (
	"strings"
	"sync"
	"testing"
)

// TestStatusTable has threads §5.1 and the order of its refusals, for each role and reason.
func TestStatusTable(t *testing.T) {
	// Rows are from, columns are to: . done, = nothing changes, x never, a lacks authority, o lacks
	// an override.
	tables := map[*Actor][2][4]string{ // without an override, with one
		boss:  {{"=...", ".=xo", "xx=.", "xxx="}, {"=...", ".=x.", "xx=.", "xxx="}},
		alice: {{"=..a", "a=xa", "xx=a", "xxx="}, {"=..a", "a=xa", "xx=a", "xxx="}},
	}
	codes := map[byte]Code{'.': OK, '=': OK, 'x': BadTransition, 'a': NeedsAuthority, 'o': NeedsOverride}
	reasons := [2][]string{{"done", "human_override:", "coordinator_override: \t", " human_override:x", "Human_override:x"}, {"human_override:x", "coordinator_override: y"}}
	way := [4][]Status{{}, {Blocked}, {Resolved}, {Closed}} // to each status
	for actor, table := range tables {
		for override, rows := range table {
			for from := range Status(4) {
				for to := range Status(4) {
					for _, reason := range reasons[override] {
						r := newRig(t, Config{})
						id := r.create()
						for _, s := range way[from] {
							r.SetStatus(boss, id, &Change{To: s, Reason: "way"}, r.now)
						}
						r.now += 5
						before, _, _ := r.Get(boss, id)
						v, _, ref := r.SetStatus(actor, id, &Change{To: to, Reason: reason, Metadata: []byte(`{"a":1}`)}, r.now)
						after, _, _ := r.Get(boss, id)
						rule := rows[from][to]
						changed := rule == '.'
						if ref.Code != codes[rule] || (after.Status == to) != (changed || from == to) || (after.Updated == r.now) != changed ||
							!changed && after.Updated != before.Updated || ref.Code == OK && v.Updated != after.Updated {
							t.Errorf("%s: %s to %s for %q: %+v, then %s", actor.Agent, from, to, reason, ref, after.Status)
						}
						r.sync()
						payload := ""
						_, _, _ = r.Audit("w", 0, 10, string(id), func(ev *AuditEvent) bool {
							if ev.At == r.now {
								payload = string(ev.Payload)
							}
							return true
						})
						if (payload != "") != (ref.Code == OK) || strings.Contains(payload, `"noop":true`) != (rule == '=') ||
							strings.Contains(payload, `"override":true`) != (changed && from == Blocked && to == Closed) || payload != "" && !strings.Contains(payload, `"metadata":{"a":1}`) {
							t.Errorf("%s to %s: audited as %s", from, to, payload)
						}
						_ = r.log.Close()
					}
				}
			}
		}
	}
}

// TestIncompatibleChanges: of two changes at once the second is judged by what the first has made.
func TestIncompatibleChanges(t *testing.T) {
	for range 50 {
		r := newRig(t, Config{})
		id := r.create()
		var running sync.WaitGroup
		var refs [2]Refusal
		for i, to := range []Status{Blocked, Resolved} {
			running.Go(func() { _, _, refs[i] = r.SetStatus(alice, id, &Change{To: to, Reason: "r"}, r.now) })
		}
		running.Wait()
		v, _, _ := r.Get(boss, id)
		first := 0
		if v.Status == Resolved {
			first = 1
		}
		if refs[first].Code != OK || refs[1-first].Code != BadTransition || refs[1-first].From != v.Status {
			t.Fatalf("%s after %+v", v.Status, refs)
		}
		_ = r.log.Close()
	}
}
