package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"trunkline/engine/obs"
	"trunkline/handlers/ops"
)

func TestCopiesText(t *testing.T) {
	f := func(text string, whole bool, copies ...obs.ClusterCopy) {
		t.Helper()
		if got, is := copiesText(copies); got != text || is != whole {
			t.Errorf("%q, %v; want %q, %v", got, is, text, whole)
		}
	}
	f("", true)
	f("a to 7, b to 7", true, obs.ClusterCopy{Node: "a", Index: 7}, obs.ClusterCopy{Node: "b", Index: 7, Compared: true})
	f("a (damaged)", false, obs.ClusterCopy{Node: "a", Damage: "x"})
	f("a to 7, b (differs)", false, obs.ClusterCopy{Node: "a", Index: 7}, obs.ClusterCopy{Node: "b", Differs: true, Compared: true})
}

// TestPartitionsHaveAnAge: what a node knows of a partition that it does not own is as old as it
// has heard of that.
func TestPartitionsHaveAnAge(t *testing.T) {
	c := ops.Cluster{Partitions: []obs.ClusterPartition{
		{Role: obs.RoleOwner, Owner: "n1", OwnerAddr: "a"}, {Partition: 1, Role: obs.RoleStandby, Owner: "n2", OwnerAddr: "b", Index: 7, SilentSeconds: 2.5},
	}}
	rows := map[string]string{}
	for _, row := range clusterRows(&c) {
		rows[row[0]] = row[1]
	}
	if rows["PARTITION 0"] != "owner, owner n1 at a, 0 records" || rows["PARTITION 1"] != "standby, owner n2 at b, 7 records, heard 2.5s ago" {
		t.Errorf("the rows are %q", rows)
	}
}

// TestClusterCheckHasTime: nodes verify their copies for longer than a question usually takes.
func TestClusterCheckHasTime(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run does not wait: the answer takes longer than usual")
	}
	var c ops.Cluster
	c.Owner, c.Quorum = "n1", true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("check") == "true" {
			time.Sleep(statusTimeout + statusTimeout/4)
		}
		_ = json.NewEncoder(w).Encode(&c)
	}))
	defer s.Close()
	cmd := program("cluster", "status", "--check", "--admin", s.Listener.Addr().String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
