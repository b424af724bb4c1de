// Package goal is how the benchmark commands evaluate: cells measured in rounds, ratios within a
// round, and goals that the ratios reach or miss.
//
// A Cell is one row of a table: a server under one load. Rounds has all cells take turns, in
// alternating order, and every turn leaves a Sample. On a shared machine only ratios of one round
// mean anything, so Ratio divides within each round and takes the median of that. A Goal is as good
// as its worst member; one that asks for nothing is reported and not evaluated.
//
// The package knows figures alone: no server, no clock, no flag. Who measures is
// bench/internal/load, and what is asked is written in the commands.
package goal
