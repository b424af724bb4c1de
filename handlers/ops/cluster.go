package ops

import (
	"net/http"
	"strconv"
)

// Cluster is the body of /cluster: what this node knows of its cluster.
type Cluster struct {
	Name string `json:"name"`
	Node string `json:"node"`
	// Mode is that of cluster.mode.
	Mode string `json:"mode"`
	// Role is "owner", "standby", or "joining" while no owner is heard of.
	Role string `json:"role"`
	// Owner is the node that owns the journal, and OwnerAddr where it takes forwarded clients; ""
	// where none is known.
	Owner     string `json:"owner"`
	OwnerAddr string `json:"owner_addr"`
	// Fence rises from owner to owner: it is that of this node, 0 if it never owned the journal
	// since its start.
	Fence uint64 `json:"fence"`
	// Index is the last record that this node has, and SilentSeconds is how long ago a standby has
	// heard of the journal.
	Index         uint64  `json:"index"`
	SilentSeconds float64 `json:"silent_seconds"`
	LeaseSeconds  float64 `json:"lease_seconds"`
	// LeadsStream: what is read of the journal comes from this node, beside what each node reads in
	// long runs. It need not be the owner.
	LeadsStream bool `json:"leads_stream"`
	// Forwarded counts the clients of this node that another one serves, and Taken those of other
	// nodes that this one serves.
	Forwarded int `json:"forwarded"`
	Taken     int `json:"taken"`
	// Quorum: a majority of the nodes is seen. Peers are the other nodes. Problem is what operators
	// should know.
	Quorum  bool          `json:"quorum"`
	Peers   []ClusterPeer `json:"peers"`
	Problem string        `json:"problem"`
	// Replica is the copy of the journal on this node, nil before it was verified, and where
	// servers of an operator keep the journal.
	Replica *ClusterReplica `json:"replica,omitempty"`
}

// ClusterReplica is the copy of the journal on a node, by its last report.
type ClusterReplica struct {
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

// ClusterPeer is another node.
type ClusterPeer struct {
	Node string `json:"node"`
	// Seen: there is a connection to it.
	Seen bool `json:"seen"`
	// Replica is the copy of the journal on that node, nil before it has reported.
	Replica *ClusterReplica `json:"replica,omitempty"`
}

func (c Config) addCluster(mux *http.ServeMux) {
	if c.Cluster != nil {
		mux.HandleFunc("/cluster", func(w http.ResponseWriter, r *http.Request) {
			check, _ := strconv.ParseBool(r.URL.Query().Get("check")) // anything else is no
			answer(w, http.StatusOK, c.Cluster(r.Context(), check))
		})
	}
}
