// Package owner is what a node of a cluster knows of the owner of a journal, and when it may become
// the owner itself. It has no socket: times are readings of one clock that runs evenly (Now), in
// nanoseconds.
//
//	Beat   what the owner writes into the journal now and then
//	View   what a standby has read of it
//	Lease  until when the owner may answer what it reads
//
// # Why two nodes never answer at once
//
// The owner answers a read only until the time at which it sent the last message that is known to
// be stored, plus the term of the lease without its margin. A standby takes over only when the
// whole term has passed since the last message that it has heard of was sent, at the latest
// (View.Heard). It has heard of that of the owner, or else its first append fails, because the log
// does not end where the standby has read to. So the lease of the owner has ended before, as long
// as no clock runs faster than another by more than the margin, a tenth. A new owner has no lease
// before its first Beat is stored, which has its term. What the owner changes needs no lease: the
// log takes it from one owner only.
package owner
