package node

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

const (
	// patience is how long anything may take on a machine that is busy.
	patience = 2 * time.Minute
	// testElection is long enough for two cores with other work.
	testElection = time.Second
	testSecret   = "correct horse battery staple"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		os.Exit(runChild(text))
	}
	kit.Leaks(m)
}

// rig is the configuration of a cluster of three nodes in one process.
type rig struct {
	t      *testing.T
	log    *kit.Text
	routes []Route
	dirs   map[string]string
	change func(*Config)
	open   map[string]*Node
}

// newRig reserves addresses and directories of three nodes. change, if not nil, changes the
// configuration of each.
func newRig(t *testing.T, change func(*Config)) *rig {
	r := &rig{t: t, log: new(kit.Text), dirs: make(map[string]string), change: change, open: make(map[string]*Node)}
	for _, id := range []string{"a", "b", "c"} {
		r.routes = append(r.routes, Route{Node: id, Addr: kit.Reserve(t)})
		r.dirs[id] = t.TempDir()
	}
	t.Cleanup(func() {
		for id := range r.open {
			r.stop(id)
		}
		if strings.Contains(r.log.String(), testSecret) {
			t.Error("a secret is in the log")
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// config returns that of a node.
func (r *rig) config(id string) Config {
	c := Config{
		Cluster: "prod", Node: id, Routes: r.routes, Secret: testSecret, Dir: r.dirs[id], Partitions: 2, ElectionTimeout: testElection,
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", id),
	}
	for _, at := range r.routes {
		if at.Node == id {
			c.Listen = at.Addr
		}
	}
	if r.change != nil {
		r.change(&c)
	}
	return c
}

// start starts nodes.
func (r *rig) start(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		n, err := Start(r.t.Context(), r.config(id))
		if err != nil {
			r.t.Fatal(err)
		}
		r.open[id] = n
	}
}

// stop closes a node.
func (r *rig) stop(id string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.open[id].Close(ctx); err != nil {
		r.t.Errorf("node %s: %v", id, err)
	}
	delete(r.open, id)
}

// join waits until nodes have a quorum.
func (r *rig) join(ids ...string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for _, id := range ids {
		if err := r.open[id].AwaitQuorum(ctx); err != nil {
			r.t.Fatalf("node %s: %v", id, err)
		}
	}
}

// cluster starts three nodes and waits until they are one.
func cluster(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := newRig(t, change)
	r.start("a", "b", "c")
	r.join("a", "b", "c")
	return r
}

// until waits for what a node sees.
func (r *rig) until(id, what string, is func(Health) bool) Health {
	r.t.Helper()
	return until(r.t, what, func() (Health, bool) {
		h := r.open[id].Health(r.t.Context())
		return h, is(h)
	})
}

// until polls.
func until[T any](t *testing.T, what string, f func() (T, bool)) T {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		v, ok := f()
		if ok {
			return v
		}
		if time.Now().After(end) {
			t.Fatalf("still not: %s: %+v", what, v)
		}
	}
}

// lacking returns what a node that cannot join reports after a while.
func lacking(t *testing.T, n *Node, while time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), while)
	defer cancel()
	err := n.AwaitQuorum(ctx)
	if err == nil {
		t.Fatal("it has joined")
	}
	return err.Error()
}
