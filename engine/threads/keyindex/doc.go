// Package keyindex finds the message of an idempotency key among very many of them (threads §4.3).
//
// An entry is a hash and a number. New entries wait in memory, where their owner finds them by
// itself, until Seal sorts them into a run, which is never changed. When fanOut runs have the same
// level, Step merges them into one of the next level, so that there are few runs and each entry is
// written a few times. A run is cut into pages by the first bits of the hash, so a look-up reads
// one page. A filter in memory answers for most of the runs that do not have the hash.
//
// Rows, all of which begin with a byte of the index:
//
//	r run:8           -> state:1 level:1 page bits:1 newest:8 entries:8; it counts if state is 1
//	p run:8 page:4    -> entries in the order of their hashes, 24 bytes each
//	f run:8 part:4    -> a part of the run's filter
//
// A run counts from the batch on that has its row with state 1. In that batch the runs that it
// replaces get state 0. Rows of runs that do not count are removed by Step, after a crash too.
package keyindex
