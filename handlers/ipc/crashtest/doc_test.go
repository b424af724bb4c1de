// Package crashtest breaks a whole endpoint on purpose, over a file system that loses its power,
// fills, fails, stalls or rots. It has tests only.
//
// Two checks compare what clients have seen with what is there afterwards. One has the replies,
// with bounds on the index of each change: the last index after a crash decides which of them must
// still be true. The other has the blocks on their way into the store: the log must be a beginning
// of them, and the state that of a fresh replay of this beginning.
package crashtest
