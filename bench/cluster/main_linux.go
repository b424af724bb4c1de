// Command cluster measures three nodes that share a journal, each a process on this machine: the
// part cluster of ./bench, which starts it. It is a module of its own, as it embeds etcd.
//
//	go run ./bench cluster                              ten minutes
//	go run ./bench cluster -only ratio                  beside etcd
//	go run ./bench cluster -only takeover -takeovers 5  how long nothing is answered
//	go run ./bench cluster -only memory                 what nodes hold
//
// Ratio: the clients of both are on this machine and connected to the node that decides, the owner
// of the journal and the leader of etcd. Trunkline is asked RecordUsage about 10,000 processes over
// 64 connections with 1 and with 16 requests in flight on each; every answer waits until a majority
// has synced the change. Members of etcd are asked to put 300 bytes under one of as many keys by
// its own client, 64 and 1024 at a time, over one connection for each 16: with one for all, its
// client is what is measured. Settings are the defaults but for what a busy machine would trip
// over: leases and elections of 5 s. The CPU time is that of all three processes.
//
// Takeover: the owner is killed with SIGKILL under load. What counts is the time from there until a
// client of another node has an answer to a change that it sent afterwards. A client whose
// connection ends connects again after 5 ms. Rounds in which the owner led the stream of the
// journal are counted apart from those in which another node did.
//
// What it does not show: a network, a disk for each node, more processors than the machine has.
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

// maxProcesses is how many a server may have.
const maxProcesses = 10_000_000

func cluster() part.Part {
	takeovers := 20
	return part.Part{
		Name: "cluster", What: "three nodes with one journal: beside etcd, when the owner dies, what they hold",
		Disk: true, Files: func(*part.Options) uint64 { return 16_384 },
		Children: map[string]func([]string) error{childMember: runMember},
		Defaults: func(o *part.Options) { o.Warmup, o.Window, o.Spin = 500*time.Millisecond, 2*time.Second, false },
		Quick: func(o *part.Options) {
			o.Warmup, o.Window, takeovers = 250*time.Millisecond, 500*time.Millisecond, 2
		},
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&takeovers, "takeovers", takeovers, "rounds of each kind of takeover")
		},
		Run: func(r *part.Run) error {
			return r.Sections(
				part.Section{Name: "ratio", Measure: ratio},
				part.Section{Name: "takeover", Measure: func(r *part.Run) error { return takeover(r, takeovers) }},
				part.Section{Name: "memory", Measure: memory},
			)
		},
	}
}
