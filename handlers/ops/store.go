package ops

import (
	"net/http"

	"trunkline/engine/obs"
)

// Recovery is how far a server is that reads its store before it serves.
type Recovery struct {
	// Phase is "open" while the files are opened, "snapshot" while the newest snapshot is loaded,
	// and "log" while the records behind it are replayed.
	Phase string `json:"phase"`
	// Done and Total are bytes of the snapshot, or records of the log; 0 in the phase before.
	Done  uint64 `json:"done"`
	Total uint64 `json:"total"`
	// Percent and ETASecs are of the phase. ETASecs is nil while it is not known.
	Percent float64  `json:"percent"`
	ETASecs *float64 `json:"eta_secs"`
}

// Store is the body of /store. What is zero without a store is left out.
type Store struct {
	// Mode is store.mode; with "memory" the rest is left out.
	Mode string `json:"mode"`
	Dir  string `json:"dir,omitempty"`
	// Recovery is there while the store is read.
	Recovery *Recovery `json:"recovery,omitempty"`
	// Journal is there once the store is open, Disk too.
	Journal *Journal `json:"journal,omitempty"`
	Disk    *Disk    `json:"disk,omitempty"`
	// Cluster is there on a node of one. A standby has what the owner has written, as of its index.
	Cluster *obs.Standing `json:"cluster,omitempty"`
	// Warnings are names of what needs an operator: "storage_full", "overloaded", "stopped".
	Warnings []string `json:"warnings"`
	// Partitions are there where a cluster has several; the rest is of partition 0.
	Partitions []StorePartition `json:"partitions,omitempty"`
}

// StorePartition is one partition of a store.
type StorePartition struct {
	Partition int       `json:"partition"`
	Recovery  *Recovery `json:"recovery,omitempty"`
	Journal   *Journal  `json:"journal,omitempty"`
	Disk      *Disk     `json:"disk,omitempty"`
	Warnings  []string  `json:"warnings"`
}

// Journal is the log of changes and its snapshots. Counts are since the start of the server.
type Journal struct {
	// Epoch numbers the starts of servers on this store; 0 during recovery.
	Epoch uint64 `json:"epoch"`
	// Appended is the index of the last record, Durable that of the last one that is as safe as the
	// mode.
	Appended uint64 `json:"appended_index"`
	Durable  uint64 `json:"durable_index"`
	// QueueRecords and QueueBytes wait to be written.
	QueueRecords int64 `json:"queue_records"`
	QueueBytes   int64 `json:"queue_bytes"`
	// Overloaded means that changes are refused because too much waits for the disk.
	Overloaded bool   `json:"overloaded"`
	Groups     uint64 `json:"groups"`
	Records    uint64 `json:"records"`
	Bytes      uint64 `json:"bytes"`
	// Snapshots and SnapshotBytes were written. LastSnapshot is the newest one, also from before
	// the start; nil if there is none.
	Snapshots     uint64    `json:"snapshots"`
	SnapshotBytes uint64    `json:"snapshot_bytes"`
	LastSnapshot  *Snapshot `json:"last_snapshot"`
	// Error is why the journal stopped.
	Error string `json:"error,omitempty"`
}

// Snapshot is a stored one.
type Snapshot struct {
	Index   uint64  `json:"index"`
	AgeSecs float64 `json:"age_secs"`
}

// Disk is what the store takes and what is left.
type Disk struct {
	UsedBytes uint64 `json:"used_bytes"`
	// FreeBytes is 0 where it is not known.
	FreeBytes uint64 `json:"free_bytes"`
	// Full means that changes are refused until there is room.
	Full bool `json:"full"`
}

func (c Config) store(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, c.Store()) }
