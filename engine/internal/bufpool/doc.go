// Package bufpool lends byte buffers and takes back only those below a size cap, so that one large
// frame does not pin its memory for the life of the process. Under poison builds a returned buffer
// is overwritten.
package bufpool
