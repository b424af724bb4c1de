package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"trunkline/engine/obs"
)

// clusterReader reads what is known of the cluster for all who look.
type clusterReader struct {
	read func() obs.Cluster
	now  func() time.Time

	mu     sync.Mutex
	at     time.Time
	latest obs.Cluster
}

// take returns the present reading; one that is younger than sampleEvery serves again.
func (c *clusterReader) take() *clusterView {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.at.IsZero() || now.Sub(c.at) >= sampleEvery {
		c.at, c.latest = now, c.read()
	}
	return &clusterView{Cluster: c.latest}
}

// clusterView is the body of cluster.json.
type clusterView struct {
	obs.Cluster
	CanOrder bool   `json:"-"`
	Done     string `json:"-"` // the order that was carried out last; empty: none was
}

// orderTexts are what pages show of orders that were carried out.
var orderTexts = map[string]string{
	"move": "The partition has its new owner.", "drain": "The node is drained: it owns nothing, and takes nothing over.",
	"resume": "The node takes over again.", "rebalance": "The nodes own as many partitions each, or one more.",
}

func loadCluster(c *Console, _ *http.Request, q *query) (any, error) {
	v := c.cluster.take()
	v.CanOrder, v.Done = c.cfg.Source.Order != nil, orderTexts[q.text("done")]
	return v, nil
}

// clusterRow is a row of a table, whose cells are replaced live.
type clusterRow struct {
	Name  string
	Cells []cell
}

// cell is a fact in a table.
type cell struct {
	ID, Value string
	Number    bool
	Bad       bool
}

const notKnown = "not known"

// facts returns what the page shows above its tables.
func (v *clusterView) facts() []fact {
	lease := seconds(v.LeaseSeconds)
	owns := v.Role == obs.RoleOwner
	if owns {
		lease += ", " + seconds(v.LeaseLeftSeconds) + " left"
	}
	list := []fact{
		{ID: "node", Label: "This node", Value: v.Node},
		{ID: "role", Label: "Role", Value: v.Role, Bad: v.Role == obs.RoleJoining},
		{ID: "owner", Label: "Owner", Value: cmp.Or(v.Owner, "none is known"), Bad: v.Owner == ""},
		{ID: "majority", Label: "Majority", Value: "seen", Bad: !v.Quorum},
		{ID: "lease", Label: "Lease", Value: lease, Bad: owns && v.LeaseLeftSeconds == 0},
		{ID: "silent", Label: "Journal last heard", Value: ago(time.Duration(v.SilentSeconds * float64(time.Second))), Bad: v.SilentSeconds > silentLeases*v.LeaseSeconds},
		{ID: "forwarded", Label: "Clients that the owner serves", Value: group(strconv.Itoa(v.Forwarded))},
		{ID: "taken", Label: "Clients of other nodes", Value: group(strconv.Itoa(v.Taken))},
		{ID: "settings", Label: "Common settings", Value: "the same on all nodes"},
		{ID: "problem", Label: "Problem", Value: cmp.Or(v.Problem, "none"), Bad: v.Problem != "", Whole: true},
	}
	if !v.Quorum {
		list[3].Value = "not seen: no change is acknowledged"
	}
	if owns {
		list[5].Value = "this node writes it"
	}
	if others := v.differing(); others != "" {
		list[8].Value, list[8].Bad = "lease or election timeout is another on "+others, true
	}
	if v.Mode == "nats" {
		list = append(list, fact{ID: "servers", Label: "NATS servers", Value: v.servers(), Bad: slices.ContainsFunc(v.Peers, func(p obs.ClusterPeer) bool { return !p.Seen })})
	}
	return list
}

// silentLeases is for how many leases a standby counts on an owner of which it hears nothing.
const silentLeases = 3

// differing names the nodes whose settings are not those of this node.
func (v *clusterView) differing() string {
	var names []string
	own := slices.IndexFunc(v.Nodes, func(n obs.ClusterNode) bool { return n.Node == v.Node })
	for _, n := range v.Nodes {
		if own >= 0 && n.Seen && (n.LeaseSeconds != v.Nodes[own].LeaseSeconds || n.ElectionSeconds != v.Nodes[own].ElectionSeconds) {
			names = append(names, n.Node)
		}
	}
	return strings.Join(names, ", ")
}

// servers names those of the operator.
func (v *clusterView) servers() string {
	var names []string
	for _, p := range v.Peers {
		if !p.Seen {
			p.Node += " (not seen)"
		}
		names = append(names, p.Node)
	}
	return cmp.Or(strings.Join(names, ", "), notKnown)
}

// nodes returns the rows of the table of nodes.
func (v *clusterView) nodes() (rows []clusterRow) {
	for i := range v.Nodes {
		n := &v.Nodes[i]
		lag, behind := "–", false
		if n.Lag != nil {
			lag, behind = group(fmt.Sprint(*n.Lag)), *n.Lag > lagShown
		}
		rows = append(rows, newRow("node-"+n.Node, n.Node,
			cell{ID: "role", Value: n.RoleText(), Bad: n.Role == obs.RoleJoining},
			cell{ID: "seen", Value: v.seen(n), Bad: !n.Seen},
			cell{ID: "index", Value: group(fmt.Sprint(n.Index)), Number: true},
			cell{ID: "lag", Value: lag, Number: true, Bad: behind},
			cell{ID: "forwarded", Value: group(strconv.Itoa(n.Forwarded)), Number: true},
			cell{ID: "taken", Value: group(strconv.Itoa(n.Taken)), Number: true},
			cell{ID: "addr", Value: cmp.Or(n.Addr, "–")},
			cell{ID: "admin", Value: cmp.Or(n.Admin, "–")},
			cell{ID: "version", Value: cmp.Or(n.Version, "–")}))
	}
	return rows
}

// lagShown is the lag that is shown as bad above it: nodes announce themselves each second, and one
// that keeps up is less than this behind what the owner has announced.
const lagShown = 10_000

// seen describes when a node has announced itself.
func (v *clusterView) seen(n *obs.ClusterNode) string {
	text := "not since this node started"
	switch {
	case n.Node == v.Node:
		return "this node"
	case n.HeardSeconds != nil:
		text = ago(time.Duration(*n.HeardSeconds * float64(time.Second)))
	}
	if slices.Contains(v.Peers, obs.ClusterPeer{Node: n.Node}) {
		text += ", no connection"
	}
	return text
}

// all returns the journals.
func (v *clusterView) all() []obs.ClusterPartition {
	if len(v.Partitions) > 0 {
		return v.Partitions
	}
	return []obs.ClusterPartition{v.ClusterPartition}
}

// choices are what an order may name.
type choices struct{ Partitions, Nodes []string }

// choices returns the partitions, and the nodes that are seen.
func (v *clusterView) choices() (c choices) {
	for _, p := range v.all() {
		c.Partitions = append(c.Partitions, strconv.Itoa(p.Partition))
	}
	for _, n := range v.Nodes {
		if n.Seen {
			c.Nodes = append(c.Nodes, n.Node)
		}
	}
	return c
}

// partitions returns the rows of the table of journals.
func (v *clusterView) partitions() (rows []clusterRow) {
	all := v.all()
	for i := range all {
		p := &all[i]
		fence, lag := notKnown, "–"
		if p.OwnerFence > 0 {
			fence = group(fmt.Sprint(p.OwnerFence))
		}
		if p.Lag != nil {
			lag = group(fmt.Sprint(*p.Lag))
		}
		rows = append(rows, newRow("partition-"+strconv.Itoa(p.Partition), strconv.Itoa(p.Partition),
			cell{ID: "owner", Value: cmp.Or(p.Owner, "none is known"), Bad: p.Owner == ""},
			cell{ID: "addr", Value: cmp.Or(p.OwnerAddr, "–")},
			cell{ID: "fence", Value: fence, Number: true},
			cell{ID: "role", Value: p.Role, Bad: p.Role == obs.RoleJoining},
			cell{ID: "index", Value: group(fmt.Sprint(p.Index)), Number: true},
			cell{ID: "lag", Value: lag, Number: true},
			cell{ID: "changes", Value: group(fmt.Sprint(p.OwnerChanges)), Number: true}))
	}
	return rows
}

// newRow returns a row whose cells have IDs of their own on the page, of letters that names of
// nodes have.
func newRow(id, name string, cells ...cell) clusterRow {
	id = strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
	for i := range cells {
		cells[i].ID = id + "-" + cells[i].ID
	}
	return clusterRow{name, cells}
}

// texts returns what a live view replaces.
func (v *clusterView) texts() map[string]string {
	m := map[string]string{}
	addFacts(m, v.facts())
	for _, rows := range [][]clusterRow{v.nodes(), v.partitions()} {
		for _, r := range rows {
			for _, c := range r.Cells {
				m[c.ID] = c.Value
				if m["bad-"+c.ID] = ""; c.Bad {
					m["bad-"+c.ID] = "yes"
				}
			}
		}
	}
	return m
}
