// Package method is the table of the methods of agent threads (threads §4): names, fields and
// their rules, roles and schemas. All surfaces are made from it, and none adds a rule of its own.
package method

import (
	"slices"

	"trunkline/codec/jsonx"
	"trunkline/handlers/threads/token"
)

// Access is whether a role may call a method (threads §3.1).
type Access uint8

// The kinds of access.
const (
	No Access = iota
	Yes
	Member // a participant of the thread
)

// Row is one method.
type Row struct {
	// Name is that of the method, as in a path and as a tool.
	Name string
	// Title is what people see, Help one sentence for people and for models.
	Title, Help string
	// Participant, Auditor and Coordinator are what these roles may do; an operator may do what a
	// coordinator may.
	Participant, Auditor, Coordinator Access
	// Writes is set where an answer waits for the journal.
	Writes bool
	// ReadOnly, Idempotent, Destructive and OpenWorld are the annotations of the tool.
	ReadOnly, Idempotent, Destructive, OpenWorld bool
	// In and Out are the fields in the order of threads §4.
	In, Out []Field

	number int     // in Rows
	fields []Field // In, and the hints that it does not have
	names  *jsonx.Names
}

// Names of the methods.
const (
	AckRead     = "ack_read"
	Cancel      = "cancel_message"
	Schedule    = "create_schedule"
	Create      = "create_thread"
	Unschedule  = "delete_schedule"
	Get         = "get_thread"
	Heartbeat   = "heartbeat_session"
	Schedules   = "list_schedules"
	List        = "list_threads"
	Post        = "post_message"
	Read        = "read_messages"
	Summarize   = "summarize_thread"
	Trigger     = "trigger_participant"
	Members     = "update_participants"
	Reschedule  = "update_schedule"
	UpdateState = "update_thread_status"
)

var threadFields = []Field{
	out("thread_id", ID), out("workspace_id", ID), out("title", Line), enum("type", numSlots, types...), enum("status", numSlots, statuses...),
	out("participants", IDs), out("created_at", Time), out("updated_at", Time), integer("latest_seq", 0, maxSeq, numSlots),
	integer("last_read_seq", 0, maxSeq, numSlots).optional(), integer("unread", 0, maxSeq, numSlots).optional(),
}

// messageFields are those of one message of read_messages.
var messageFields = []Field{
	out("message_id", ID), integer("schema_version", 1, 1, numSlots), integer("seq", 1, maxSeq, numSlots), enum("kind", numSlots, kinds...),
	out("body", Text), out("metadata", Object).optional(), out("in_reply_to", ID).optional(), out("sender_agent_id", ID),
	out("sender_session_id", ID), out("created_at", Time), out("erased", True).optional(),
}

// Rows are the methods, sorted by name. They are not written.
var Rows = complete([]Row{
	{
		Name: AckRead, Title: "Acknowledge messages", Help: "Record up to which message of a thread the caller has read.",
		Participant: Member, Auditor: Member, Coordinator: Yes, Writes: true, Idempotent: true,
		In:  []Field{required("thread_id", ID, slotThread), integer("last_read_seq", 0, maxSeq, slotLastRead), hints[1]},
		Out: []Field{out("ok", True), out("updated_at", Time)},
	}, {
		Name: Cancel, Title: "Cancel a message", Help: "Cancel a message that waits for its deliver_at.",
		Participant: Yes, Coordinator: Yes, Writes: true, Destructive: true,
		In:  []Field{required("deferred_id", ID, slotTimer), required("reason", Line, slotReason).optional()},
		Out: []Field{out("ok", True)},
	}, {
		Name: Schedule, Title: "Create a schedule", Help: "Post a message or wake a participant, by cron or every_ms.",
		Participant: Member, Coordinator: Yes, Writes: true,
		In: []Field{
			required("thread_id", ID, slotThread), required("cron", Line, slotCron).most(maxCron).optional(),
			integer("every_ms", minEvery, MaxDelay, slotEvery).optional(),
			required("time_zone", ID, slotZone).def(`"UTC"`),
			enum("misfire", slotMisfire, "skip", "once").def(`"skip"`),
			{Name: "message", Type: Object, slot: numSlots, Fields: []Field{required("body", Text, slotBody),
				enum("kind", slotKind, kinds...).def(`"chat"`), required("metadata", Object, slotMetadata).optional()}},
			{Name: "trigger", Type: Object, slot: numSlots, Fields: []Field{required("target_agent_id", ID, slotTarget),
				required("reason", Line, slotReason).most(maxReason), required("trigger_prompt", Text, slotPrompt)}},
			required("idempotency_key", Key, slotKey).optional(),
		},
		Out: []Field{out("schedule_id", ID), out("next_at", Time).optional(), out("created_at", Time)},
	}, {
		Name: Create, Title: "Create a thread", Help: "Begin a thread between named participants.",
		Coordinator: Yes, Writes: true,
		In: []Field{
			hints[0], required("title", Line, slotTitle), enum("type", slotType, types...),
			required("participants", IDs, slotParticipants), required("created_by", ID, slotCreatedBy).optional(),
			required("idempotency_key", Key, slotKey).optional(),
		},
		Out: []Field{out("thread_id", ID), enum("status", numSlots, statuses...), out("created_at", Time)},
	}, {
		Name: Unschedule, Title: "Delete a schedule", Help: "Delete a schedule of the caller.",
		Participant: Yes, Coordinator: Yes, Writes: true, Destructive: true,
		In: []Field{required("schedule_id", ID, slotTimer)}, Out: []Field{out("ok", True)},
	}, {
		Name: Get, Title: "Show a thread", Help: "Show a thread without its messages.",
		Participant: Yes, Auditor: Yes, Coordinator: Yes, ReadOnly: true, Idempotent: true,
		In: []Field{required("thread_id", ID, slotThread)}, Out: threadFields,
	}, {
		Name: Heartbeat, Title: "Report the runtime", Help: "Register the caller's runtime, or report that it is alive.",
		Participant: Yes, Auditor: Yes, Coordinator: Yes, Idempotent: true,
		In: []Field{
			required("session_id", ID, slotSession), required("runtime", ID, slotRuntime), required("resumable", Bool, slotResumable),
			enum("status", numSlots, sessions...).in(slotStatus), enum("management_mode", slotMode, modes...).def(`"unmanaged"`),
			hints[1], hints[0],
		},
		Out: []Field{out("ok", True), out("recorded_at", Time)},
	}, {
		Name: Schedules, Title: "List schedules", Help: "List the schedules and deferred messages of a thread.",
		Participant: Member, Auditor: Yes, Coordinator: Yes, ReadOnly: true, Idempotent: true,
		In: []Field{required("thread_id", ID, slotThread)}, Out: []Field{out("schedules", Objects)},
	}, {
		Name: List, Title: "List threads", Help: "List the threads of the workspace, with what is unread. A participant gets its own.",
		Participant: Yes, Auditor: Yes, Coordinator: Yes, ReadOnly: true, Idempotent: true,
		In: []Field{
			enum("status", slotStatus, statuses...).optional(), enum("type", slotType, types...).optional(),
			required("participant", ID, slotTarget).optional(), required("unread", Bool, slotUnread).optional(),
			enum("order", slotOrder, orders...).def(`"updated"`), integer("limit", 1, 200, slotLimit).def("50"),
			required("cursor", Key, slotCursor).optional(),
		},
		Out: []Field{out("threads", Threads), out("next_cursor", Key).optional()},
	}, {
		Name: Post, Title: "Post a message", Help: "Append a message to a thread.",
		Participant: Member, Coordinator: Yes, Writes: true,
		In: []Field{
			required("thread_id", ID, slotThread), integer("schema_version", 1, 1, slotVersion), enum("kind", slotKind, kinds...),
			required("body", Text, slotBody), required("metadata", Object, slotMetadata).optional(),
			required("in_reply_to", ID, slotInReplyTo).optional(), required("idempotency_key", Key, slotKey).optional(),
			required("sender_agent_id", ID, slotSender).optional(), required("sender_session_id", ID, slotSenderSession).optional(),
			{Name: "deliver_at", Type: Moment, Max: maxSeq, slot: slotDeliver},
		},
		Out: []Field{
			out("message_id", ID).optional(), integer("seq", 1, maxSeq, numSlots).optional(),
			out("deferred_id", ID).optional(), out("deliver_at", Time).optional(),
			enum("thread_status", numSlots, statuses...), out("created_at", Time).optional(),
		},
	}, {
		Name: Read, Title: "Read messages", Help: "Read the messages of a thread after a number.",
		Participant: Member, Auditor: Yes, Coordinator: Yes, ReadOnly: true, Idempotent: true,
		In: []Field{
			required("thread_id", ID, slotThread), hints[1], integer("since_seq", 0, maxSeq, slotSince).def("0"),
			integer("limit", 1, 200, slotLimit).def("50"), integer("wait_ms", 0, maxWait, slotWait).def("0"),
		},
		Out: []Field{out("messages", Messages), integer("next_seq", 0, maxSeq, numSlots), out("has_more", Bool),
			integer("first_seq", 1, maxSeq, numSlots).optional()},
	}, {
		Name: Summarize, Title: "Summarize a thread", Help: "Summarize the findings in the latest messages of a thread.",
		Participant: Member, Auditor: Yes, Coordinator: Yes, ReadOnly: true, Idempotent: true,
		In:  []Field{required("thread_id", ID, slotThread), integer("max_messages", 1, 1000, slotMaxMessages).def("200")},
		Out: []Field{out("summary", Text), out("open_items", Texts), enum("last_status", numSlots, statuses...)},
	}, {
		Name: Trigger, Title: "Wake a participant", Help: "Wake a participant of a thread.",
		Coordinator: Yes, Writes: true, OpenWorld: true,
		In: []Field{
			required("thread_id", ID, slotThread), required("target_agent_id", ID, slotTarget), required("reason", Line, slotReason).most(maxReason),
			required("trigger_prompt", Text, slotPrompt), required("idempotency_key", Key, slotKey).optional(),
		},
		Out: []Field{
			out("trigger_id", ID), out("target_agent_id", ID), enum("action", numSlots, "trigger_runtime", "fallback_required"),
			enum("result", numSlots, "queued", "deferred", "delivered", "fallback_required", "failed"),
			enum("job_status", numSlots, "queued", "triggering", "deferred", "delivered", "timeout", "failed", "fallback_resume", "fallback_spawn"),
			enum("defer_reason", numSlots, "human_input_busy", "rate_limited").optional(), out("deferred_until", Time).optional(),
			enum("fallback_action", numSlots, "resume_session", "spawn_session").optional(), out("runtime_command", Text).optional(),
			out("target_session_id", ID).optional(), out("runtime", ID).optional(), enum("management_mode", numSlots, modes...).optional(),
			enum("session_status", numSlots, sessions...).optional(), out("stale_session", Bool), out("triggered_at", Time),
		},
	}, {
		Name: Members, Title: "Add or remove participants", Help: "Add participants to a thread, or remove some.",
		Coordinator: Yes, Writes: true, Idempotent: true, Destructive: true,
		In: []Field{
			required("thread_id", ID, slotThread), required("add", IDs, slotParticipants).optional(),
			required("remove", IDs, slotRemove).optional(), required("reason", Line, slotReason),
		},
		Out: []Field{out("thread_id", ID), out("participants", IDs), out("updated_at", Time)},
	}, {
		Name: Reschedule, Title: "Pause a schedule", Help: "Pause a schedule, or have it go on.",
		Participant: Yes, Coordinator: Yes, Writes: true, Idempotent: true,
		In:  []Field{required("schedule_id", ID, slotTimer), required("paused", Bool, slotPaused)},
		Out: []Field{out("ok", True)},
	}, {
		Name: UpdateState, Title: "Change the status of a thread", Help: "Change the status of a thread.",
		Participant: Member, Coordinator: Yes, Writes: true, Idempotent: true, Destructive: true,
		In: []Field{
			required("thread_id", ID, slotThread), enum("status", slotStatus, statuses...), required("reason", Line, slotReason), hints[1],
			required("metadata", Object, slotMetadata).optional(),
		},
		Out: []Field{out("thread_id", ID), enum("status", numSlots, statuses...), out("updated_at", Time)},
	},
})

// Subscribe and Unsubscribe are the inputs of these lines, which are no methods of the other
// surfaces.
var (
	Subscribe = &complete([]Row{{Name: "subscribe", In: []Field{
		required("thread_id", ID, slotThread), integer("since_seq", 0, maxSeq, slotSince).def("0"),
	}}})[0]
	Unsubscribe = &complete([]Row{{Name: "unsubscribe", In: []Field{integer("subscription", 1, 1<<32-1, slotLimit)}}})[0]
)

// Number is where the row is in Rows.
func (r *Row) Number() int { return r.number }

func (f Field) in(s slot) Field { f.slot = s; return f }

func (f Field) most(n int64) Field { f.Max = n; return f }

func complete(rows []Row) []Row {
	for i := range rows {
		r := &rows[i]
		r.number = i
		r.fields = slices.Clone(r.In)
		for _, h := range hints {
			if !slices.ContainsFunc(r.In, func(f Field) bool { return f.Name == h.Name }) {
				r.fields = append(r.fields, h)
			}
		}
		r.names = namesOf(r.fields)
	}
	return rows
}

func namesOf(fields []Field) *jsonx.Names {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].Name
	}
	return jsonx.NewNames(names...)
}

// Lookup returns the row of a method, nil if there is none.
func Lookup(name []byte) *Row {
	for i := range Rows {
		if Rows[i].Name == string(name) {
			return &Rows[i]
		}
	}
	return nil
}

// Authorize applies gate G5: the role may call the method, as far as that does not depend on the
// thread (threads §2.1, §3.1).
func (r *Row) Authorize(c *token.Claims) *Fault {
	may := r.Coordinator
	switch c.Role {
	case token.Participant:
		may = r.Participant
	case token.Auditor:
		may = r.Auditor
	}
	if may != No {
		return nil
	}
	return &Fault{Condition: Forbidden, Message: "the role " + c.Role.String() + " may not call " + r.Name}
}
