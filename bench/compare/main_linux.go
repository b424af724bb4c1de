package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"trunkline/bench/internal/load"
)

// What a run without flags measures, and where its figures go.
const (
	suite       = "./bench/questions"
	figuresFile = "bench/data/questions.json"
)

// options are the flags.
type options struct {
	baseline, bench, json, keep, benchstat string

	packages         []string
	rounds, tries    int
	benchtime, again time.Duration
	failAbove        float64
	update, long     bool
}

func parseFlags(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.StringVar(&o.baseline, "baseline", "bench/data/baseline.txt", "benchmark text of the baseline, which names its revision")
	f.Func("package", "folder of the benchmarks, several times for several (default "+suite+")", func(dir string) error {
		o.packages = append(o.packages, dir)
		return nil
	})
	f.StringVar(&o.bench, "bench", ".", "benchmarks to run, a regular expression as for go test")
	f.IntVar(&o.rounds, "rounds", 6, "rounds of the first look")
	f.IntVar(&o.tries, "tries", 3, "tries of each benchmark in each round, of which the fastest counts")
	f.DurationVar(&o.benchtime, "benchtime", 10*time.Millisecond, "time of each try")
	f.DurationVar(&o.again, "again", 5*time.Minute, "time for measuring again, worst first, what seems to have moved")
	f.Float64Var(&o.failAbove, "fail", 5, "exit 1 when something got slower by more percent")
	f.StringVar(&o.json, "json", "auto", "write all figures to this file; auto is "+figuresFile+" for a run of everything and none otherwise")
	f.StringVar(&o.keep, "keep", "", "folder in which the benchmark text of both sides is kept")
	f.StringVar(&o.benchstat, "benchstat", "bench/report", "module with benchstat as a tool; empty leaves its table out")
	f.BoolVar(&o.long, "long", false, "also what the benchmarks leave out of a short run, tables of ten million rows, which take half a minute to fill for each process")
	f.BoolVar(&o.update, "update", false, "measure the sources as they are committed and write the baseline")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if len(o.packages) == 0 {
		o.packages = []string{suite}
	}
	if o.json == "auto" {
		if o.json = ""; o.bench == "." && slices.Equal(o.packages, []string{suite}) {
			o.json = figuresFile
		}
	}
	if o.rounds < 1 || o.tries < 1 || o.benchtime <= 0 || o.failAbove < 0 || f.NArg() > 0 {
		return o, fmt.Errorf("cannot run with these flags: counts and times are positive, and there are no arguments")
	}
	return o, nil
}

func main() { load.Main("compare", parseFlags, run) }

// run works in a folder of its own, which goes with it also after a signal.
func run(o options) (failed bool, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rig, err := load.NewRig("", "compare-bench-")
	if err != nil {
		return false, err
	}
	defer rig.Close()
	c := comparison{options: o, dir: rig.Dir, out: os.Stdout, progress: os.Stderr}
	if o.update {
		return false, c.writeBaseline(ctx)
	}
	faults, err := c.compare(ctx)
	if err == nil && (c.base == nil || c.lost != "") && len(faults) == 0 {
		fmt.Println("NOT COMPARED")
		return false, nil
	}
	return load.Faults(faults, err), err
}

// compare measures both sides, reports what moved, and returns what must not have.
func (c *comparison) compare(ctx context.Context) (faults []string, err error) {
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	if err := c.showTable(ctx); err != nil {
		return nil, err
	}
	list, err := c.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	r := c.reportOf(list)
	r.print(c.out)
	return r.faults(c.failAbove), c.writeReport(r)
}
