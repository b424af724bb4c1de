package ops

import (
	"context"
	"strings"
	"testing"

	"trunkline/engine/obs"
)

// TestStandbysAreMarked: each answer of a node that does not own the journal has what it is.
func TestStandbysAreMarked(t *testing.T) {
	c := newConfig(t)
	f := func(want string) {
		t.Helper()
		for _, path := range []string{"/healthz", "/store", "/metrics", "/nope"} {
			if _, _, h := ask(c, "GET", path); h.Get(StandbyHeader) != want {
				t.Errorf("%s has %q, want %q", path, h.Get(StandbyHeader), want)
			}
		}
	}
	f("")
	var st *obs.Standing
	c.Standing = func() *obs.Standing { return st }
	f("")
	st = &obs.Standing{Node: "n2", Role: obs.RoleStandby, Owner: "n1", Index: 7}
	f("n2 is a standby of n1, at record 7")
	st.Role = obs.RoleOwner
	f("")
}

func TestCluster(t *testing.T) {
	c := newConfig(t)
	if code, _, _ := ask(c, "GET", "/cluster"); code != 404 {
		t.Errorf("%d without a cluster", code)
	}
	checked := false
	c.Cluster = func(_ context.Context, check bool) obs.Cluster {
		checked = check
		return obs.Cluster{Name: "demo", Nodes: []obs.ClusterNode{{Node: "n1"}}, ClusterPartition: obs.ClusterPartition{Role: obs.RoleOwner}}
	}
	code, body, _ := ask(c, "GET", "/cluster")
	for _, want := range []string{`"name":"demo"`, `"nodes":[{"node":"n1"`, `"heard_seconds":null,"lag":null}]`, `"partition":0,"role":"owner",`} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %s", code, body, want)
		}
	}
	for query, want := range map[string]bool{"": false, "?check=true": true, "?check=1": true, "?check=": false, "?check=maybe": false} {
		if code, _, _ := ask(c, "GET", "/cluster"+query); code != 200 || checked != want {
			t.Errorf("%q: %d, checked %v", query, code, checked)
		}
	}
}
