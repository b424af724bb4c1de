// Package exacta serves projects (exacta): commands, answers and live events over lines. What a
// project decides is in engine/exacta, what it touches on the disk in workspace.
//
//	line ─► session.Feed ─► checks 1 to 17 ─► queue of the project ─► exacta.Project
//	     ◄─ session.Pump ◄─ outbox, journal ◄──────── answers, events ──┘     │
//	                                             worker: planner, diffs, files, builds
//
// Each project has one goroutine, its queue, which waits for the disk where a transition is saved.
// Longer work runs beside it and comes back through the queue. A session never waits: a long line
// is read on a goroutine of its own, and what follows it is not fed before it is back. What holds
// for one carrier only, such as the first line over TCP, is in guard.go and feed.go.
package exacta
