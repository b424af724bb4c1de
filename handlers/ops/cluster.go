package ops

import "net/http"

// Cluster is the body of /cluster: what this node knows of its cluster.
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
	// Forwarded counts the clients of this node that another one serves, and Taken those of other
	// nodes that this one serves.
	Forwarded int `json:"forwarded"`
	Taken     int `json:"taken"`
	// Quorum: a majority of the nodes is seen. Peers are the other nodes. Problem is what operators
	// should know.
	Quorum  bool          `json:"quorum"`
	Peers   []ClusterPeer `json:"peers"`
	Problem string        `json:"problem"`
}

// ClusterPartition is what this node knows of a partition of the journal.
type ClusterPartition struct {
	Partition int `json:"partition"`
	// Role is "owner", "standby", or "joining" while no owner is heard of.
	Role string `json:"role"`
	// Owner is the node that owns the journal, and OwnerAddr where it takes forwarded clients; ""
	// where none is known.
	Owner     string `json:"owner"`
	OwnerAddr string `json:"owner_addr"`
	// Fence rises from owner to owner: it is that of this node, 0 if it did not own the journal
	// since it follows it.
	Fence uint64 `json:"fence"`
	// Index is the last record that this node has, and SilentSeconds is how long ago a standby has
	// heard of the journal.
	Index         uint64  `json:"index"`
	SilentSeconds float64 `json:"silent_seconds"`
}

// ClusterPeer is another node.
type ClusterPeer struct {
	Node string `json:"node"`
	// Seen: there is a connection to it.
	Seen bool `json:"seen"`
}

func (c Config) addCluster(mux *http.ServeMux) {
	if c.Cluster != nil {
		mux.HandleFunc("/cluster", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, c.Cluster()) })
	}
}
