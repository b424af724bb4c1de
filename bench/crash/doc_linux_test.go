// Package crash kills a server it starts itself, again and again at random instants under load,
// starts it again on the same directory and port, and compares what is there with the replies that
// clients got.
//
//	make crash
//	make crash ARGS="-rounds 1000 -mode always -seed 7"
//
// It is a test: without such flags it plays the few rounds that make test has time for.
//
// It goes round robin over the modes, ten rounds on one directory each: always and interval, both
// with rare and with frequent snapshots, and now and then a round of memory, which must come back
// empty and serve. At the end it reports what it did.
//
// Some sixty actors share a few connections, so that requests are pipelined. Each works on a
// process, its session and an envelope of its own with one request at a time, and knows what the
// server holds: what the last reply left, or, of a request without a reply, what it would have made
// of that. After the restart one of the two has to be there, whole and once. A report that was not
// answered is sent again unread half of the time: it names the agent of one stage of a ring of two,
// so the server refuses it if it was taken, and iteration, tokens and outputs show a report that
// was taken twice. Half of the requests that were answered last, and that may be repeated, are
// repeated too: the answer has to be that of a repetition, and nothing may change.
//
// Beside the actors, others add to processes that all share, take processes off the ready queue,
// read what actors are changing and subscribe to events: what a reply or an event showed has to
// survive as well. Every few rounds the server is stopped cleanly or killed at rest, and then every
// reply has to be the same, byte by byte.
//
// Half of the servers have one processor and half of the rounds a busy disk: what a reply ran ahead
// of is lost by a kill only if there is time between the two.
//
// # Histories
//
// Eight clients on six connections work at once on the same few processes and their sessions, over
// three or four kills; who takes a process off the ready queue is part of it. Their calls and
// replies, on the one monotonic clock of this program, are checked with porcupine, by process: some
// order of the calls, each between its call and its reply, has to explain every reply (kernel-ipc
// §2.5). A process and its session are one object there. A call whose reply never came ends when
// the server was dead: by then it had its whole effect or none, and if a later kill brings or takes
// it, no order explains that. After each restart both are read, so that every kill is evaluated by
// itself.
//
// What is not in the model: that a process is handed out without being started. That lease is lazy
// (at most the last unsynced group is lost), changes nothing a reply shows of the process, and is
// evaluated by the ready queue of the whole server instead: every READY process that no client can
// have been handed has to come off it, once. CheckRateLimit, the other lazy method, is not called:
// its only promise after a crash is to have counted no more than there was. GetNextInstruction
// changes no session without bounds and is checked like a read.
//
// A history that no order explains is written to -out as a page that shows it. One that cannot be
// decided in time is counted as unknown.
package crash
