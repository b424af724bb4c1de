// Package workers runs the tools that are not built in: programs that speak newline-delimited JSON over their standard streams,
// and WebAssembly modules (toolhost §4.9).
//
//	Process   a program, as a pool of workers that each serve many calls, or as one process for each call
//	Module    a WASI command module: children of this binary run it, kept as workers are, with a fresh instance for each call
//	Spawner   the thread that processes are started from
//	Wrapper   a command of the operator's that programs are started through
//
// A worker is a state machine:
//
//	starting ──► idle ──► busy ──► idle
//	                │       ├──► dead   killed: deadline, a line too long, garbage, output without a request
//	                │       └──► dead   it exited, or has served max_requests
//	                └──► dead           idle for too long, output without a request, Close
//
// One request goes to a worker at a time, and a full snapshot of the caller's state goes with it, so that what a worker remembers
// of one caller never answers another. A line is an answer only if the worker wrote it after it took the request, which the kernel
// shows on Linux, and wrote nothing else. A worker that did anything but answer is killed with its whole process group and never
// used again. What cannot be detected is a stray line of a worker that has taken the next request by then, because it reads ahead: it
// gets a pause now and then, so that at least not every later answer is that of the call before.
//
// A place in the pool is free when the process that had it has ended. A process that SIGKILL does not end, because the kernel holds
// it, gives its place up after a while, but no more than Max of them do.
//
// Who owns what: a worker belongs to the pool while it is idle and to the caller of Run while it is busy. Two goroutines live with
// each process, one that reads what it writes to stderr and one that waits for its end; the second alone reaps it, and only under
// the lock that signals are sent under, so that no signal can hit a process that took over its number. A line lent by a worker is
// valid until the worker is given back.
//
// Limits of a process are set by the shim that its life begins with (Linux): nothing of its program runs without them, and neither does
// what it starts; no_new_privs is set as well. Other systems have no such limits here.
//
// A limit of processes is no such limit: all processes are counted now and then, and a worker whose group has too many is ended.
//
// A module cannot be interrupted everywhere, so that it has a process to be killed with. Its compiled code is kept in a directory for
// as long as the tool is open; only this user may write there, who could change the child's memory as well.
//
// What a worker started lives in its group and ends with it, also if the server is asked to end; if the server itself is ended by
// SIGKILL, the kernel ends the workers, but what they started outlives both.
//
// Not implemented, on purpose: finding processes that left their group and session (they lose their pipes, and the server's end
// does not reach them), confinement beyond limits and a clean environment, and files, network or environment for modules.
package workers
