package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// smallDisk is a file system in memory whose size changes.
type smallDisk struct {
	t   *testing.T
	dir string
}

// Room on a small disk, in bytes.
const (
	// muchRoom is what a node has that has enough.
	muchRoom = 4 << 30
	// lowRoom is less than what a store is to have left.
	lowRoom = 300 << 20
	// noRoom is gone after some records.
	noRoom = 16 << 10
)

// newSmallDisk mounts one with much room until the test ends, and returns nil where that is not
// permitted.
func newSmallDisk(t *testing.T) *smallDisk {
	t.Helper()
	d := &smallDisk{t: t, dir: t.TempDir()}
	switch err := syscall.Mount("none", d.dir, "tmpfs", 0, fmt.Sprint("size=", muchRoom)); {
	case errors.Is(err, syscall.EPERM):
		return nil
	case err != nil:
		t.Fatal("cannot mount a small disk: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(d.dir, syscall.MNT_DETACH) })
	return d
}

// leave changes the size so that some room is left.
func (d *smallDisk) leave(room int64) {
	d.t.Helper()
	var now syscall.Statfs_t
	err := syscall.Statfs(d.dir, &now)
	if err == nil {
		used := int64(now.Blocks-now.Bfree) * now.Bsize
		err = syscall.Mount("none", d.dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprint("size=", used+room))
	}
	if err != nil {
		d.t.Fatal("cannot change the size of a disk: ", err)
	}
}

// own has a node own the journal.
func (s *soak) own(n *clusterNode) {
	s.t.Helper()
	for {
		owner := s.owner(s.nodes...)
		if owner == n {
			return
		}
		owner.terminate()
		s.owner(s.but(owner)...)
		s.start(owner)
		s.ready(owner)
	}
}

// fill leaves some room on the disk of the first node, which owns the journal or not. It refuses
// what it cannot keep, or is replaced; the others go on without it.
func (s *soak) fill(room int64) {
	s.t.Helper()
	if s.disk == nil {
		return
	}
	n := s.nodes[0]
	if s.rng.IntN(3) > 0 {
		s.own(n)
	}
	logged := len(n.out.String())
	s.disk.leave(room)
	if n.role() == "owner" {
		s.until("the owner is full, or was replaced", func() bool { return !n.isReady() || n.role() != "owner" })
	}
	s.some(time.Second / 2)
	if room < lowRoom && s.rng.IntN(2) == 0 { // what was stopped for want of room begins again by itself
		s.owner(s.but(n)...)
		s.load.more(20)
		s.disk.leave(muchRoom)
		if !n.runs() && strings.Contains(n.out.String()[logged:], "no space left for the rows") { // which ends the process
			s.start(n)
		}
		s.ready(n)
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // one without any room may have ended
	s.owner(s.but(n)...)
	s.load.more(20)
	s.disk.leave(muchRoom)
	s.until("a node with a full disk ends", func() bool { return !n.runs() })
	s.start(n)
	s.ready(n)
}

// TestClusterFullDisk: where no node has room, the owner refuses changes with the answer of a
// single server, and answers reads. A node that has room again owns the journal by itself.
func TestClusterFullDisk(t *testing.T) {
	longBesideOthers(t)
	var disks []*smallDisk
	r := makeClusterRig(t, 3, t.TempDir, nil)
	for _, n := range r.nodes {
		disk := newSmallDisk(t)
		if disk == nil {
			t.Skip("it mounts a tmpfs of its own, which takes the right to mount")
		}
		n.dir, disks = disk.dir, append(disks, disk)
	}
	r.startLinked()
	book := &usageBook{procs: make(map[string]*usageRow)}
	c := &clusterClient{node: r.nodes[1]}
	defer c.close()
	r.until("a process", func() bool { return book.create(c, "p") })
	r.until("an addition", func() bool { return book.add(c, "p") })
	for i, n := range r.nodes {
		disks[i].leave(lowRoom)
		r.until("the node has no room", func() bool {
			var body strings.Builder
			return n.read("/readyz", &body) == http.StatusServiceUnavailable && strings.Contains(body.String(), "storage_full")
		})
	}
	n := r.owner(r.nodes...)
	r.until("a change is refused", func() bool {
		_, err := c.do(func(ctx context.Context, conn *ipcclient.Conn) error {
			_, err := conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: "p", LLMCalls: 1})
			return err
		})
		var said *ipcclient.Error
		switch {
		case !errors.As(err, &said):
			book.row("p").unknown++
		case said.Code != wire.ResourceExhausted || !said.Retryable:
			t.Errorf("a change on a full disk: %v", err)
		}
		return said != nil
	})
	book.check(r.nodes[2])
	if owner := r.owner(r.nodes...); owner != n {
		t.Errorf("node %s owns the journal, and has no more room than node %s", owner.id, n.id)
	}
	for i, other := range r.nodes {
		if other != n {
			disks[i].leave(muchRoom)
			r.owner(other)
			break
		}
	}
	r.until("an addition on another disk", func() bool { return book.add(c, "p") })
	for i := range disks {
		disks[i].leave(muchRoom)
	}
	r.ready(r.nodes...)
	r.caughtUp(n)
	book.checkAll(r)
}
