// Package threads is the state of agent threads (threads §3.3, §4, §5): threads, messages, cursors,
// sessions and the audit log. It decides, records and remembers; it knows no protocol, no token and
// no clock.
//
//	Create, Get, Post, Read, Ack, SetStatus    one method each, atomic per thread
//	Heartbeat                                  the registry of runtimes
//	Machine                                    the state in a journal (engine/store)
//
// # Where things are
//
//	memory    threads without their messages, cursors, sessions; the latest messages of all
//	          threads, in segments of fixed size, as many as Config.HotBytes allow
//	rows      every durable message, idempotency keys, the audit log (engine/store/rows)
//	journal   every change; rows are written after it, and are replayed from it
//
// A message has three states. Appended: it has a number, and its record is in the journal. Durable:
// the journal has reached its record, and readers see it (threads §2.5). Stored: it is in a row,
// and its segment may be dropped. Messages of one thread that are stored together are one row
// (history.go). Their keys are found by an index of sorted runs (keyindex), not by rows of their
// own. Rows and index may have messages that a lost end of the journal took: a thread's first row
// after a start cuts off what is behind it, and a key counts only if its message has it.
//
// # Several nodes
//
// Nodes that follow one journal each have rows of their own, and store them as they replay. Where
// an owner purges the journal, others find the rows in an archive, which has the records behind
// them: the owner extends it before each snapshot, and records that (archive.go, archiveblock.go).
// A start brings the rows of its node to where the archive of the snapshot ends (restore.go).
//
// # Locks
//
// Each thread has one mutex: its serial writer. Under it the engine takes hot.mu, which gives
// records and rows one order. No lock is held while a disk is waited for, but for the look-up of a
// key or message that is not in memory any more.
package threads
