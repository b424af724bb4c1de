package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"trunkline/fuzz/rounds"
	"trunkline/handlers/ipc/ipcclient"
)

// countedConn counts the writes that the system has taken.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(1)
	return n, err
}

// TestClusterPausedOwner: an owner is stopped for longer than its lease, and has requests waiting
// when it goes on. None of its answers shows the state that was before the next owner's changes.
func TestClusterPausedOwner(t *testing.T) {
	longBesideOthers(t)
	r := newClusterRig(t)
	for round := range rounds.Few(1, 1) {
		pid, queued := fmt.Sprint("p", round), fmt.Sprint("q", round)
		old := r.owner(r.nodes...)
		c := &clusterClient{node: old}
		for _, pid := range []string{pid, queued} {
			c.surely("a process", func(ctx context.Context, conn *ipcclient.Conn) error {
				_, err := conn.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: pid})
				return err
			})
		}
		c.surely("its start", func(ctx context.Context, conn *ipcclient.Conn) error {
			_, err := conn.GetNextRunnable(ctx, true) // the one that was made first
			return err
		})
		c.close()
		stale := newStaleReads(t, old, pid, queued)
		old.pause()
		stale.send()
		others := r.but(old)
		next := r.owner(others...)
		c = &clusterClient{node: next}
		c.surely("a change", func(ctx context.Context, conn *ipcclient.Conn) error {
			_, err := conn.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: 7})
			return err
		})
		c.surely("the end of a process", func(ctx context.Context, conn *ipcclient.Conn) error {
			_, err := conn.TerminateProcess(ctx, ipcclient.TerminateProcess{PID: queued})
			return err
		})
		c.close()
		old.signal(syscall.SIGCONT)
		stale.check()

		r.until("the node that was stopped is a standby", func() bool { return old.role() == "standby" && old.isReady() })
		c = &clusterClient{node: old}
		c.surely("what the owner has", func(ctx context.Context, conn *ipcclient.Conn) error {
			p, err := conn.GetProcess(ctx, pid)
			if err == nil && p.Usage.LLMCalls < 7 {
				t.Errorf("the node that was stopped forwards: %+v", p)
			}
			return err
		})
		c.close()
	}
}

// staleReads is reads on connections that were open before an owner was stopped: one connection for
// each, and one for all.
type staleReads struct {
	t     *testing.T
	conns []*ipcclient.Conn
	wires []*countedConn
	reads []func(context.Context, *ipcclient.Conn) (stale bool, err error)
	wg    sync.WaitGroup
}

func newStaleReads(t *testing.T, n *clusterNode, pid, queued string) *staleReads {
	s := &staleReads{t: t}
	s.reads = []func(context.Context, *ipcclient.Conn) (bool, error){
		func(ctx context.Context, c *ipcclient.Conn) (bool, error) {
			p, err := c.GetProcess(ctx, pid)
			return p.Usage.LLMCalls < 7, err
		},
		func(ctx context.Context, c *ipcclient.Conn) (bool, error) {
			q, err := c.CheckQuota(ctx, pid)
			return q.LLMCalls < 7, err
		},
		func(ctx context.Context, c *ipcclient.Conn) (bool, error) {
			p, err := c.GetNextRunnable(ctx, false)
			return p.PID == queued, err
		},
		func(ctx context.Context, c *ipcclient.Conn) (bool, error) {
			list, err := c.ListProcesses(ctx, ipcclient.ListProcesses{UserID: pid})
			return len(list.Processes) != 1 || list.Processes[0].Usage.LLMCalls < 7, err
		},
	}
	for range len(s.reads) + 1 {
		nc, err := net.Dial("tcp", n.kernel)
		if err != nil {
			t.Fatal(err)
		}
		w := &countedConn{Conn: nc}
		c := ipcclient.New(w)
		t.Cleanup(func() { c.Close() })
		if _, err := c.GetProcess(t.Context(), pid); err != nil { // the server has accepted it
			t.Fatal(err)
		}
		s.conns, s.wires = append(s.conns, c), append(s.wires, w)
	}
	return s
}

// send sends the reads, and waits until the system has them.
func (s *staleReads) send() {
	before := make([]int64, len(s.wires))
	for i, w := range s.wires {
		before[i] = w.written.Load()
	}
	ask := func(i, read int) {
		s.wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), clusterPatience)
			defer cancel()
			if stale, err := s.reads[read](ctx, s.conns[i]); err == nil && stale {
				s.t.Errorf("read %d on connection %d shows the state before another node changed it", read, i)
			} else if ctx.Err() != nil {
				s.t.Errorf("read %d on connection %d has no answer and no end", read, i)
			}
		})
	}
	for i := range s.reads {
		ask(i, i)
		ask(len(s.reads), i)
	}
	r := &clusterRig{t: s.t}
	for i, w := range s.wires {
		r.until("the requests are sent", func() bool { return w.written.Load() > before[i] })
	}
}

// check waits for the end of each.
func (s *staleReads) check() { s.wg.Wait() }
