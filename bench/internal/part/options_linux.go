package part

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"
)

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
	f.StringVar(&o.Profile, "profile", o.Profile, "afterwards, keep CPU profiles of trunkline in this folder and print their tops")
	f.StringVar(&o.Peer, "peer", o.Peer, "host:port of one more server, already running")
	f.StringVar(&o.Redis, "redis", o.Redis, "redis-server: its path, off, or auto for the installed one, if there is one")
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
		return o, errors.New("cannot run with these flags: rounds, rows, conns, depth, loops and workers are at least 1")
	case o.Window <= 0 || o.Window > time.Minute || o.Warmup < 0:
		return o, fmt.Errorf("cannot measure %v after %v: want a window up to 1m", o.Window, o.Warmup)
	}
	return o, nil
}
