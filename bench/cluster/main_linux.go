// Command cluster measures three nodes that share a journal, each a process on this machine: the
// part cluster of ./bench, which starts it. It is a module of its own, as it embeds etcd.
//
//	go run ./bench cluster                              ten minutes
//	go run ./bench cluster -only ratio                  beside etcd
//	go run ./bench cluster -only takeover -takeovers 5  how long nothing is answered
//	go run ./bench cluster -only memory                 what nodes hold
//
// Ratio: the clients of both are on this machine and connected to the node that decides, the owner
// of the journal and the leader of etcd. Trunkline is asked RecordUsage about 10,000 processes over
// 64 connections with 1 and with 16 requests in flight on each; every answer waits until a majority
// has synced the change. Members of etcd are asked to put 300 bytes under one of as many keys by
// its own client, 64 and 1024 at a time, over one connection for each 16: with one for all, its
// client is what is measured. Settings are the defaults but for what a busy machine would trip
// over: leases and elections of 5 s. The CPU time is that of all three processes.
//
// Takeover: the owner is killed with SIGKILL under load. What counts is the time from there until a
// client of another node has an answer to a change that it sent afterwards. A client whose
// connection ends connects again after 5 ms. Rounds in which the owner led the stream of the
// journal are counted apart from those in which another node did.
//
// What it does not show: a network, a disk for each node, more processors than the machine has.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// root is the repository's folder from the one that the program is started in.
const root = "../.."

func main() {
	args := os.Args[1:]
	if !part.IsChild(args) {
		if err := os.Chdir(root); err != nil {
			fmt.Fprintln(os.Stderr, "cluster:", err)
			os.Exit(1)
		}
	}
	os.Exit(part.Main([]part.Part{cluster()}, args, os.Stdout, os.Stderr))
}

// maxProcesses is how many a server may have.
const maxProcesses = 10_000_000

func cluster() part.Part {
	takeovers := 20
	return part.Part{
		Name: "cluster", What: "three nodes with one journal: beside etcd, when the owner dies, what they hold",
		Disk:     true,
		Children: map[string]func([]string) error{childMember: runMember},
		Defaults: func(o *part.Options) { o.Warmup, o.Window, o.Spin = 500*time.Millisecond, 2*time.Second, false },
		Quick: func(o *part.Options) {
			o.Warmup, o.Window, takeovers = 250*time.Millisecond, 500*time.Millisecond, 2
		},
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&takeovers, "takeovers", takeovers, "rounds of each kind of takeover")
		},
		Run: func(r *part.Run) error {
			return r.Sections(
				part.Section{Name: "ratio", Measure: ratio},
				part.Section{Name: "takeover", Measure: func(r *part.Run) error { return takeover(r, takeovers) }},
				part.Section{Name: "memory", Measure: memory},
			)
		},
	}
}

const (
	ours      = "trunkline"
	theirs    = "etcd"
	recording = "RecordUsage"
	putting   = "put 300 bytes"
	// steadyLease and steadyElection are long enough for a machine that is busy with a load.
	steadyLease    = 5 * time.Second
	steadyElection = 5 * time.Second
)

// sizes are the loads of the comparison: connections, and requests in flight on each. etcd's client
// has as many in flight in all.
var sizes = []struct {
	conns, depth int
	must         float64
}{{64, 1, 2}, {64, 16, 10}}

// measured is what a load showed: rate and latencies, and CPU time and memory of all servers.
func measured(r *part.Run, servers []*load.Server, l load.Running) (goal.Sample, error) {
	pids := make([]int, len(servers))
	for i, s := range servers {
		pids[i] = s.PID()
	}
	return load.MeasureRunning(l, pids, r.Warmup, r.Window)
}

// ratio measures acknowledged changes beside those of etcd.
func ratio(r *part.Run) error {
	c, err := startNodes(r, steadyLease, steadyElection)
	if err != nil {
		return err
	}
	owner := c.owner()
	if err := load.CreateRows(owner.server.Addr, 0, r.Rows); err != nil {
		return err
	}
	e, err := startEtcd(r)
	if err != nil {
		return err
	}
	defer e.close()
	var steps []goal.Step
	table := goal.Grid{Title: "acknowledged changes of three nodes, on a majority of disks", Head: []string{"cluster", "in flight", "acknowledged/s", "CPU µs of all nodes", "p50 ms", "p99 ms", "RSS MiB of all nodes"}}
	for _, at := range sizes {
		tapes := load.RowTapes(recording, 0, r.Rows, at.conns)
		cfg := r.Config(owner.server.Addr, load.Kernel, tapes, at.depth)
		steps = append(steps, goal.One(goal.Cell{Server: ours, Method: recording, Conns: at.conns, Depth: at.depth}, func() (goal.Sample, error) {
			s, err := load.Start(cfg)
			if err != nil {
				return goal.Sample{}, err
			}
			return measured(r, c.servers(), s)
		}), goal.One(e.cell(at.conns*at.depth), func() (goal.Sample, error) {
			return measured(r, e.servers, e.put(at.conns*at.depth, r.Rows))
		}))
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	for _, at := range sizes {
		us, them := goal.Cell{Server: ours, Method: recording, Conns: at.conns, Depth: at.depth}, e.cell(at.conns*at.depth)
		g := goal.Goal{What: fmt.Sprintf("acknowledged changes/s of three nodes / puts of etcd, %d in flight", at.conns*at.depth), Must: at.must, AtLeast: true}
		g.AddCPU("requests/s", r.Report.Ratio(us, them, goal.Rate), r.Report.Ratio(them, us, goal.CPU))
		r.Report.Goal(g)
		for _, cell := range []goal.Cell{us, them} {
			of := func(pick func(goal.Sample) float64) float64 { return r.Report.Median(cell, pick) }
			table.Add(cell.Server, at.conns*at.depth, of(goal.Rate), of(goal.CPU)/1e3, of(func(s goal.Sample) float64 { return s.P50 / 1e3 }),
				of(func(s goal.Sample) float64 { return s.P99 / 1e3 }),
				of(func(s goal.Sample) float64 { return goal.MiB(s.RSS) }))
		}
	}
	r.Report.Table(table)
	return nil
}

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
