// Package exacta is the core of projects (exacta §4, §5): what a project does with a request, in
// which states, and which events report it. It decides only. Disk and Host do the work.
//
//	request ─► Project.Handle ─► gate (§5.3) ─► operation ─► events into the Journal, one answer
//	             ▲                                │
//	             └──────── Project.Finished ◄─────┘ work off the queue: planning, steps, diffs
//
// The methods of a Project are called one at a time, by the goroutine of its queue. The Journal of
// a project and the Replays of a server may be used by any goroutine.
package exacta
