package threadstore

import (
	"testing"

	"trunkline/engine/journal"
)

// TestRefusalsWait: a refusal that shows a change waits for it. Else a crash could take back its
// reason.
func TestRefusalsWait(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	var change journal.Index
	wait := func(name string, ref Refusal, want Code) {
		t.Helper()
		if ref.Code != want || ref.Index < change || change == 0 {
			t.Errorf("%s: %+v, want code %d and an index from %d on", name, ref, want, change)
		}
	}
	change = r.post(alice, id, "x", "k").Index
	_, ref := r.Post(alice, id, textPost("y", "k"), r.now)
	wait("key of a message", ref, KeyReused)
	rec, _ := r.Ack(&Actor{Workspace: "w", Agent: "alice", Seen: change}, id, 1, r.now)
	change = rec.Index
	_, ref = r.Ack(alice, id, 0, r.now)
	wait("cursor", ref, AckBehind)
	n := NewThread{Title: []byte("t"), Key: []byte("k")}
	_, rec, _ = r.Create(boss, &n, r.now)
	change, n.Digest[0] = rec.Index, 1
	_, _, ref = r.Create(boss, &n, r.now)
	wait("key of a thread", ref, KeyReused)
	_, rec, _ = r.trigger(id, "r", "k")
	change = rec.Index
	_, _, ref = r.trigger(id, "other", "k")
	wait("key of a job", ref, KeyReused)
	_, rec, _ = r.SetStatus(boss, id, &Change{To: Closed, Reason: "r"}, r.now)
	change = rec.Index
	if p, _ := r.Post(alice, id, textPost("x", "k"), r.now); !p.Replay || p.Status != Closed || p.Index < change {
		t.Errorf("a repetition shows a status before it is durable: %+v", p)
	}
	_, ref = r.Post(alice, id, textPost("y", ""), r.now)
	wait("message for a closed thread", ref, ThreadClosed)
	_, _, ref = r.trigger(id, "r", "")
	wait("job of a closed thread", ref, ThreadClosed)
	_, _, ref = r.SetStatus(boss, id, &Change{To: Active, Reason: "r"}, r.now)
	wait("transition", ref, BadTransition)
}
