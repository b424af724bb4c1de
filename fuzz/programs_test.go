package fuzz

import "strings"

var lifecycle = typeLists[2]

// programs are hand-written conversations for FuzzSession.
func programs() (list [][]byte) {
	for _, s := range []*script{
		// Four priorities, one of each leased, one started; the lease ends.
		start().request(0, "CreateProcess", "1", "pid", "p1", "priority", "Low").request(0, "CreateProcess", "1", "pid", "p2", "priority", "HIGH").
			request(0, "CreateProcess", "1", "pid", "p3").request(0, "CreateProcess", "1", "pid", "p4", "priority", "realtime").
			request(0, "GetNextRunnable", "2").request(0, "GetNextRunnable", "2", "start", true).request(0, "GetProcessCounts", "1").
			wait(30000).request(0, "GetNextRunnable", "2").request(0, "ScheduleProcess", "1", "pid", "p4").request(0, "GetNextRunnable", "2").
			again(0, 3),
		// Preempt and resume: the tail of the queue; a lease of 5 s that is cut short by
		// termination.
		start(setLease, 2).request(0, "CreateProcess", "1", "pid", "p1").request(0, "CreateProcess", "1", "pid", "p2").
			request(0, "GetNextRunnable", "1", "start", true).request(0, "TransitionState", "1", "pid", "p1", "new_state", "READY").
			request(0, "GetNextRunnable", "1").request(0, "TerminateProcess", "1", "pid", "p2", "reason", "done").wait(5000).
			request(0, "GetNextRunnable", "1").request(0, "TransitionState", "1", "pid", "p1", "new_state", "running"),
		// No lease at all: only ScheduleProcess brings it back.
		start(setLease, 1).request(0, "CreateProcess", "1", "pid", "p1").request(0, "GetNextRunnable", "1").wait(3600000).
			request(0, "GetNextRunnable", "1").request(0, "ScheduleProcess", "1", "pid", "p1").request(0, "GetNextRunnable", "1"),
		// A lifecycle as its subscribers see it, one slow; the quota exceeded by time.
		start(setBuffer, 1).open().request(1, "Subscribe", "s1", "event_types", lifecycle, "subscriber_id", "w1", "ack", true).
			request(0, "CreateProcess", "1", "pid", "p\"\\é\n", "quota", quotas[3]).request(0, "TransitionState", "1", "pid", "p\"\\é\n", "new_state", "RUNNING").
			wait(999).wait(1).request(0, "CheckQuota", "1", "pid", "p\"\\é\n").wait(1).pump(1).request(0, "CheckQuota", "1", "pid", "p\"\\é\n").
			request(0, "TransitionState", "1", "pid", "p\"\\é\n", "new_state", "TERMINATED", "reason", "é\"\n").drain(1),
		// Gaps: a buffer of one event, a burst, room, a burst.
		start(setBuffer, 1).open().request(1, "Subscribe", "s1", "event_types", typeLists[0], "subscriber_id", "w1").
			request(0, "Publish", "1", "event_type", "a", "payload", `{"n":1}`).again(0, 9).pump(1).again(0, 3).
			request(1, "Unsubscribe", "2", "stream_id", "s1").again(0, 2).drain(1),
		// Gaps between events: a buffer of three, room for one more at a time.
		start(setBuffer, 3, setChunk, 1).open().request(1, "Subscribe", "s1", "event_types", typeLists[0]).
			request(0, "Publish", "1", "event_type", "a").again(0, 5).pump(1).again(0, 4).pump(1).pump(1).again(0, 4).drain(1).
			request(0, "GetSystemStatus", "1"),
		// Replacement and eviction with two streams at most; chunks of one byte at a time.
		start(setStreams, 2, setChunk, 1).open().request(1, "Subscribe", "s1", "event_types", typeLists[1], "subscriber_id", "w1").
			request(0, "Publish", "1", "event_type", "a").again(0, 4).request(1, "Subscribe", "s2", "event_types", typeLists[0], "subscriber_id", "w1").
			request(1, "Subscribe", "s3", "event_types", typeLists[0], "ack", true).pump(1).pump(1).
			request(1, "Subscribe", "s1", "event_types", typeLists[0], "subscriber_id", "w2").drain(1).
			request(1, "RegisterCommandHandler", "s1", "command_types", typeLists[5]).request(0, "GetSystemStatus", "1").drain(1),
		// A query answered, one timed out, one cancelled by its caller, one by the end of its
		// handler.
		start().open().request(1, "RegisterQueryHandler", "s1", "query_types", typeLists[7]).request(0, "Query", "q1", "query_type", "sum", "payload", "[1,2.5,-3,1e2,18446744073709551615,\"\\u00e9\\ud83d\\ude00\"]").
			drain(1).answer().drain(0).request(0, "Query", "q1", "query_type", "avg", "timeout_ms", 1000).wait(999).wait(1).drain(0).
			request(0, "Query", "q1", "query_type", "sum").request(0, "Unsubscribe", "1", "stream_id", "q1").drain(0).
			request(0, "Query", "q1", "query_type", "sum", "timeout_ms", 99999999).request(1, "Unsubscribe", "1", "stream_id", "s1").drainAll().
			request(0, "Query", "q1", "query_type", "sum"),
		// Two pending queries at most, a handler on the caller's own connection, half-closed while
		// it waits for itself.
		start(setQueue, 1).request(0, "RegisterQueryHandler", "s1", "query_types", typeLists[6]).request(0, "Query", "q1", "query_type", "sum").again(0, 2).
			drain(0).answer().leave(0).drain(0).leave(0).open().request(0, "GetSystemStatus", "1"),
		// The caller half-closes and still gets its answer; another caller is gone.
		start().open().open().request(2, "RegisterQueryHandler", "s1", "query_types", typeLists[6]).request(0, "Query", "q1", "query_type", "sum").
			request(1, "Query", "q1", "query_type", "sum").drain(2).leave(0).close(1).answer().drain(0).answer().request(1, "GetSystemStatus", "1"),
		// Commands: one handler per type, its buffer, its loss.
		start(setBuffer, 2).open().request(1, "RegisterCommandHandler", "s1", "command_types", typeLists[8]).
			request(0, "RegisterCommandHandler", "s1", "command_types", typeLists[5]).request(0, "Send", "1", "command_type", "run").again(0, 3).drain(1).
			again(0, 1).close(1).again(0, 1).request(0, "RegisterCommandHandler", "s1", "command_types", typeLists[5]),
		// Rate windows: a burst, ten seconds, a minute, an hour; limits changed in between.
		start().request(0, "CheckRateLimit", "1", "user_id", "u1").again(0, 12).wait(10000).again(0, 1).wait(1).again(0, 12).
			request(0, "SetQuotaDefaults", "1", "quota", defaults[1]).request(0, "CheckRateLimit", "1", "user_id", "u1").wait(50000).again(0, 8).
			request(0, "SetQuotaDefaults", "1", "quota", defaults[2]).request(0, "CreateProcess", "1", "pid", "p1", "user_id", "u1").wait(3600000).
			again(0, 1).request(0, "CheckRateLimit", "1", "user_id", "u1", "record", false).again(0, 20),
		// Retention: terminal processes go, oldest completion first when the table is full.
		start(setProcesses, 1, setRetention, 2).request(0, "CreateProcess", "1", "pid", "p1").request(0, "CreateProcess", "1", "pid", "p2").
			request(0, "CreateProcess", "1", "pid", "p3").request(0, "TerminateProcess", "1", "pid", "p2").wait(1).request(0, "TerminateProcess", "1", "pid", "p1").
			request(0, "CreateProcess", "1", "pid", "p3").wait(999).sweep().request(0, "ListProcesses", "1").wait(1).sweep().request(0, "ListProcesses", "1").
			request(0, "TransitionState", "1", "pid", "p1", "new_state", "ZOMBIE").wait(1000).sweep().request(0, "CreateProcess", "1", "pid", "p1"),
		// A listing in pages, while the table changes; small frames make it too large without a
		// limit.
		start(setFrame, 3).request(0, "CreateProcess", "1", "pid", "p1").request(0, "CreateProcess", "1", "pid", "p2").request(0, "CreateProcess", "1", "pid", "p3").
			request(0, "CreateProcess", "1", "pid", "p4").request(0, "ListProcesses", "1").request(0, "ListProcesses", "1", "limit", 2).
			request(0, "TerminateProcess", "1", "pid", "p2").request(0, "ListProcesses", "1", "limit", 2, "cursor", lastCursor{}).
			request(0, "ListProcesses", "1", "state", "terminated").request(0, "ListProcesses", "1", "limit", 1, "cursor", lastCursor{}),
		// Chunks too large for the frame of one stream and not of the other.
		start(setFrame, 3).open().request(1, "Subscribe", streamIDs[4], "event_types", typeLists[0], "subscriber_id", "w1").
			request(1, "Subscribe", "s1", "event_types", typeLists[0], "subscriber_id", "w2").
			request(0, "Publish", "1", "event_type", "a", "payload", `"`+strings.Repeat("x", 440)+`"`).drain(1),
		// Pipelining over three frames a turn, cut by a length that is not allowed.
		start(setTurn, 2, setUnsent, 1).keep(0, "CreateProcess", "1", "pid", "p1").keep(0, "GetProcess", "2", "pid", "p1").
			keep(0, "RecordUsage", "1", "pid", "p1", "llm_calls", 100, "tokens_in", 1).keep(0, "CheckQuota", "1", "pid", "p1").
			request(0, "GetSystemStatus", "1").again(0, 10).bad(0, 1).request(0, "GetProcess", "1", "pid", "p1"),
		// Shutdown with everything open: streams are flushed, queries cancelled, later requests
		// refused.
		start(setChunk, 2).open().request(1, "Subscribe", "s1", "event_types", typeLists[0]).request(1, "RegisterQueryHandler", "s2", "query_types", typeLists[6]).
			request(0, "Query", "q1", "query_type", "sum").request(0, "Publish", "1", "event_type", "a").again(0, 9).request(1, "Unsubscribe", "1", "stream_id", "s1").
			shutdown().request(0, "GetProcess", "1", "pid", "p1").open().request(2, "Subscribe", "s1", "event_types", typeLists[0]).drainAll().leave(0),
	} {
		list = append(list, s.b)
	}
	return list
}
