// Package journaltest holds what every journal.Store must pass through a journal.Log: Suite, and Run, which interprets bytes as a
// program of appends, snapshots, restarts and crashes and compares the log with a slice.
package journaltest
