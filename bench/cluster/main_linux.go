package main

import (
	"flag"
	"fmt"
	"os"
	"time"

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

// flags are those of this part alone.
type flags struct {
	takeovers int
	older     string
}

// maxProcesses is how many a server may have.
const maxProcesses = 10_000_000

func cluster() part.Part {
	var own flags
	return part.Part{
		Name: "cluster", What: "three nodes with one journal: beside etcd, when the owner dies, what they hold",
		Disk: true, Files: func(*part.Options) uint64 { return 16_384 },
		Children: map[string]func([]string) error{childMember: runMember},
		Defaults: func(o *part.Options) { o.Warmup, o.Window, o.Spin = 500*time.Millisecond, 2*time.Second, false },
		Quick: func(o *part.Options) {
			o.Warmup, o.Window, own.takeovers = 250*time.Millisecond, 500*time.Millisecond, 2
		},
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&own.takeovers, "takeovers", 20, "rounds of each kind of takeover")
			f.StringVar(&own.older, "older", "", "binary of an older trunkline, for -only older")
		},
		Run: func(r *part.Run) error {
			return r.Sections(
				part.Section{Name: "ratio", Measure: ratio},
				part.Section{Name: "takeover", Measure: func(r *part.Run) error { return takeover(r, own.takeovers) }},
				part.Section{Name: "memory", Measure: memory},
				part.Section{Name: "older", Measure: func(r *part.Run) error { return compare(r, own.older) }},
			)
		},
	}
}
