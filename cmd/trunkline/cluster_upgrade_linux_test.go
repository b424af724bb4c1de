package main

import (
	"net/http"
	"path/filepath"
	"testing"

	"trunkline/fuzz/kit"
)

// TestClusterUpgrade: the nodes of a cluster are replaced by those of another version, one after
// the other, the owner at last, while clients work. They lose connections, and nothing else. In
// between the cluster has both versions, and either may own the journal.
func TestClusterUpgrade(t *testing.T) {
	longBesideOthers(t)
	dir := t.TempDir()
	from, to := kit.Program(t, dir), filepath.Join(dir, "newer")
	kit.Build(t, to, "v1.0.1")
	older := versionOf(t, from)
	r := makeClusterRig(t, 3, t.TempDir, []string{soakSnapshot})
	for _, n := range r.nodes {
		n.binary = from
	}
	r.startLinked()
	h := newCounterHistory(r, "a", "b", "c", "d")
	load := h.load(2)
	defer load.end()
	replace := func(n *clusterNode, binary, version string) {
		t.Helper()
		load.more(30)
		n.terminate()
		load.more(30)
		n.binary = binary
		n.start()
		r.ready(n)
		r.caughtUp(n)
		if got := r.version(n); got != version {
			t.Errorf("node %s has version %s, want %s", n.id, got, version)
		}
	}
	owner := r.owner(r.nodes...)
	standbys := r.but(owner)
	for _, n := range append(standbys, owner) {
		replace(n, to, "v1.0.1")
	}
	// An upgrade that is taken back half way: the new version has owned the journal.
	old := r.owner(r.nodes...)
	replace(old, from, older)
	load.more(30)
	r.owner(r.nodes...).kill()
	load.more(30)
	for _, n := range r.nodes {
		if !n.runs() {
			n.start()
		}
	}
	r.ready(r.nodes...)
	load.end()
	t.Logf("the counters: %v", h.last())
	h.check()
	r.sameState()
}

// version returns that of the program of a node.
func (r *clusterRig) version(n *clusterNode) (version string) {
	r.t.Helper()
	var build struct {
		Version string `json:"version"`
	}
	r.until("the version of node "+n.id, func() bool { return n.get("/version", &build) == http.StatusOK })
	return build.Version
}
