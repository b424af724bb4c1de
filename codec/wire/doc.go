// Package wire holds what every protocol has on the wire: the closed set of error codes and the
// limits of protocols. It has no state, no I/O and no dependencies.
package wire
