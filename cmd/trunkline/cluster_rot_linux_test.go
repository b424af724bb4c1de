package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/engine/obs"
	"trunkline/fuzz/rounds"
	"trunkline/handlers/ops"
)

// blocks returns the files in which a node keeps the messages of the journal.
func (n *clusterNode) blocks() []string {
	n.rig.t.Helper()
	files, err := filepath.Glob(filepath.Join(n.dir, "cluster", "jetstream", "*", "streams", "demo_0", "msgs", "*.blk"))
	if err != nil || len(files) == 0 {
		n.rig.t.Fatalf("node %s has no files of the journal: %v", n.id, err)
	}
	slices.Sort(files)
	return files
}

// rot changes the first file of a node that holds a text: it flips one bit of it, or cuts the file
// there.
func (n *clusterNode) rot(text string, cut bool) {
	n.rig.t.Helper()
	for _, file := range n.blocks() {
		b, err := os.ReadFile(file)
		if err != nil {
			n.rig.t.Fatal(err)
		}
		at := bytes.Index(b, []byte(text))
		if at < 0 {
			continue
		}
		if cut {
			b = b[:at]
		} else {
			b[at] ^= 4
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			n.rig.t.Fatal(err)
		}
		return
	}
	n.rig.t.Fatalf("the files of node %s do not hold %q", n.id, text)
}

// wrote waits until a node has written that in its log.
func (n *clusterNode) wrote(text string) {
	n.rig.t.Helper()
	n.rig.until("node "+n.id+" writes '"+text+"'", func() bool { return strings.Contains(n.out.String(), text) })
}

// sameCopies checks that all nodes have the same journal on their disks.
func (r *clusterRig) sameCopies() {
	r.t.Helper()
	for _, n := range r.nodes {
		r.until("the copies of all nodes are compared with that of "+n.id, func() bool {
			var c ops.Cluster
			n.get("/cluster?check=true", &c)
			compared := true
			for _, p := range append([]obs.ClusterPartition{c.ClusterPartition}, c.Partitions...) {
				compared = compared && len(p.Copies) == len(r.nodes)
				for _, of := range p.Copies {
					if of.Differs || of.Damage != "" {
						r.t.Errorf("node %s: the copy of %s of partition %d: %+v", n.id, of.Node, p.Partition, of)
					}
					compared = compared && (of.Node == n.id || of.Compared)
				}
			}
			return compared
		})
	}
}

// filledCluster is a cluster whose book has some processes, and more load.
func filledCluster(t *testing.T, settings ...string) (*clusterRig, *usageBook, *clusterLoad) {
	t.Helper()
	r, book := newClusterRig(t, settings...), &usageBook{procs: make(map[string]*usageRow)}
	made := make([]int, len(r.nodes))
	load := newClusterLoad(r, 1, func(c *clusterClient, w int) int {
		pid := "rot-" + c.node.id + "-" + string(rune('a'+made[w]%26))
		if !book.row(pid).created && !book.create(c, pid) {
			return 0
		}
		made[w]++
		if book.add(c, pid) {
			return 1
		}
		return 0
	})
	load.more(120)
	return r, book, load
}

// TestClusterRottenCopy: a bit of the journal flips on the disk of one node; in the long form its
// end is cut off too. The node notices, shows it, and copies the journal again from the two others,
// while clients of all nodes work and nothing is answered that was not written.
func TestClusterRottenCopy(t *testing.T) {
	longBesideOthers(t)
	rottenCopy(t)
}

// TestClusterRottenCopyOfPartitions: with several partitions the node copies all of them again.
func TestClusterRottenCopyOfPartitions(t *testing.T) {
	longBesideOthers(t)
	rottenCopy(t, "cluster.partitions=3")
}

func rottenCopy(t *testing.T, settings ...string) {
	r, book, load := filledCluster(t, settings...)
	defer load.end()
	for round := range rounds.Few(1, 1) {
		cut := round%2 == 1
		owner := r.owner(r.nodes...)
		rotten := r.but(owner)[0]
		rotten.terminate() // after SIGKILL its server would have what it repeats
		rotten.rot("rot-n", cut)
		rotten.out.cut()
		rotten.start()
		rotten.wrote("the copy of the journal on this node is damaged")
		rotten.wrote("damaged replica moved away, copying the journal from the other nodes")
		r.ready(r.nodes...)
		load.more(30)
		r.sameCopies()
		if _, err := os.Stat(filepath.Join(rotten.dir, "cluster", "jetstream.damaged")); err != nil {
			t.Error(err)
		}
	}
	load.end()
	book.checkAll(r)
}

// TestClusterRottenCopies: the copies of two nodes of three are damaged. Neither begins again from
// the other one, both show what is wrong, and what is whole is not given up.
func TestClusterRottenCopies(t *testing.T) {
	longBesideOthers(t)
	r, book, load := filledCluster(t)
	load.end()
	owner := r.owner(r.nodes...)
	rotten := r.but(owner)
	for _, n := range rotten {
		n.terminate()
		n.rot("rot-n", false)
	}
	for _, n := range rotten {
		n.out.cut()
		n.start()
	}
	for _, n := range rotten {
		n.wrote("this node does not rebuild its replica by itself")
		r.until("node "+n.id+" shows that its copy is damaged", func() bool {
			var c ops.Cluster
			n.get("/cluster", &c)
			return strings.Contains(c.Problem, "the copy of the journal on this node is damaged") && n.get("/readyz", nil) == http.StatusServiceUnavailable
		})
		if _, err := os.Stat(filepath.Join(n.dir, "cluster", "jetstream.damaged")); !os.IsNotExist(err) {
			t.Errorf("node %s has given its copy up: %v", n.id, err)
		}
	}
	book.check(owner)
}

// TestClusterDamagedSnapshot: all files with the copies of snapshots on one node are damaged. It
// makes them again from the shared ones, and answers what the others do.
func TestClusterDamagedSnapshot(t *testing.T) {
	longBesideOthers(t)
	r, book, load := filledCluster(t, "store.snapshot_bytes=65536")
	defer load.end()
	owner := r.owner(r.nodes...)
	var tables []string
	r.until("the owner has a copy of a snapshot", func() bool {
		tables, _ = filepath.Glob(filepath.Join(owner.dir, "copies", "*.sst"))
		return len(tables) > 0
	})
	owner.terminate()
	tables, _ = filepath.Glob(filepath.Join(owner.dir, "copies", "*.sst"))
	for _, file := range tables {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/3] ^= 1
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	owner.out.cut()
	owner.start()
	r.until("the node notices", func() bool {
		text := owner.out.String()
		return strings.Contains(text, "the copies of snapshots on this node are damaged") || strings.Contains(text, "the copy of a snapshot on this node is damaged")
	})
	r.ready(r.nodes...)
	load.more(30)
	load.end()
	book.checkAll(r)
}
