package main

import (
	"os"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

const (
	// fullRows is how many processes nodes hold, a quarter of it in a quick run.
	fullRows = 1_000_000
	// settleAfter is how long a server has for its garbage.
	settleAfter = 5 * time.Second
	// appended is the metric of the last record that a process has.
	appended = "trunkline_store_appended_index"
)

// memory shows what nodes and a single server hold without processes, and with many.
func memory(r *part.Run) error {
	rows := fullRows
	if r.Quick {
		rows /= 4
	}
	c, err := startNodes(r, steadyLease, steadyElection)
	if err != nil {
		return err
	}
	owner := c.owner()
	standby := c.but(owner)[0]
	single, err := r.Trunkline(server(r, "always")...)
	if err != nil {
		return err
	}
	t := goal.Grid{Title: "resident memory, MiB", Head: []string{"process", "idle", "full", "peak", "bytes a process", "live bytes a process", "processes"}}
	processes := []struct {
		what   string
		server *load.Server
	}{{"owner", owner.server}, {"standby", standby.server}, {"single server", single}}
	idle, live := make([]load.Memory, len(processes)), make([]float64, len(processes))
	time.Sleep(settleAfter)
	for i, s := range processes {
		if idle[i], err = s.server.Memory(); err != nil {
			return err
		}
		if live[i], err = heap(s.server); err != nil {
			return err
		}
	}
	for _, s := range []*load.Server{owner.server, single} {
		if err := load.CreateRows(s.Addr, 0, rows); err != nil {
			return err
		}
	}
	all := owner.metric(appended)
	if err := await("the standby has all records", func() bool { return standby.metric(appended) >= all }); err != nil {
		return err
	}
	time.Sleep(settleAfter)
	for i, s := range processes {
		m, err := s.server.Memory()
		if err != nil {
			return err
		}
		inUse, err := heap(s.server)
		if err != nil {
			return err
		}
		t.Add(s.what, goal.MiB(idle[i].RSS), goal.MiB(m.RSS), goal.MiB(m.Peak), float64(m.RSS-idle[i].RSS)/float64(rows), (inUse-live[i])/float64(rows), rows)
	}
	r.Report.Table(t)
	return nil
}

// heap returns how many bytes a server's heap has in use, after its garbage was collected: what is
// resident depends on when that was.
func heap(s *load.Server) (float64, error) {
	if err := s.Download("/debug/pprof/heap?gc=1", os.DevNull, time.Minute); err != nil {
		return 0, err
	}
	m, err := s.Metrics()
	return m["go_memstats_heap_alloc_bytes"], err
}
