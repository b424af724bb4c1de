// Package figures reads what the measuring commands left in bench/data.
//
// A JSON file holds one run: the machine, the settings, cells, goals, charts and tables, each as
// far as the command has them. questions.json is what comparing Go benchmarks with their baseline
// found. A text file holds what a command printed, one output after the other. Before each output
// may stand lines with its origin, and then an empty line:
//
//	command: make soak
//	date: 2026-11-20
//	revision: 1a2b3c4
//
// A command line begins the next output. What no file reports is left empty, never guessed.
package figures
