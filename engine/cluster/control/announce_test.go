package control

import (
	"encoding/json"
	"fmt"
	"strings"
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
		{Node: "n1", Role: obs.RoleOwner, Indexes: []uint64{10, 5}, Fences: []uint64{7, 0}, Admin: "a:1"}, {Node: "n2", Indexes: []uint64{4, 9}, Fences: []uint64{0, 8}, Lag: &strange},
		{Node: "n3", Role: obs.RoleStandby, Indexes: []uint64{12, 12}},
	} {
		if err := r.heard(note(t, n), 0); err != nil {
			t.Fatal(err)
		}
	}
	own := obs.ClusterNode{Node: "n3", Role: obs.RoleStandby, Indexes: []uint64{9, 5}, Fences: []uint64{0, 0}, Seen: true}
	list := func(owners []string, now time.Duration) (text string) {
		for _, n := range r.list(&own, []string{"n1", "n3", "n4"}, owners, int64(now)) {
			lag := "-"
			if n.Lag != nil {
				lag = fmt.Sprint(*n.Lag)
			}
			text += fmt.Sprintf("%s %s %t %s, ", n.Node, n.Role, n.Seen, lag)
		}
		return text
	}
	for _, f := range []struct {
		owners []string
		now    time.Duration
		want   string
	}{
		{[]string{"n1"}, seenFor - 1, "n1 owner true 0, n2  true 6, n3 standby true 1, n4  false -, "},
		{[]string{"n1"}, seenFor, "n1 owner false 0, n2  false 6, n3 standby true 1, n4  false -, "},
		{[]string{"n1", "n2"}, 1, "n1 owner true 4, n2  true 6, n3 standby true 5, n4  false -, "},
		{[]string{"n4"}, 1, "n1 owner true -, n2  true -, n3 standby true -, n4  false -, "},
		{[]string{"n1", ""}, 1, "n1 owner true -, n2  true -, n3 standby true -, n4  false -, "},
		{[]string{"n1", "n2", "n1"}, 1, "n1 owner true -, n2  true -, n3 standby true -, n4  false -, "},
	} {
		if got := list(f.owners, f.now); got != f.want {
			t.Errorf("%q, want %q", got, f.want)
		}
	}
	if missing, fence := r.behind(0, 9, "n1"); missing == nil || *missing != 1 || fence != 7 {
		t.Errorf("%v records behind n1, which has fence %d", missing, fence)
	}
	if missing, fence := r.behind(1, 10, "n2"); missing == nil || *missing != 0 || fence != 8 {
		t.Errorf("%v records behind n2, which has fence %d", missing, fence)
	}
	for _, unknown := range []string{"", "n4"} {
		if missing, fence := r.behind(0, 9, unknown); missing != nil || fence != 0 {
			t.Errorf("%d records behind %q", *missing, unknown)
		}
	}
	nodes := r.list(&own, nil, nil, 1)
	if _, fence := behind(nodes, 1, 0, "n2"); fence != 8 {
		t.Errorf("the fence of n2 is %d", fence)
	}
	if r.admin("n1") != "a:1" || r.admin("n4") != "" {
		t.Error("another admin address")
	}
}

// TestAnnouncementsFit: the longest one is one note.
func TestAnnouncementsFit(t *testing.T) {
	name, most := strings.Repeat("n", 64), make([]uint64, 64)
	for i := range most {
		most[i] = 1<<40 - 1 // a million records a second for two weeks
	}
	n := obs.ClusterNode{Node: name, Role: obs.RoleStandby, Addr: strings.Repeat("a", 255), Admin: strings.Repeat("a", 255), Version: name, Indexes: most, Fences: most, LeaseSeconds: 0.1, ElectionSeconds: 0.1}
	if size := len(note(t, n)); size > 4<<10 {
		t.Errorf("%d bytes", size)
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
	f.Add(note(f, obs.ClusterNode{Node: "n1", Role: obs.RoleOwner, Indexes: []uint64{10}, Fences: []uint64{1}, Lag: &lag}))
	f.Add([]byte(`{"node":"a","heard_seconds":1e308,"seen":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := new(roll)
		err := r.heard(text, 1)
		own := obs.ClusterNode{Node: "own", Indexes: []uint64{1}, Fences: []uint64{1}}
		list := r.list(&own, nil, []string{"own"}, 1)
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
