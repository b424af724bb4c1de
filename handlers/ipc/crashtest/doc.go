// Package crashtest breaks a whole endpoint on purpose: the service, the journal and the store in a directory, over a file system
// that loses its power, fills, fails, stalls or rots, spoken to in frames as its clients do. It holds tests only.
//
// What a client has seen is compared with what is there afterwards, by two judges that know nothing of each other. One kept the
// replies: for each, the records that must and that can be behind it are bounds on the index of its change, so that whatever index
// the journal ends at after a crash decides which replies must still be true. The other kept the blocks on their way into the store:
// what is there must be the beginning of them, and the state must be the one that a fresh replay of this beginning gives.
package crashtest
