// Package journaltool looks at the journal of a server that is not running: it verifies it, counts
// what is in it, prints it and copies it. It changes nothing. What it holds in memory does not grow
// with the journal: one block, one record of a snapshot, the first damages, and numbers.
package journaltool
