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
	partTCP    = "tcp"
	partPipes  = "pipes"
	partScan   = "scan"
	partWorker = "worker"
	partStart  = "start"
)

func allParts() []string { return []string{partTCP, partPipes, partScan, partWorker, partStart} }

// options are the flags.
type options struct {
	server, worker, peers, json string
	parts                       []string

	rounds, conns, depth, workers, runs int

	warmup, window, scan time.Duration
	quick, strict, spin  bool

	peer  string
	reply int
}

func parseFlags(args []string) (options, error) {
	var o options
	var parts string
	f := flag.NewFlagSet("toolhost", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.worker, "worker", "", "binary of the external tool; empty builds ./bench/toolhost/worker")
	f.StringVar(&o.peers, "peers", "bench/peers", "source folder of the peers, for the field scan")
	f.StringVar(&o.json, "json", "", "write all figures to this file")
	f.StringVar(&parts, "parts", strings.Join(allParts(), ","), "what to measure, comma separated")
	f.IntVar(&o.rounds, "rounds", 7, "rounds; medians are taken over them")
	f.IntVar(&o.conns, "conns", 64, "connections of the cells with many")
	f.IntVar(&o.depth, "depth", 64, "requests in flight per connection")
	f.IntVar(&o.workers, "workers", max(1, runtime.NumCPU()/2), "goroutines of the load generator")
	f.IntVar(&o.runs, "runs", 1000, "times that the program is started, in all rounds together")
	f.DurationVar(&o.warmup, "warmup", 200*time.Millisecond, "time before each measured window")
	f.DurationVar(&o.window, "window", time.Second, "measured time of each cell")
	f.DurationVar(&o.scan, "scan", 100*time.Millisecond, "measured time of each row of the field scan in a round")
	f.BoolVar(&o.quick, "quick", false, "a look: three rounds of 300 ms, 150 starts")
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a goal is missed")
	f.BoolVar(&o.spin, "spin", true, "the load generator of the pipelined TCP cells polls instead of sleeping, so that no server pays for waking it")
	f.StringVar(&o.peer, "peer", "", "be the peer: tcp or pipes; used by this program itself")
	f.IntVar(&o.reply, "reply", 0, "bytes of the peer's constant reply; 0 sends each line back")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.quick {
		o.rounds, o.warmup, o.window, o.scan, o.runs = 3, 100*time.Millisecond, 300*time.Millisecond, 30*time.Millisecond, 150
	}
	o.parts = strings.Split(parts, ",")
	return o, o.check(f.NArg())
}

func (o *options) check(more int) error {
	if min(o.rounds, o.conns, o.depth, o.workers, o.runs) < 1 || o.window <= 0 || o.scan <= 0 || more > 0 || o.reply < 0 {
		return fmt.Errorf("cannot run with these flags: counts and times are positive")
	}
	if o.conns*o.depth > maxInFlight || o.depth > maxDepth {
		return fmt.Errorf("cannot have %d×%d requests in flight: at most %d, and %d on a connection", o.conns, o.depth, maxInFlight, maxDepth)
	}
	for _, p := range o.parts {
		if !slices.Contains(allParts(), p) {
			return fmt.Errorf("cannot measure part %q: the parts are %s", p, strings.Join(allParts(), ", "))
		}
	}
	if o.peer != "" && o.peer != partTCP && o.peer != partPipes {
		return fmt.Errorf("cannot be peer %q: tcp or pipes", o.peer)
	}
	return nil
}

func (o *options) wants(part string) bool { return slices.Contains(o.parts, part) }

func main() { load.Main("toolhost", parseFlags, run) }

// run starts the servers, measures every round, prints and evaluates; or it is the peer.
func run(o options) (failed bool, err error) {
	if o.peer != "" {
		return false, servePeer(o.peer, o.reply)
	}
	if err := load.RaiseFileLimit(uint64(4 * (o.conns + 256))); err != nil {
		return false, err
	}
	b, err := newBench(o)
	if err != nil {
		return false, err
	}
	defer b.Close()
	b.GoesWithSignal()
	if err := b.startEcho(); err != nil {
		return false, err
	}
	all, err := goal.Rounds(o.rounds, b.steps(), os.Stderr)
	if err != nil {
		return false, err
	}
	r := reportOf(all, o)
	r.print(os.Stdout)
	return o.strict && goal.Missed(r.Goals), goal.WriteJSON(o.json, r)
}
