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

// conns and depth are the load of every measurement that does not name others.
const (
	conns = 64
	depth = 64
)

// What -quick makes of sizes.
const (
	quickRows   = 100_000
	quickGCRows = 100_000
	quickCrowd  = 1000
)

// leastRows is the smallest table that gives each connection rows of its own.
const leastRows = 10 * conns

// options are the flags.
type options struct {
	server, json, profile string
	parts                 []string

	rounds, rows, gcRows, idle, subscribers, payload, loops int

	warmup, window, gcWindow time.Duration
	quick, strict            bool
}

func parseFlags(args []string) (options, error) {
	var o options
	var parts string
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.json, "json", "", "write all figures to this file")
	f.StringVar(&o.profile, "profile", "", "rows: keep CPU profiles of the server with the largest table in this folder and print their tops")
	f.StringVar(&parts, "parts", strings.Join(partNames(), ","), "what to measure")
	f.IntVar(&o.rounds, "rounds", 5, "rounds; medians are taken over them")
	f.IntVar(&o.rows, "rows", 10_000_000, "rows: the largest table; the others are tenths of it")
	f.IntVar(&o.gcRows, "gc-rows", 1_000_000, "gc: processes in the table")
	f.IntVar(&o.idle, "idle", 10_000, "idle: the most connections")
	f.IntVar(&o.subscribers, "subscribers", 1000, "fanout: the most subscribers")
	f.IntVar(&o.payload, "payload", 1<<20, "payload: the most bytes")
	f.IntVar(&o.loops, "loops", max(1, runtime.NumCPU()/2), "event loops of the server, where they are not what is compared")
	f.DurationVar(&o.warmup, "warmup", 100*time.Millisecond, "time before each measured window")
	f.DurationVar(&o.window, "window", 400*time.Millisecond, "measured time of each cell")
	f.DurationVar(&o.gcWindow, "gc-window", 5*time.Second, "gc: measured time of each load")
	f.BoolVar(&o.quick, "quick", false, "two rounds of short cells of smaller sizes")
	f.BoolVar(&o.strict, "strict", false, "exit 1 when a goal is missed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.parts = strings.Split(parts, ",")
	if o.quick {
		o.rounds, o.warmup, o.window, o.gcWindow = 2, 50*time.Millisecond, 100*time.Millisecond, time.Second
		o.rows, o.gcRows, o.idle = min(o.rows, quickRows), min(o.gcRows, quickGCRows), min(o.idle, quickCrowd)
	}
	return o, o.check(f.NArg())
}

func (o options) check(rest int) error {
	least := min(o.rounds, o.idle, o.subscribers, o.loops)
	if least < 1 || min(o.rows, o.gcRows) < leastRows || o.payload < leastPayload || min(o.window, o.gcWindow) <= 0 || rest > 0 {
		return fmt.Errorf("cannot run with these flags: counts and times are positive, -rows and -gc-rows at least %d, -payload at least %d", leastRows, leastPayload)
	}
	for _, name := range o.parts {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("cannot measure part %q: want some of %s", name, strings.Join(partNames(), ", "))
		}
	}
	return nil
}

func main() { load.Main("scale", parseFlags, run) }

// part is one thing that grows.
type part struct {
	name    string
	measure func(b *bench) error
}

func allParts() []part {
	return []part{{"rows", (*bench).rows}, {"idle", (*bench).idle}, {"gc", (*bench).collector}, {"fanout", (*bench).fanout},
		{"payload", (*bench).payload}, {"loops", (*bench).tuning}}
}

func partNames() (names []string) {
	for _, p := range allParts() {
		names = append(names, p.name)
	}
	return names
}

// run measures the parts one after the other, prints and evaluates.
func run(o options) (failed bool, err error) {
	r, err := measure(o)
	if err != nil {
		return false, err
	}
	r.print(os.Stdout)
	return o.strict && goal.Missed(r.Goals), goal.WriteJSON(o.json, r)
}

func measure(o options) (*report, error) {
	if err := load.RaiseFileLimit(uint64(max(o.idle, o.subscribers) + spareConns)); err != nil {
		return nil, err
	}
	rig, err := load.ServerRig("scale-", o.server)
	if err != nil {
		return nil, err
	}
	defer rig.Close()
	rig.GoesWithSignal()
	b := &bench{Rig: rig, o: o, r: newReport(o)}
	for _, p := range allParts() {
		if !slices.Contains(o.parts, p.name) {
			continue
		}
		start := time.Now()
		if err := p.measure(b); err != nil {
			return nil, fmt.Errorf("cannot measure %s: %w", p.name, err)
		}
		b.StopAll()
		fmt.Fprintf(os.Stderr, "%s took %.0f s\n", p.name, time.Since(start).Seconds())
	}
	return b.r, nil
}
