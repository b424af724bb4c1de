// Package wire holds what every protocol says on the wire: the closed set of error codes and the limits that are part of a
// protocol rather than of a deployment. It has no state, no I/O and no dependencies.
package wire
