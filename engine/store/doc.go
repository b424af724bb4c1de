// Package store keeps the state machines of a process together: their changes in one journal, their
// states in one snapshot, and one recovery of all of them. What a crash may cost is in
// docs/store.md.
//
// A state machine joins by a Machine: a tag, which is the first byte of its records, and its
// methods. It calls Append with each change, under the lock that decided it, so that the order of
// the journal is the order of the decisions. The store does not know what is in a record.
//
//	Append, Begin, End   a change into the journal; several changes in one block
//	Enter, Leave         around work that may change something: a snapshot waits for it
//	Recover              once, before anything else: the newest snapshot, then the log behind it
//	Snapshot, Start      the present state, by hand or whenever it is due
//	Barrier, Safe        what is durable
//
// A process may have several stores. A store owns no connection and answers nothing: protocols wait
// with their replies until the journal's OnDurable.
package store
