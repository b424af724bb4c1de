// Package workers runs the tools that are not built in: programs that speak newline-delimited JSON
// over their standard streams, and WebAssembly modules (toolhost §4.9).
//
//	Process   a program: a pool of workers that serve many calls, or one process for each call
//	Module    a WASI command module: children of this binary, with a fresh instance for each call
//	Spawner   the thread that processes are started from
//	Wrapper   a command of the operator's that programs are started through
//
// A worker is a state machine:
//
//	starting ──► idle ──► busy ──► idle
//	                │       ├──► dead   killed: deadline, a bad reply, unsolicited output
//	                │       └──► dead   it exited, or has served max_requests
//	                └──► dead           idle for too long, unsolicited output, Close
//
// One request goes to a worker at a time, with a full snapshot of the caller's state, so that what
// a worker remembers of one caller never answers another. A line is an answer only if the worker
// wrote it, and nothing else, after it took the request, which the kernel shows on Linux. Any other
// worker is killed with its process group. A stray line of a worker that reads ahead cannot be
// detected: a pause now and then keeps it from answering every later call with the one before.
//
// A place in the pool is free when its process has ended, or after a while if the kernel does not
// end it, which holds for at most Max processes.
//
// A worker belongs to the pool while it is idle and to the caller of Run while it is busy. Two
// goroutines live with each process: one reads its stderr, one waits for its end and reaps it,
// under the lock that signals are sent under, so that no signal hits a process that reused its
// number.
//
// On Linux workerexec sets the limits of a process and no_new_privs before its program begins. A
// limit of processes is none of those: they are counted now and then, and a worker with too many is
// ended.
//
// A module cannot be interrupted everywhere, so it has a process to be killed with. Its compiled
// code is kept, as long as the tool is open, in a directory where only this user may write.
//
// What a worker started ends with its group. If SIGKILL ends the server, the kernel ends the
// workers, but what they started outlives both.
//
// Not implemented, on purpose: finding processes that left their group and session, confinement
// beyond limits and a clean environment, and files, network or environment for modules.
package workers
