package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// options are the flags.
type options struct {
	server, peers, peersBin, redis, peer, json, profile string

	rounds, gridRounds, rows, conns, many, depth, loops, workers int

	warmup, window                      time.Duration
	quick, pin, goalsOnly, strict, spin bool
}

func parseFlags(args []string) (options, error) {
	var o options
	half := max(1, runtime.NumCPU()/2)
	f := flag.NewFlagSet("wire", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.peers, "peers", "bench/peers", "source folder of the peers")
	f.StringVar(&o.peersBin, "peers-bin", "", "folder with built peers; empty builds them")
	f.StringVar(&o.redis, "redis", "auto", "redis-server: its path, off, or auto for the installed one, if there is one")
	f.StringVar(&o.peer, "peer", "", "host:port of one more kernel IPC server, already running, measured in all of the grid")
	f.StringVar(&o.json, "json", "", "write all figures to this file")
	f.StringVar(&o.profile, "profile", "", "afterwards, keep CPU profiles of trunkline in this folder and print their tops")
	f.IntVar(&o.rounds, "rounds", 7, "rounds of the cells that goals are about; medians are taken over them")
	f.IntVar(&o.gridRounds, "grid-rounds", 3, "rounds of the other cells of the grid")
	f.IntVar(&o.rows, "rows", 10000, "processes in the table")
	f.IntVar(&o.conns, "conns", 64, "connections of the pipelined cells; the grid has 1 and -many as well")
	f.IntVar(&o.many, "many", 1000, "connections of the largest cells")
	f.IntVar(&o.depth, "depth", 64, "requests in flight per connection of the pipelined cells; the grid has 1 and a quarter of it as well")
	f.IntVar(&o.loops, "loops", half, "event loops of trunkline and baregnet")
	f.IntVar(&o.workers, "workers", half, "goroutines of the load generator")
	f.DurationVar(&o.warmup, "warmup", 100*time.Millisecond, "time before each measured window")
	f.DurationVar(&o.window, "window", 600*time.Millisecond, "measured time of each cell")
	f.BoolVar(&o.quick, "quick", false, "a look: two rounds, one of the wider grid, short windows")
	f.BoolVar(&o.goalsOnly, "goals-only", false, "leave out the cells that no goal is about")
	f.BoolVar(&o.pin, "pin", false, "servers on one half of the CPUs, load on the other")
	f.BoolVar(&o.spin, "spin", true, "the load generator of the pipelined cells polls instead of sleeping, so that no server pays for waking it")
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a goal is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.gridRounds, o.warmup, o.window = 2, 1, 50*time.Millisecond, 200*time.Millisecond
	}
	return o, o.check(f.NArg())
}

// check refuses sizes that are no grid, and words that are no flags.
func (o *options) check(words int) error {
	switch {
	case words > 0:
		return errors.New("cannot take anything but flags")
	case o.rounds < 1 || o.gridRounds < 1 || o.loops < 1 || o.workers < 1:
		return errors.New("cannot run with these flags: rounds, loops and workers are at least 1")
	case o.conns < 2 || o.many <= o.conns || o.depth < 8:
		return errors.New("cannot make a grid: -conns is at least 2, -many more than that, -depth at least 8")
	case o.rows < o.many:
		return fmt.Errorf("cannot give every connection a row of its own: -rows is at least -many, %d", o.many)
	case o.window < pacedSlice || o.warmup < 0 || o.window > time.Minute || o.warmup > o.window:
		return fmt.Errorf("cannot measure %v after %v: -window is %v to 1m, -warmup at most -window", o.window, o.warmup, pacedSlice)
	}
	return nil
}

func main() { load.Main("wire", parseFlags, run) }

// openFiles are a connection of the largest cells at both ends, and some.
func (o *options) openFiles() uint64 { return uint64(4*o.many + 1000) }

// run starts the servers, measures every round, prints and evaluates.
func run(o options) (failed bool, err error) {
	if err := load.RaiseFileLimit(o.openFiles()); err != nil {
		return false, err
	}
	field, err := startField(o)
	if err != nil {
		return false, err
	}
	defer field.Close()
	field.GoesWithSignal()
	all, err := field.measure()
	if err != nil {
		return false, err
	}
	r := reportOf(all, field.missing, o)
	r.print(os.Stdout)
	if err := goal.WriteJSON(o.json, r); err != nil {
		return false, err
	}
	if o.profile != "" {
		if err := field.profile(o.profile); err != nil {
			return false, err
		}
	}
	return o.strict && goal.Missed(r.Goals), nil
}
