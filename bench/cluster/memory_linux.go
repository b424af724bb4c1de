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
	standby := c.all[0]
	if standby == owner {
		standby = c.all[1]
	}
	single, err := r.Trunkline(server(r, "always")...)
	if err != nil {
		return err
	}
	servers := []*load.Server{owner.server, standby.server, single}
	idle, err := holdings(servers)
	if err != nil {
		return err
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
	full, err := holdings(servers)
	if err != nil {
		return err
	}
	t := goal.Grid{Title: "resident memory, MiB", Head: []string{"process", "idle", "full", "peak", "bytes a process", "live bytes a process", "processes"}}
	for i, what := range []string{"owner", "standby", "single server"} {
		before, m := idle[i], full[i]
		t.Add(what, goal.MiB(before.RSS), goal.MiB(m.RSS), goal.MiB(m.Peak), float64(m.RSS-before.RSS)/float64(rows), (m.live-before.live)/float64(rows), rows)
	}
	r.Report.Table(t)
	return nil
}

// holding is what a server holds.
type holding struct {
	load.Memory
	live float64 // bytes of its heap in use, after its garbage was collected: what is resident depends on when that was
}

// holdings looks at servers after a while.
func holdings(servers []*load.Server) (all []holding, err error) {
	time.Sleep(settleAfter)
	for _, s := range servers {
		var h holding
		if h.Memory, err = s.Memory(); err != nil {
			return nil, err
		}
		if err := s.Download("/debug/pprof/heap?gc=1", os.DevNull, time.Minute); err != nil {
			return nil, err
		}
		m, err := s.Metrics()
		if err != nil {
			return nil, err
		}
		h.live = m["go_memstats_heap_alloc_bytes"]
		all = append(all, h)
	}
	return all, nil
}
