// Package part is what the parts of ./bench have in common: their options, the rig that each of
// them stands on, and the report that each of them leaves.
//
// A part is a Part in the table of ./bench. Its Run measures, and puts what it found into the
// Report: cells, goals, charts, tables and faults. The report prints itself and is written to
// bench/data/PART.json, from which bench/report makes BENCHMARKS.md.
package part

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// Part is one thing that can be measured.
type Part struct {
	Name string // on the command line, and of its file of figures
	What string // one line for the list of parts
	// Defaults changes the options that the part has other defaults for; nil: none.
	Defaults func(*Options)
	// Quick changes those that -quick shortens, beyond rounds, warm-up and window; nil: none.
	Quick func(*Options)
	// Flags adds flags that only this part has; nil: none.
	Flags func(*flag.FlagSet)
	// Children are what this program is as a process of its own beside the part, by names that no
	// other part uses: peers, most often. See Run.Child. Nil: none.
	Children map[string]func(args []string) error
	// Module is the folder of a module whose program has the part of this name, as what it needs is
	// not to be in the main one. It takes the flags as they are. Empty: this program measures.
	Module     string
	Serverless bool // it starts no trunkline
	Disk       bool // its files have to be on a disk: what a sync costs is a part of its figures
	Run        func(*Run) error
}

// Report is what a run found.
type Report = goal.Report

// Run is one run of a part.
type Run struct {
	Options
	*load.Rig
	Report *Report
}

// Rounds takes all steps in turns, Options.Rounds times, and adds what they left to the report's
// samples.
func (r *Run) Rounds(steps []goal.Step) error { return r.RoundsOf(r.Options.Rounds, steps) }

// RoundsOf is Rounds with another number of rounds.
func (r *Run) RoundsOf(n int, steps []goal.Step) error {
	all, err := goal.Rounds(n, steps, os.Stderr)
	r.Report.Samples = append(r.Report.Samples, all...)
	return err
}

// do runs a part with its options, prints its report and writes its figures. failed is set when
// something was wrong, or a goal was missed and the options are strict.
func (p *Part) do(o Options, out io.Writer) (failed bool, err error) {
	if err := load.RaiseFileLimit(); err != nil {
		return false, err
	}
	if p.Disk {
		if o.Dir, err = onDisk(o.Dir); err != nil {
			return false, err
		}
	}
	rig, err := load.NewRig(o.Dir, "trunkline-bench-")
	if err != nil {
		return false, err
	}
	s := goal.Settings{Rounds: o.Rounds, Window: o.Window.Seconds(), Rows: o.Rows, Loops: o.Loops, Workers: o.Workers, Spin: o.Spin, Pinned: o.Pin, Quick: o.Quick}
	if o.Only != nil {
		s.Only = o.Only.String()
	}
	r := &Run{Options: o, Rig: rig, Report: &Report{Part: p.Name, Machine: load.ThisMachine(), Settings: s}}
	defer rig.Close()
	rig.GoesWithSignal()
	if o.Pin {
		if r.LoadCPUs, err = rig.Divide(); err != nil {
			return false, err
		}
	}
	if !p.Serverless {
		if err := rig.FindServer(o.Server); err != nil {
			return false, err
		}
	}
	if p.Disk {
		r.Report.Machine.Disk = filesystem(rig.Dir)
	}
	if err := p.Run(r); err != nil {
		return false, err
	}
	r.Report.Cells = goal.Summarize(r.Report.Samples)
	r.Report.Print(out)
	if r.JSON != "" {
		if err := r.Report.Write(filepath.Join(r.JSON, p.Name+".json")); err != nil {
			return false, err
		}
	}
	return len(r.Report.Faults) > 0 || o.Strict && goal.Missed(r.Report.Goals), nil
}

// Exit statuses.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the parts that the arguments name, in their order, and returns the exit status: 2 for
// arguments that it cannot take, 1 after an error or when a part found something wrong, else 0. The
// names come first, then flags; no name lists the parts. With ChildArgs it is a child of a part.
func Main(parts []Part, args []string, out, complain io.Writer) int {
	if IsChild(args) {
		return beChild(parts, args[1:], complain)
	}
	chosen, rest, err := choose(parts, args)
	if err != nil {
		fmt.Fprintln(complain, err)
		return exitUsage
	}
	if len(chosen) == 0 {
		fmt.Fprintln(complain, "usage: go run ./bench PART... [flags]\n\nparts:")
		for _, p := range parts {
			fmt.Fprintf(complain, "  %-10s %s\n", p.Name, p.What)
		}
		fmt.Fprintln(complain, "\ngo run ./bench PART -help lists the flags.")
		return exitUsage
	}
	options := make([]Options, len(chosen))
	for i, p := range chosen {
		if p.Module != "" {
			continue
		}
		if options[i], err = p.parse(chosen, rest, complain); err != nil {
			if err != flag.ErrHelp {
				fmt.Fprintln(complain, err)
			}
			return exitUsage
		}
	}
	status := 0
	for i, p := range chosen {
		failed := false
		if p.Module != "" {
			cmd := exec.Command("go", append([]string{"-C", p.Module, "run", ".", p.Name}, rest...)...)
			cmd.Stdout, cmd.Stderr = out, complain
			err = cmd.Run()
		} else {
			fmt.Fprintf(complain, "== %s: %s\n", p.Name, p.What)
			failed, err = p.do(options[i], out)
		}
		if err != nil {
			fmt.Fprintf(complain, "%s: %v\n", p.Name, err)
		}
		if failed || err != nil {
			status = exitFailed
		}
	}
	return status
}

// choose returns the parts that are named before the first flag, and the flags.
func choose(parts []Part, args []string) (chosen []*Part, flags []string, err error) {
	for i, name := range args {
		if name == "" || name[0] == '-' {
			return chosen, args[i:], nil
		}
		j := slices.IndexFunc(parts, func(p Part) bool { return p.Name == name })
		if j < 0 {
			return nil, nil, fmt.Errorf("cannot measure %q: no such part; go run ./bench lists them", name)
		}
		chosen = append(chosen, &parts[j])
	}
	return chosen, nil, nil
}

// childFlag is the first argument of this program where it is the child of a run.
const childFlag = "-child"

// ChildArgs are the arguments with which this program is a child of that name (Part.Children), with
// arguments of its own.
func ChildArgs(name string, args ...string) []string {
	return slices.Concat([]string{childFlag, name}, args)
}

// IsChild reports that these are ChildArgs. A test binary whose parts have children passes them to
// Main from its TestMain.
func IsChild(args []string) bool { return len(args) > 0 && args[0] == childFlag }

// Child starts this program as a child that prints where it listens, as peers do. server is its
// name in the tables.
func (r *Run) Child(server, name string, args ...string) (*load.Server, error) {
	return r.Rig.Peer(server, "", ChildArgs(name, args...)...)
}

// beChild is the child that is named first until its end, and returns the exit status.
func beChild(parts []Part, args []string, complain io.Writer) int {
	for _, p := range parts {
		if len(args) == 0 || p.Children[args[0]] == nil {
			continue
		}
		if err := p.Children[args[0]](args[1:]); err != nil {
			fmt.Fprintf(complain, "%s: %v\n", args[0], err)
			return exitFailed
		}
		return 0
	}
	fmt.Fprintf(complain, "cannot be the child %q\n", args)
	return exitUsage
}

// Options are the flags that parts share. A part uses those that mean something to it.
type Options struct {
	Server  string // trunkline's binary; empty: built
	Dir     string // folder on a disk for stores and other files of the run
	JSON    string // folder for the files of figures; empty: none is written
	Profile string // folder for CPU profiles of the server, taken afterwards; empty: none
	Peer    string // host:port of one more server, already running
	Redis   string // redis-server: its path, off, or auto for the installed one, if there is one
	Clients string // folder with the packages of MCP for node

	Rounds, Rows, Conns, Many, Depth, Loops, Workers int

	Warmup, Window time.Duration

	Quick, Strict, Spin, Pin bool

	Only     *regexp.Regexp // names of the steps, scenes or sections to take; nil: all
	LoadCPUs []int          // of the load generator, when Pin is set
}

// Asked reports whether -only takes a step, a scene or a section of that name.
func (o *Options) Asked(name string) bool { return o.Only == nil || o.Only.MatchString(name) }

// parse reads the flags of a part and checks the sizes. Flags that only others of the chosen parts
// have are taken and go to them.
func (p *Part) parse(chosen []*Part, args []string, complain io.Writer) (Options, error) {
	half := max(1, runtime.NumCPU()/2)
	o := Options{
		JSON: "bench/data", Redis: "auto", Rounds: 5, Rows: 10_000, Conns: 64, Many: 1000, Depth: 64, Loops: half, Workers: half,
		Warmup: 100 * time.Millisecond, Window: 600 * time.Millisecond, Spin: true,
	}
	if p.Defaults != nil {
		p.Defaults(&o)
	}
	f := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.SetOutput(complain)
	f.StringVar(&o.Server, "server", o.Server, "trunkline binary; empty builds ./cmd/trunkline")
	f.StringVar(&o.Dir, "dir", o.Dir, "folder on a disk for stores; empty: the system's folder for temporary files")
	f.StringVar(&o.JSON, "json", o.JSON, "folder for the file of figures; empty: none")
	f.StringVar(&o.Profile, "profile", o.Profile,
		"afterwards, keep CPU profiles of trunkline in this folder and print their tops")
	f.StringVar(&o.Peer, "peer", o.Peer, "host:port of one more server, already running")
	f.StringVar(&o.Redis, "redis", o.Redis,
		"redis-server: its path, off, or auto for the installed one, if there is one")
	f.StringVar(&o.Clients, "mcp-clients", o.Clients, "folder with the packages of MCP for node; empty: where their install.sh puts them")
	f.IntVar(&o.Rounds, "rounds", o.Rounds, "rounds; medians are taken over them")
	f.IntVar(&o.Rows, "rows", o.Rows, "processes in the table")
	f.IntVar(&o.Conns, "conns", o.Conns, "connections of the pipelined cells")
	f.IntVar(&o.Many, "many", o.Many, "connections of the largest cells")
	f.IntVar(&o.Depth, "depth", o.Depth, "requests in flight per connection of the pipelined cells")
	f.IntVar(&o.Loops, "loops", o.Loops, "event loops of the servers")
	f.IntVar(&o.Workers, "workers", o.Workers, "goroutines of the load generator")
	f.DurationVar(&o.Warmup, "warmup", o.Warmup, "time before each measured window")
	f.DurationVar(&o.Window, "window", o.Window, "measured time of each cell")
	f.BoolVar(&o.Quick, "quick", o.Quick, "a look: few rounds, short windows, smaller sizes; its figures are written only where -json asks for it")
	f.BoolVar(&o.Strict, "strict", o.Strict, "exit 1 when a goal is missed")
	f.BoolVar(&o.Spin, "spin", o.Spin, "the load generator of pipelined cells polls instead of sleeping, so that no server pays for waking it")
	f.BoolVar(&o.Pin, "pin", o.Pin, "servers on one half of the CPUs, load on the other")
	f.Func("only", "regular `expression`: only the steps, scenes or sections that it matches", func(s string) (err error) {
		o.Only, err = regexp.Compile(s)
		return err
	})
	for _, other := range chosen {
		if other.Flags != nil {
			other.Flags(f)
		}
	}
	if err := f.Parse(args); err != nil {
		return o, flag.ErrHelp // it is printed already
	}
	if o.Quick {
		o.Rounds, o.Warmup, o.Window = 2, 50*time.Millisecond, 200*time.Millisecond
		if p.Quick != nil {
			p.Quick(&o)
		}
		_ = f.Parse(args) // what was given stays
	}
	written := !o.Quick && o.Only == nil
	f.Visit(func(f *flag.Flag) { written = written || f.Name == "json" })
	if !written {
		o.JSON = ""
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("cannot take %q: parts come before flags", f.Arg(0))
	case o.Rounds < 1 || o.Loops < 1 || o.Workers < 1 || o.Rows < 1 || o.Conns < 1 || o.Depth < 1:
		return o,
			errors.New("cannot run with these flags: rounds, rows, conns, depth, loops and workers are at least 1")
	case o.Window <= 0 || o.Window > time.Minute || o.Warmup < 0:
		return o, fmt.Errorf("cannot measure %v after %v: want a window up to 1m", o.Window, o.Warmup)
	}
	return o, nil
}
