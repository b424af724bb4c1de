package main

import (
	"context"
	"os"
	"testing"
	"time"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

func TestMain(m *testing.M) {
	if args := os.Args[1:]; part.IsChild(args) {
		os.Exit(part.Main([]part.Part{cluster()}, args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestWatch: answers count that were asked for after the death, the first of each node.
func TestWatch(t *testing.T) {
	a, b := &node{id: "a"}, &node{id: "b"}
	w := &watch{answered: map[*node]time.Time{}}
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	w.saw(a, at(1), at(2))
	if w.nodes() != 1 {
		t.Error("an answer before the death does not count as a sign of life")
	}
	w.from(at(10))
	w.saw(a, at(9), at(11))
	w.saw(b, at(10), at(11))
	if w.nodes() != 0 {
		t.Error("a request that was sent before the death counts")
	}
	w.saw(b, at(11), at(13))
	w.saw(a, at(12), at(14))
	w.saw(b, at(13), at(15))
	if first, last := w.span(); w.nodes() != 2 || first != at(13) || last != at(14) {
		t.Errorf("%d nodes, from %v to %v", w.nodes(), first, last)
	}
}

// TestPuts: the members of etcd take what they are compared with.
func TestPuts(t *testing.T) {
	if testing.Short() {
		t.Skip("a short run starts no servers: three members of etcd")
	}
	rig, err := load.NewRig(t.TempDir(), "etcd-")
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close()
	r := &part.Run{Rig: rig, Options: part.Options{Warmup: 10 * time.Millisecond, Window: 200 * time.Millisecond}}
	e, err := startEtcd(r)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	const keys = 10
	s, err := measured(r, e.servers, e.put(64, keys))
	if err != nil || s.Requests == 0 || s.CPU == 0 || s.P50 == 0 || s.RSS == 0 {
		t.Errorf("%+v, %v", s, err)
	}
	for i := range keys {
		got, err := e.clients[0].Get(context.Background(), load.PID(i))
		if err != nil || len(got.Kvs) != 1 || len(got.Kvs[0].Value) != valueBytes {
			t.Errorf("key %d: %v, %v", i, got, err)
		}
	}
}
