package main

import (
	"testing"

	"trunkline/handlers/ops"
)

func TestCopiesText(t *testing.T) {
	f := func(c ops.Cluster, text string, whole bool) {
		t.Helper()
		if got, is := copiesText(&c); got != text || is != whole {
			t.Errorf("%q, %v; want %q, %v", got, is, text, whole)
		}
	}
	ok := &ops.ClusterReplica{Index: 7, Hash: "ab"}
	f(ops.Cluster{Node: "a", Peers: []ops.ClusterPeer{{Node: "b"}}}, "", true)
	f(ops.Cluster{Node: "a", Replica: ok, Peers: []ops.ClusterPeer{{Node: "b", Replica: ok}, {Node: "c"}}}, "a to 7, b to 7", true)
	f(ops.Cluster{Node: "a", Replica: &ops.ClusterReplica{Damage: "x"}}, "a (damaged)", false)
	f(ops.Cluster{Node: "a", Replica: ok, Peers: []ops.ClusterPeer{{Node: "b", Replica: &ops.ClusterReplica{Differs: true, Compared: true}}}}, "a to 7, b (differs)", false)
}
