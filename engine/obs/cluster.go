package obs

import (
	"errors"
	"fmt"
)

// The roles of a node of a cluster.
const (
	RoleOwner   = "owner"
	RoleStandby = "standby"
	// RoleJoining is that of a node that knows of no owner.
	RoleJoining = "joining"
)

// The errors of orders of an operator.
var (
	// ErrNotFound means that what an order names is not there.
	ErrNotFound = errors.New("not found")
	// ErrRefused means that an order is not carried out as things are.
	ErrRefused = errors.New("refused")
)

// NoCluster is what a server answers that is asked for its cluster and has none.
const NoCluster = "this server is not a node of a cluster: cluster.mode is off"

// Standing is what a node is to the journal of its cluster.
type Standing struct {
	Cluster string `json:"name"`
	Node    string `json:"node"`
	Role    string `json:"role"`
	// Owner is the node that owns the journal, or its partition 0; "" where none is known.
	Owner string `json:"owner"`
	// Index is the last record that this node has; of several partitions it is the sum.
	Index uint64 `json:"index"`
	// Partitions is how many the journal has, and Owned how many of them this node owns. Its role
	// is RoleOwner if that is one or more.
	Partitions int `json:"partitions"`
	Owned      int `json:"owned"`
}

// Standby describes a node that does not own all of the journal: what it shows is of itself, or as
// of a record. It is "" for one that does and for nil, which is a server without a cluster.
func (s *Standing) Standby() string {
	switch {
	case s == nil || s.Role == RoleOwner && s.Owned == s.Partitions:
		return ""
	case s.Partitions > 1:
		return fmt.Sprintf("%s owns %d of %d partitions of the journal, and is at record %d", s.Node, s.Owned, s.Partitions, s.Index)
	case s.Role == RoleStandby:
		return fmt.Sprintf("%s is a standby of %s, at record %d", s.Node, s.Owner, s.Index)
	}
	return fmt.Sprintf("%s knows no owner of the journal, and is at record %d", s.Node, s.Index)
}

// Cluster is the body of /cluster: what a node knows of its cluster.
type Cluster struct {
	Name string `json:"name"`
	Node string `json:"node"`
	// Mode is that of cluster.mode.
	Mode string `json:"mode"`
	// ClusterPartition is partition 0, and Partitions all where there are several.
	ClusterPartition
	Partitions   []ClusterPartition `json:"partitions,omitempty"`
	LeaseSeconds float64            `json:"lease_seconds"`
	// Drained: the node takes nothing over until it is resumed, or starts again.
	Drained bool `json:"drained"`
	// LeaseLeftSeconds is how long an owner may go on to answer reads without a further record.
	LeaseLeftSeconds float64 `json:"lease_left_seconds"`
	// Forwarded counts the clients of this node that another one serves, and Taken those of other
	// nodes that this one serves.
	Forwarded int `json:"forwarded"`
	Taken     int `json:"taken"`
	// Quorum: a majority of the nodes is seen. Peers are the other nodes, or the NATS servers.
	// Problem is what operators should know.
	Quorum  bool          `json:"quorum"`
	Peers   []ClusterPeer `json:"peers"`
	Problem string        `json:"problem"`
	// Nodes are all nodes that are known, this one too, in the order of their names.
	Nodes []ClusterNode `json:"nodes"`
}

// ClusterPeer is what keeps the journal together with this node.
type ClusterPeer struct {
	Node string `json:"node"`
	// Seen: there is a connection to it.
	Seen bool `json:"seen"`
}

// ClusterNode is what a node announces of itself, and what the node that is asked adds.
type ClusterNode struct {
	Node string `json:"node"`
	Role string `json:"role"`
	// Addr is where it takes forwarded clients, and Admin its admin address, as it is bound there.
	Addr    string `json:"addr"`
	Admin   string `json:"admin"`
	Version string `json:"version"`
	// Indexes are the last record that the node has of each partition, and Fences those of which it
	// is the owner, 0 for others. Index is the sum of Indexes.
	Indexes []uint64 `json:"indexes"`
	Fences  []uint64 `json:"fences"`
	Index   uint64   `json:"index"`
	Drained bool     `json:"drained"`
	// LeaseSeconds and ElectionSeconds are settings that all nodes have in common.
	LeaseSeconds    float64 `json:"lease_seconds"`
	ElectionSeconds float64 `json:"election_timeout_seconds"`
	Forwarded       int     `json:"forwarded"`
	Taken           int     `json:"taken"`

	// Seen: it has announced itself lately. HeardSeconds is how long ago it did, nil if it never
	// did since this node has started.
	Seen         bool     `json:"seen"`
	HeardSeconds *float64 `json:"heard_seconds"`
	// Lag is how many records of the owners it has not; nil where that is not known.
	Lag *uint64 `json:"lag"`
}

// RoleText describes the role of the node for people: of several partitions with how many it owns,
// and of a node that is not seen the last one.
func (n *ClusterNode) RoleText() string {
	text := n.Role
	owned := 0
	for _, fence := range n.Fences {
		if fence > 0 {
			owned++
		}
	}
	switch {
	case text == "":
		return "not known"
	case len(n.Fences) > 1 && owned > 0:
		text = fmt.Sprintf("owner of %d", owned)
	}
	if !n.Seen {
		text = "was " + text
	}
	if n.Drained {
		text += ", drained"
	}
	return text
}

// ClusterPartition is what a node knows of a journal of its cluster.
type ClusterPartition struct {
	Partition int `json:"partition"`
	// Role is RoleOwner, RoleStandby, or RoleJoining while no owner is heard of.
	Role string `json:"role"`
	// Owner is the node that owns the journal, and OwnerAddr where it takes forwarded clients; ""
	// where none is known.
	Owner     string `json:"owner"`
	OwnerAddr string `json:"owner_addr"`
	// Fence rises from owner to owner: it is that of this node, 0 if it did not own the journal
	// since it follows it. OwnerFence is that of the owner, 0 where that is not known.
	Fence      uint64 `json:"fence"`
	OwnerFence uint64 `json:"owner_fence"`
	// Index is the last record that this node has, and Lag how many of the owner it has not; nil
	// where that is not known.
	Index uint64  `json:"index"`
	Lag   *uint64 `json:"lag"`
	// OwnerChanges counts the owners that this node has heard of, and SilentSeconds is how long ago
	// a standby has heard of the journal.
	OwnerChanges  uint64  `json:"owner_changes"`
	SilentSeconds float64 `json:"silent_seconds"`
	// LeadsStream: what is read of the journal comes from this node, beside what each node reads in
	// long runs. It need not be the owner.
	LeadsStream bool `json:"leads_stream"`
	// Copies are those of the journal on this node and on others, by their last reports, in the
	// order of their names. There are none where servers of an operator keep the journal.
	Copies []ClusterCopy `json:"copies,omitempty"`
}

// ClusterCopy is the copy of a journal on a node, by its last report.
type ClusterCopy struct {
	Node string `json:"node"`
	// Index is the last record of the copy, and Hash stands for the journal up to there.
	Index uint64 `json:"index"`
	Hash  string `json:"hash"`
	// AgeSeconds is how old the report is.
	AgeSeconds float64 `json:"age_seconds"`
	// Damage is what is wrong with the copy, "" for nothing that is known.
	Damage string `json:"damage"`
	// Compared: the copy of the node that answers has that record too. Differs: it is another one,
	// or another one is before it.
	Compared bool `json:"compared"`
	Differs  bool `json:"differs"`
}
