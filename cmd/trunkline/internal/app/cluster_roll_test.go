package app

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"trunkline/engine/obs"
)

func note(t testing.TB, n obs.ClusterNode) []byte {
	t.Helper()
	text, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRoll: lags are those behind the owner, whatever a node announces of that.
func TestRoll(t *testing.T) {
	r := new(roll)
	strange := uint64(99)
	for _, n := range []obs.ClusterNode{
		{Node: "n1", Role: obs.RoleOwner, Index: 10, Admin: "a:1"}, {Node: "n2", Role: obs.RoleStandby, Index: 4, Lag: &strange}, {Node: "n3", Role: obs.RoleStandby, Index: 12},
	} {
		if err := r.heard(note(t, n), 0); err != nil {
			t.Fatal(err)
		}
	}
	list := func(owner string, now time.Duration) (text string) {
		own := obs.ClusterNode{Node: "n3", Role: obs.RoleStandby, Index: 9, Seen: true}
		for _, n := range r.list(&own, []string{"n1", "n3", "n4"}, owner, int64(now)) {
			lag := "-"
			if n.Lag != nil {
				lag = fmt.Sprint(*n.Lag)
			}
			text += fmt.Sprintf("%s %s %t %s, ", n.Node, n.Role, n.Seen, lag)
		}
		return text
	}
	for _, f := range []struct {
		owner string
		now   time.Duration
		want  string
	}{
		{"n1", seenFor - 1, "n1 owner true 0, n2 standby true 6, n3 standby true 1, n4  false -, "},
		{"n1", seenFor, "n1 owner false 0, n2 standby false 6, n3 standby true 1, n4  false -, "},
		{"n4", 1, "n1 owner true -, n2 standby true -, n3 standby true -, n4  false -, "},
		{"", 1, "n1 owner true -, n2 standby true -, n3 standby true -, n4  false -, "},
	} {
		if got := list(f.owner, f.now); got != f.want {
			t.Errorf("%q, want %q", got, f.want)
		}
	}
	if r.admin("n1") != "a:1" || r.admin("n4") != "" {
		t.Error("another admin address")
	}
}

// TestRollLimits: it is bounded in number and in time.
func TestRollLimits(t *testing.T) {
	r := new(roll)
	for i := range maxRoll {
		if err := r.heard(note(t, obs.ClusterNode{Node: fmt.Sprint(i)}), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	has := func(name string) bool { _, ok := r.nodes[name]; return ok }
	if len(r.nodes) != maxRoll {
		t.Errorf("%d nodes", len(r.nodes))
	}
	if err := r.heard(note(t, obs.ClusterNode{Node: "more"}), maxRoll); err != nil || len(r.nodes) != maxRoll || has("0") || !has("1") || !has("more") {
		t.Errorf("%d nodes, %v", len(r.nodes), err)
	}
	end := int64(keptFor) + 1
	if err := r.heard(note(t, obs.ClusterNode{Node: "more"}), end); err != nil || !has("1") {
		t.Errorf("a node is forgotten early: %v", err)
	}
	if err := r.heard(note(t, obs.ClusterNode{Node: "more"}), end+1); err != nil || has("1") || !has("2") {
		t.Errorf("a node is never forgotten: %v", err)
	}
	for _, text := range []string{"", "{}", `{"node":1}`, "[]"} {
		if r.heard([]byte(text), 0) == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// FuzzAnnouncement: whatever nodes send, at most maxRoll are kept, each under a name.
func FuzzAnnouncement(f *testing.F) {
	lag := uint64(1)
	f.Add(note(f, obs.ClusterNode{Node: "n1", Role: obs.RoleOwner, Index: 10, Lag: &lag}))
	f.Add([]byte(`{"node":"a","heard_seconds":1e308,"seen":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := new(roll)
		err := r.heard(text, 1)
		own := obs.ClusterNode{Node: "own"}
		list := r.list(&own, nil, "own", 1)
		if (err == nil) != (len(r.nodes) == 1) || len(list) > 2 {
			t.Errorf("%v, %+v", err, list)
		}
		for _, n := range list {
			if n.Node == "" || n.Lag != nil && n.Node != "own" && n.HeardSeconds == nil {
				t.Errorf("%+v", n)
			}
		}
	})
}
