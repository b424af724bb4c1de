package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"trunkline/bench/internal/load"
)

type options struct {
	server, mode string
	out          string // folder of histories that no order explains; empty: the temporary one
	rounds       int
	seed         uint64
	keep         bool
	disk         int64 // bytes a directory may have before another is begun
	settings     []string
	limit        time.Duration
}

func parseFlags(args []string) (options, error) {
	var o options
	var diskMiB int64
	f := flag.NewFlagSet("crash", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.IntVar(&o.rounds, "rounds", 200, "rounds in all; of memory there are a few more")
	f.StringVar(&o.mode, "mode", "all", "store.mode: always, interval, memory or all")
	f.StringVar(&o.out, "out", "", "folder for the pages of histories that no order explains; empty keeps them with the directories")
	f.Uint64Var(&o.seed, "seed", 0, "of the instants and requests; 0 draws one")
	f.BoolVar(&o.keep, "keep", false, "keep the directories, also when nothing was wrong")
	f.Int64Var(&diskMiB, "disk", 1024, "MiB that a directory may have before another is begun")
	f.DurationVar(&o.limit, "time", time.Hour, "after which the rest is given up as failed")
	f.Func("set", "further setting of the server, key=value; may be repeated", func(kv string) error {
		o.settings = append(o.settings, kv)
		return nil
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.disk = diskMiB << 20; o.seed == 0 {
		o.seed = rand.Uint64()
	}
	if o.rounds < 1 || diskMiB < 1 || o.limit <= 0 || f.NArg() > 0 || o.legs() == nil {
		return o, errors.New("cannot run with these flags: counts and times are positive, -mode is always, interval, memory or all")
	}
	return o, nil
}

// legs take turns. Of memory there is a round whenever its turn comes, beside those that were asked
// for.
func (o options) legs() []leg {
	always, interval := leg{mode: "always"}, leg{mode: "interval"}
	oftenAlways, oftenInterval := leg{"always", true}, leg{"interval", true}
	switch o.mode {
	case "all":
		return []leg{{mode: "memory"}, always, oftenInterval, oftenAlways, interval}
	case "always":
		return []leg{always, oftenAlways}
	case "interval":
		return []leg{interval, oftenInterval}
	case "memory":
		return []leg{{mode: "memory"}}
	}
	return nil
}

func main() {
	load.Main("crash", parseFlags, func(o options) (failed bool, err error) {
		faults, err := run(o)
		return load.Faults(faults, err), err
	})
}

// unknownShare is the part of the histories, one in so many, that may stay undecided.
const unknownShare = 50

// inARow is how many rounds a leg has on one directory; a replay goes over all of them.
const inARow = 10

// run plays the legs in turn until there were as many rounds as asked for, or one shows a fault.
func run(o options) (faults []string, err error) {
	rig, err := load.ServerRig("crash-", o.server)
	if err != nil {
		return nil, err
	}
	defer func() {
		if o.keep || len(faults) > 0 || err != nil {
			fmt.Println("kept", rig.Dir)
			return
		}
		rig.Close()
	}()
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	fmt.Printf("seed %d, %d rounds\n", o.seed, o.rounds)
	total, began := &tally{}, time.Now()
	defer func() {
		total.summary(os.Stdout)
		fmt.Printf("time        %v\n", time.Since(began).Round(time.Second))
	}()
	for number, left := 0, o.rounds; left > 0 && err == nil && len(faults) == 0; number++ {
		l := o.legs()[number%len(o.legs())]
		faults, left, err = o.turn(ctx, l, number, left, rig, total)
	}
	if n, of := total[historiesUnknown].Load(), total[historiesEvaluated].Load(); n*unknownShare > of {
		faults = append(faults, fmt.Sprintf("%d of %d histories were not decided in time", n, of))
	}
	return faults, err
}

// turn plays a leg's rounds in a row, of the left ones that are still to be played.
func (o options) turn(ctx context.Context, l leg, number, left int, rig *load.Rig, total *tally) (faults []string, stillLeft int, err error) {
	g, n := newGame(o, l, number, rig.Binary, rig.Dir), min(inARow, left)
	switch {
	case l.mode != "memory":
		faults, err = g.play(ctx, n)
	case o.mode == "memory":
		faults, err = g.playMemory(ctx, n)
	default:
		n = 0
		faults, err = g.playMemory(ctx, 1)
	}
	total.merge(&g.count)
	if n > 0 {
		fmt.Printf("%4d rounds left after %d of %s\n", left-n, n, l)
	}
	return faults, left - n, err
}
