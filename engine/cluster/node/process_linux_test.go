package node

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"trunkline/fuzz/kit"
)

// fleet is a cluster of three processes.
type fleet struct {
	*rig
	nodes map[string]*child
}

func newFleet(t *testing.T) *fleet {
	f := &fleet{rig: newRig(t, nil), nodes: make(map[string]*child)}
	for _, r := range f.routes {
		f.spawn(r.Node)
	}
	for _, c := range f.nodes {
		c.askUntil("join")
	}
	return f
}

func (f *fleet) spawn(id string) {
	f.t.Helper()
	c, a := spawn(f.t, f.config(id), f.log)
	if a.Err != "" {
		f.t.Fatal(a.Err)
	}
	f.nodes[id] = c
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	a, b, c := f.nodes["a"], f.nodes["b"], f.nodes["c"]
	for id, n := range f.nodes {
		got := n.ask("listens").Listens
		if len(got) != 1 || !strings.HasPrefix(got[0], "tcp 0100007F:") {
			t.Errorf("node %s listens at %v, want one address of loopback", id, got)
		}
	}
	a.askUntil("create")
	sent := 0
	send := func(to *child) {
		t.Helper()
		sent++
		to.askUntil(fmt.Sprintf("publish %d", sent))
	}
	send(a)
	send(b)
	send(c)

	leader := a.ask("health").Health.Leader
	f.nodes[leader].kill()
	alive := f.others(leader)
	h := alive[0].sees("another leader", func(h Health) bool { return h.Quorum && h.Leader != leader })
	for _, p := range h.Peers {
		if p.Seen == (p.Node == leader) {
			t.Errorf("after the loss of %s: %+v", leader, h.Peers)
		}
	}
	send(alive[0])
	send(alive[1])

	alive[1].kill()
	h = alive[0].sees("no quorum", func(h Health) bool { return !h.Quorum })
	if h.Current || !strings.Contains(h.lack(), "no majority of the nodes is seen") {
		t.Errorf("one of three: %+v, %s", h, h.lack())
	}
	if got := alive[0].ask("publish unheard"); got.Err == "" {
		t.Error("one of three acknowledged a write")
	}

	alive[0].kill()
	for _, r := range f.routes {
		f.spawn(r.Node)
	}
	for id, n := range f.nodes {
		n.askUntil("join")
		until(t, "all acknowledged writes at "+id, func() (answer, bool) {
			got := n.ask("count")
			// The write that was not acknowledged may be there: its outcome is unknown.
			return got, got.Err == "" && got.Count >= uint64(sent) && got.Count <= uint64(sent)+1
		})
	}
	send(f.nodes["b"])
	for id, n := range f.nodes {
		if got := n.ask("close"); got.Err != "" {
			t.Errorf("node %s: %s", id, got.Err)
		}
	}
}

// others returns the children but one.
func (f *fleet) others(id string) (list []*child) {
	for _, r := range f.routes {
		if r.Node != id {
			list = append(list, f.nodes[r.Node])
		}
	}
	return list
}

func TestTwoProcessesWithOneID(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	// b by mistake has the id of a, at its own address, in its own directory.
	f.nodes["b"].kill()
	cfg := f.config("b")
	cfg.Node = "a"
	_, got := spawn(t, cfg, f.log)
	if !strings.Contains(got.Err, "two nodes with one id") && !strings.Contains(got.Err, "cannot start") {
		t.Errorf("%q", got.Err)
	}
	if !strings.Contains(got.Err, `a node "a" answers at `+f.routes[0].Addr) {
		t.Errorf("%q", got.Err)
	}
	// A second process of a finds its directory and its address taken.
	if _, got = spawn(t, f.config("a"), f.log); got.Err == "" {
		t.Error("a runs twice")
	}
	cfg = f.config("a")
	cfg.Listen = kit.Reserve(t)
	cfg.Routes = []Route{{"a", cfg.Listen}, f.routes[1], f.routes[2]}
	if _, got = spawn(t, cfg, f.log); !strings.Contains(got.Err, "another process uses it") {
		t.Errorf("a directory in use: %q", got.Err)
	}
	f.nodes["c"].sees("a quorum", func(h Health) bool { return h.Quorum })
	f.spawn("b")
	f.nodes["b"].askUntil("join")
}

// signal sends one to a process.
func (c *child) signal(sig syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(sig); err != nil {
		c.t.Fatal(err)
	}
}

// TestPausedProcesses: connections to a process that stands still stay open.
func TestPausedProcesses(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.nodes["a"].askUntil("create")
	leader := f.nodes["a"].sees("a leader", func(h Health) bool { return h.Leader != "" }).Leader
	first, rest := f.nodes[leader], f.others(leader)
	for _, c := range rest {
		c.signal(syscall.SIGSTOP)
	}
	h := first.sees("silence", func(h Health) bool { return !h.Quorum })
	if h.Current || len(h.missing()) != 2 || !strings.Contains(h.Problem, "no majority of the nodes is seen") {
		t.Errorf("%+v", h)
	}
	for _, c := range rest {
		c.signal(syscall.SIGCONT)
	}
	for _, c := range f.nodes {
		c.askUntil("join")
	}
	leader = rest[0].sees("a leader", func(h Health) bool { return h.Leader != "" }).Leader
	first, rest = f.nodes[leader], f.others(leader)
	first.signal(syscall.SIGSTOP)
	rest[0].sees("another leader", func(h Health) bool { return h.Quorum && h.Leader != leader })
	rest[0].askUntil("publish 1")
	first.signal(syscall.SIGCONT)
	first.sees("the new leader", func(h Health) bool { return h.Quorum && h.Current && h.Leader != leader })
	first.askUntil("publish 2")
}
