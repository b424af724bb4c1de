package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// The parts of a run.
const (
	partCells    = "cells"
	partRestart  = "restart"
	partThreads  = "threads"
	partProjects = "projects"
)

// quickRows is the table that -quick restarts.
const quickRows = goalRows / 4

// options are the flags.
type options struct {
	server, dir, redis, clients, json, profile string
	parts                                      []string

	rounds, rows, loops, workers, restartRows, restarts int

	warmup, window, paced    time.Duration
	quick, strict, spin, pin bool
	peer, peerFile           string
}

func parseFlags(args []string) (options, error) {
	var o options
	var parts string
	half := max(1, runtime.NumCPU()/2)
	f := flag.NewFlagSet("store", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.dir, "dir", "", "folder on a disk for the stores; empty: the system's folder for large temporary files, or the current one if that is memory")
	f.StringVar(&o.redis, "redis", "auto", "redis-server as one more peer: auto (if installed), off, or the path of its binary")
	f.StringVar(&o.clients, "mcp-clients", "", "folder with the packages of MCP for node (handlers/threads/conformance/testdata/clients/install.sh); empty: where that puts them")
	f.StringVar(&parts, "parts", partCells+","+partRestart, "what to measure: cells (methods beside peers and memory), restart (a large table, and latency during its snapshots), threads (agent threads beside the kernel and peers), projects (projects beside a trivial tool and the bus)")
	f.StringVar(&o.json, "json", "", "write all figures to this file")
	f.StringVar(&o.profile, "profile", "", "afterwards, keep CPU profiles of mode always in this folder and print their tops")
	f.IntVar(&o.rounds, "rounds", 5, "rounds; medians are taken over them")
	f.IntVar(&o.rows, "rows", 10000, "processes in the table of the cells")
	f.IntVar(&o.loops, "loops", half, "event loops of trunkline")
	f.IntVar(&o.workers, "workers", half, "goroutines of the load generator")
	f.IntVar(&o.restartRows, "restart-rows", goalRows, "processes in the table that is restarted")
	f.IntVar(&o.restarts, "restarts", 3, "restarts of each kind; medians are taken over them")
	f.DurationVar(&o.warmup, "warmup", 250*time.Millisecond, "time before each measured window")
	f.DurationVar(&o.window, "window", time.Second, "measured time of each cell")
	f.DurationVar(&o.paced, "paced", 10*time.Second, "time of each method under a paced load while snapshots are written")
	f.BoolVar(&o.quick, "quick", false, "two rounds of short cells, one restart of each kind of a smaller table")
	f.BoolVar(&o.pin, "pin", false, "servers on one half of the CPUs, load on the other")
	f.BoolVar(&o.spin, "spin", false, "the load generator polls instead of sleeping")
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a goal is missed")
	f.StringVar(&o.peer, "peer", "", "be the peer: always or everysec, or http, a handler of net/http")
	f.StringVar(&o.peerFile, "peer-file", "", "file the peer appends to")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.parts = strings.Split(parts, ",")
	if o.quick {
		o.rounds, o.warmup, o.window, o.restarts, o.paced = 2, 100*time.Millisecond, 300*time.Millisecond, 1, 4*time.Second
		asked := false
		f.Visit(func(f *flag.Flag) { asked = asked || f.Name == "restart-rows" })
		if !asked {
			o.restartRows = quickRows
		}
	}
	return o, o.check(f.NArg())
}

func (o options) check(rest int) error {
	least := min(o.rounds, o.loops, o.workers, o.restarts)
	if least < 1 || o.rows < 2*manyConns || o.restartRows < 2*manyConns || o.window <= 0 || o.paced <= 0 || rest > 0 {
		return fmt.Errorf("cannot run with these flags: counts and times are positive, -rows and -restart-rows are at least %d", 2*manyConns)
	}
	for _, p := range o.parts {
		if !slices.Contains([]string{partCells, partRestart, partThreads, partProjects}, p) {
			return fmt.Errorf("cannot measure part %q: want %s, %s, %s or %s", p, partCells, partRestart, partThreads, partProjects)
		}
	}
	if o.peer != "" && o.peer != peerHTTP && (o.peer != "always" && o.peer != "everysec" || o.peerFile == "") {
		return fmt.Errorf("cannot be peer %q with file %q: want always or everysec, and -peer-file, or %s", o.peer, o.peerFile, peerHTTP)
	}
	return nil
}

func main() { load.Main("store", parseFlags, run) }

// run measures every part, prints and evaluates; or it is the peer.
func run(o options) (failed bool, err error) {
	switch o.peer {
	case peerHTTP:
		return false, runBareHandler(os.Stdout)
	case "":
	default:
		return false, runPeer(o.peerFile, o.peer == "everysec")
	}
	if err := load.RaiseFileLimit(8 * manyConns); err != nil {
		return false, err
	}
	b, err := newBench(o)
	if err != nil {
		return false, err
	}
	defer b.Close()
	b.GoesWithSignal()
	r := newReport(b.Dir, o)
	if slices.Contains(o.parts, partCells) {
		err = b.cells(&r)
	} else {
		err = r.disk.measure(b.Dir)
	}
	if err == nil && slices.Contains(o.parts, partRestart) {
		err = b.restart(&r)
	}
	if err == nil && slices.Contains(o.parts, partThreads) {
		err = b.threads(&r)
	}
	if err == nil && slices.Contains(o.parts, partProjects) {
		err = b.projects(&r)
	}
	if err != nil {
		return false, err
	}
	r.conclude()
	r.print(os.Stdout)
	if err := goal.WriteJSON(o.json, r); err != nil {
		return false, err
	}
	if o.profile != "" {
		if err := b.profile(); err != nil {
			return false, err
		}
	}
	return o.strict && missed(r.Goals), nil
}
