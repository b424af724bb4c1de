// Package memstore is a journal.Store in memory, for tests. A Disk outlives the stores that are
// opened on it, as a directory does. It loses what was not synced, is slow, fails at the n-th
// write, tears the last block, and flips bits. Chance comes from a seed.
package memstore
