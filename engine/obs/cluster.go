package obs

import "fmt"

// The roles of a node of a cluster.
const (
	RoleOwner   = "owner"
	RoleStandby = "standby"
	// RoleJoining is that of a node that knows of no owner.
	RoleJoining = "joining"
)

// Standing is what a node is to the journal of its cluster.
type Standing struct {
	Cluster string `json:"name"`
	Node    string `json:"node"`
	Role    string `json:"role"`
	// Owner is the node that owns the journal; "" where none is known.
	Owner string `json:"owner"`
	// Index is the last record that this node has.
	Index uint64 `json:"index"`
}

// Standby describes a node that does not own the journal: what it shows is of itself, or as of a
// record. It is "" for the owner and for nil, which is a server without a cluster.
func (s *Standing) Standby() string {
	switch {
	case s == nil || s.Role == RoleOwner:
		return ""
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
	// Fence is that of an owner, and Index the last record that the node has.
	Fence uint64 `json:"fence"`
	Index uint64 `json:"index"`
	// LeaseSeconds and ElectionSeconds are settings that all nodes have in common.
	LeaseSeconds    float64 `json:"lease_seconds"`
	ElectionSeconds float64 `json:"election_timeout_seconds"`
	Forwarded       int     `json:"forwarded"`
	Taken           int     `json:"taken"`

	// Seen: it has announced itself lately. HeardSeconds is how long ago it did, nil if it never
	// did since this node has started.
	Seen         bool     `json:"seen"`
	HeardSeconds *float64 `json:"heard_seconds"`
	// Lag is how many records of the owner it has not; nil where that is not known.
	Lag *uint64 `json:"lag"`
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
	// Fence rises from owner to owner: it is that of this node, 0 if it never owned the journal
	// since its start. OwnerFence is that of the owner, 0 where that is not known.
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
}
