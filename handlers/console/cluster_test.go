package console

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"trunkline/engine/obs"
)

// clusterOf is what a standby knows whose owner is so many seconds silent. The third node has a
// hostile name and was never heard of.
func clusterOf(silent float64) obs.Cluster {
	lag, none := uint64(3), uint64(0)
	return obs.Cluster{
		Name: "demo", Node: "n2", Mode: "embedded", LeaseSeconds: 1,
		ClusterPartition: obs.ClusterPartition{Role: obs.RoleStandby, Owner: "n1", OwnerAddr: "10.0.0.1:50071", OwnerFence: 9, Index: 1234, Lag: &lag, OwnerChanges: 2, SilentSeconds: silent},
		Forwarded:        5, Quorum: true, Peers: []obs.ClusterPeer{{Node: "n1", Seen: true}, {Node: hostile}},
		Nodes: []obs.ClusterNode{
			{Node: "n1", Role: obs.RoleOwner, Addr: "10.0.0.1:50071", Admin: "127.0.0.1:50090", Version: "v1", Index: 1237, LeaseSeconds: 1, Seen: true, HeardSeconds: &silent, Lag: &none},
			{Node: "n2", Role: obs.RoleStandby, Index: 1234, LeaseSeconds: 1, Seen: true, Lag: &lag},
			{Node: hostile},
		},
	}
}

// TestClusterPage: what needs an operator is marked, in words and by a class.
func TestClusterPage(t *testing.T) {
	r := newRig(t)
	show := func(change func(c *obs.Cluster), wants ...string) {
		t.Helper()
		c := clusterOf(0.2)
		change(&c)
		r.mu.Lock()
		r.cluster = c
		r.mu.Unlock()
		r.clock.pass(sampleEvery)
		body := r.get(root + "cluster").Body.String()
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("no %s in %s", want, body)
			}
		}
	}
	show(func(*obs.Cluster) {}, `<dd id="fact-owner">n1</dd>`, `<dd id="fact-majority">seen</dd>`, `<td id="node-n1-index" class="n">1 237</td>`, `<td id="node-n2-lag" class="n">3</td>`,
		`class="bad">not since this node started, no connection</td>`, `<td id="partition-0-fence" class="n">9</td>`, `<dd id="fact-settings">the same on all nodes</dd>`,
		`<p id="standby" class="standby" role="note">n2 is a standby of n1, at record 1234. What this node shows is of itself`)
	show(func(c *obs.Cluster) { c.Quorum, c.Problem = false, hostile }, `<div class="bad"><dt>Majority</dt><dd id="fact-majority">not seen: no change is acknowledged</dd>`, `<div class="whole bad"><dt>Problem</dt>`)
	show(func(c *obs.Cluster) { c.Nodes[0].Seen = false }, `<td id="node-n1-role">was owner</td>`, `<td id="node-n1-seen" class="bad">now</td>`)
	show(func(c *obs.Cluster) { c.SilentSeconds = 3 }, `<div><dt>Journal last heard</dt><dd id="fact-silent">3 s ago`)
	show(func(c *obs.Cluster) { c.SilentSeconds = 3.1 }, `<div class="bad"><dt>Journal last heard</dt>`)
	show(func(c *obs.Cluster) { c.Role, c.Owner = obs.RoleJoining, "" }, `<div class="bad"><dt>Owner</dt><dd id="fact-owner">none is known`, "n2 knows no owner of the journal")
	show(func(c *obs.Cluster) { c.Nodes[0].LeaseSeconds = 2 }, `<dd id="fact-settings">lease or election timeout is another on n1</dd>`)
	show(func(c *obs.Cluster) { lag := uint64(lagShown); c.Nodes[1].Lag = &lag }, `<td id="node-n2-lag" class="n">10 000`)
	show(func(c *obs.Cluster) { lag := uint64(lagShown + 1); c.Nodes[1].Lag = &lag }, `<td id="node-n2-lag" class="n bad">10 001`)
	show(func(c *obs.Cluster) {
		c.Partitions = []obs.ClusterPartition{c.ClusterPartition, {Partition: 1, Owner: "n3"}}
	}, `<td id="partition-0-owner">n1</td>`, `<td id="partition-1-owner">n3</td>`)
	show(func(c *obs.Cluster) { c.Mode = "nats" }, `<div class="bad"><dt>NATS servers</dt><dd id="fact-servers">n1, &#34;`)
	show(func(c *obs.Cluster) { c.Role, c.Owner = obs.RoleOwner, "n2" }, `<div class="bad"><dt>Lease</dt><dd id="fact-lease">1 s, 0 left`, `<dd id="fact-silent">this node writes it`, `role="note"></p>`)
	show(func(c *obs.Cluster) { c.Role, c.LeaseLeftSeconds = obs.RoleOwner, 0.5 }, `<div><dt>Lease</dt><dd id="fact-lease">1 s, 500 ms left`)
}

// TestClusterLive: what changes comes, with what marks it.
func TestClusterLive(t *testing.T) {
	r := newRig(t)
	f := follow(t, r.serve()+root+"cluster/live", "")
	f.wantRow("values", `"fact-owner":"n1"`)
	r.mu.Lock()
	r.cluster = clusterOf(0.2)
	r.cluster.Role, r.cluster.Owner = obs.RoleJoining, ""
	r.mu.Unlock()
	r.clock.pass(sampleEvery)
	_, name, data := f.next()
	for _, want := range []string{`"fact-owner":"none is known"`, `"bad-owner":"yes"`, `"standby":"n2 knows no owner of the journal`, `"fact-role":"joining"`} {
		if name != "values" || !strings.Contains(data, want) {
			t.Errorf("%s %s, want %s", name, data, want)
		}
	}
	if strings.Contains(data, "node-n1-addr") {
		t.Errorf("what stays is sent again: %s", data)
	}
}

// TestAStandbyHasNoTables: pages of what the owner has are refused, as pages and as JSON; all
// others are marked.
func TestAStandbyHasNoTables(t *testing.T) {
	r := newRig(t)
	r.unready = errors.New("n2 is a standby of n1: ask there")
	for _, p := range paths {
		name, query, _ := strings.Cut(p.path, "?")
		switch name {
		case "processes", "process", "threads", "thread", "topics", "topic":
			want(t, r.get(root+p.path), 503, `<p role="alert" class="bad">503: n2 is a standby of n1: ask there</p>`)
			want(t, r.get(root+name+".json?"+query), 503, `{"error":"n2 is a standby of n1: ask there"}`)
		default:
			want(t, r.get(root+p.path), 200, `role="note">n2 is a standby of n1, at record 1234. What this node shows is of itself`)
		}
	}
	r.mu.Lock()
	r.overview.Cluster = &obs.Standing{Role: obs.RoleStandby}
	r.mu.Unlock()
	r.clock.pass(time.Minute)
	want(t, r.get(root), 200, `id="state-RUNNING">at the owner</td>`)
	want(t, r.get(root), 200, `<dd id="fact-queue">at the owner</dd>`)
	r.mu.Lock()
	r.cluster.Role = obs.RoleOwner
	r.mu.Unlock()
	r.clock.pass(time.Minute)
	if body := r.get(root + "store").Body.String(); strings.Contains(body, "is a standby") {
		t.Error("the owner is marked")
	}
	alone := newRig(t, func(c *Config) { c.Source.Cluster, c.Source.Standing, c.Source.Unready = nil, nil, nil })
	if body := alone.get(root + "store").Body.String(); strings.Contains(body, "standby") || strings.Contains(body, "Cluster") {
		t.Error("a server alone has a cluster")
	}
	want(t, alone.get(root+"cluster"), 404, "")
}

// TestOrdersOfThePage: who may give orders has forms for them, with the secret of the login; others
// have none.
func TestOrdersOfThePage(t *testing.T) {
	r := newRig(t, withTokens, func(c *Config) { c.Source.Order = func(context.Context, ClusterOrder) error { return nil } })
	page := func(token, query string) string {
		return r.do(with(request("GET", root+"cluster"+query, nil), r.logIn(token))).Body.String()
	}
	if body := page(viewToken, ""); strings.Contains(body, "Hand over") {
		t.Error("a viewer may give orders")
	}
	body := page(opToken, "?done=move")
	for _, want := range []string{`action="/console/cluster/move"`, `action="/console/cluster/drain"`, `formaction="/console/cluster/resume"`, "<option>n2</option>", "The partition has its new owner."} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if strings.Contains(body, "rebalance") || strings.Contains(body, "<option>&#34;") || strings.Count(body, `name="csrf" value=""`) > 0 {
		t.Errorf("one partition is balanced, or a node is named that is not seen: %s", body)
	}
	r.mu.Lock()
	r.cluster.Partitions = []obs.ClusterPartition{r.cluster.ClusterPartition, {Partition: 1}}
	r.mu.Unlock()
	r.clock.pass(sampleEvery)
	if body := page(opToken, "?done=other"); !strings.Contains(body, `action="/console/cluster/rebalance"`) || !strings.Contains(body, "<option>1</option>") || strings.Contains(body, `class="done"`) {
		t.Error(body)
	}
}
