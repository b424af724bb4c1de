// Command bench measures trunkline beside its peers, and looks whether it holds up under load,
// crashes and hostile peers.
//
//	go run ./bench                  lists the parts
//	go run ./bench PART...          measures, reports, and writes figures to bench/data/PART.json
//	go run ./bench PART... -quick   a look, which writes nothing
//	go run ./bench PART -help       lists the flags
//
// bench/report makes BENCHMARKS.md of the figures.
//
// Every server is a process of its own, and this program is the one load generator beside it.
// Servers take turns in every round, in alternating order; a ratio is taken within a round, and the
// median over the rounds is judged: on a small shared machine only ratios of one run mean anything.
// The steadiest figure is server CPU per request, because the share of the generator does not
// distort it.
package main

import (
	"os"

	"trunkline/bench/compare"
	"trunkline/bench/envelopes"
	"trunkline/bench/hostile"
	"trunkline/bench/internal/part"
	"trunkline/bench/protocols"
	"trunkline/bench/scale"
	"trunkline/bench/sessions"
	"trunkline/bench/soak"
	"trunkline/bench/storage"
	"trunkline/bench/tools"
)

func main() { os.Exit(part.Main(parts(), os.Args[1:], os.Stdout, os.Stderr)) }

// parts are what can be measured, in the order of the list.
func parts() []part.Part {
	return []part.Part{
		protocols.Part(),
		compare.Part(),
		storage.Part(),
		storage.RestartPart(),
		storage.ThreadsPart(),
		storage.ProjectsPart(),
		scale.Part(),
		envelopes.Part(),
		sessions.Part(),
		tools.Part(),
		soak.Part(),
		hostile.Part(),
		{Name: "cluster", What: "three nodes with one journal: beside etcd, when the owner dies, what they hold", Module: "bench/cluster"},
	}
}
