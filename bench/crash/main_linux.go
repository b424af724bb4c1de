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
	f.IntVar(&o.rounds, "rounds", 200, "rounds in each mode")
	f.StringVar(&o.mode, "mode", "both", "store.mode: always, interval or both")
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
	if o.rounds < 1 || diskMiB < 1 || o.limit <= 0 || f.NArg() > 0 || o.modes() == nil {
		return o, errors.New("cannot run with these flags: counts and times are positive, -mode is always, interval or both")
	}
	return o, nil
}

func (o options) modes() []string {
	switch o.mode {
	case "both":
		return []string{"always", "interval"}
	case "always", "interval":
		return []string{o.mode}
	}
	return nil
}

func main() {
	o, err := parseFlags(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	faults, err := run(o)
	for _, f := range faults {
		fmt.Println("FAIL", f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash:", err)
	}
	if err != nil || len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Println("PASS")
}

// run plays every mode until one shows a fault.
func run(o options) (faults []string, err error) {
	temp, err := os.MkdirTemp("", "crash-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder: %w", err)
	}
	defer func() {
		if o.keep || len(faults) > 0 || err != nil {
			fmt.Println("kept", temp)
			return
		}
		os.RemoveAll(temp)
	}()
	path, err := load.FindBinary(o.server, "./cmd/trunkline", temp)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	fmt.Printf("seed %d, %d rounds\n", o.seed, o.rounds)
	for _, mode := range o.modes() {
		faults, err = newGame(o, mode, path, temp).play(ctx, o.rounds, func(line string) { fmt.Println(line) })
		if err != nil || len(faults) > 0 {
			return faults, err
		}
	}
	return nil, nil
}
