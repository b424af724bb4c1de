package method

import (
	"cmp"
	"strconv"

	"trunkline/codec/jsonx"
)

// InputSchema returns the JSON schema of the method's input, built from its fields as threads §3.2
// has it.
func (r *Row) InputSchema() []byte { return appendSchema(nil, r.Name, r.In) }

// OutputSchema returns the JSON schema of the method's result.
func (r *Row) OutputSchema() []byte { return appendSchema(nil, r.Name, r.Out) }

// appendSchema appends the schema of an object with these fields, in their order. Some providers of
// models refuse const, uniqueItems and references; the checks are made all the same.
func appendSchema(dst []byte, method string, fields []Field) []byte {
	dst = append(dst, `{"type":"object","properties":{`...)
	for i := range fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonx.AppendString(dst, fields[i].Name), ':')
		dst = fields[i].appendSchema(dst, method)
	}
	dst = append(dst, `},"required":[`...)
	first := true
	for i := range fields {
		if !fields[i].Required {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		dst, first = jsonx.AppendString(dst, fields[i].Name), false
	}
	return append(dst, `]}`...)
}

// Schemas of the types that have no variants.
const (
	textSchema = `{"type":"string","minLength":1}`
	idSchema   = `{"type":"string","minLength":1,"maxLength":256}`
)

// appendSchema appends the schema of one field.
func (f *Field) appendSchema(dst []byte, method string) []byte {
	switch f.Type {
	case ID:
		dst = append(dst, idSchema...)
	case Key:
		dst = appendLine(dst, maxKey)
	case Line:
		most := int64(maxLine)
		if f.Max > 0 {
			most = f.Max
		}
		dst = appendLine(dst, most)
	case Text:
		dst = append(dst, textSchema...)
	case Object:
		if dst = append(dst, `{"type":"object"}`...); f.Fields != nil {
			dst = appendSchema(dst[:len(dst)-len(`{"type":"object"}`)], method, f.Fields)
		}
	case Integer:
		dst = f.appendInteger(dst)
	case Bool, True:
		dst = append(dst, `{"type":"boolean"}`...)
	case Enum:
		dst = append(dst, `{"type":"string","enum":[`...)
		for i, v := range f.Values {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonx.AppendString(dst, v)
		}
		dst = append(dst, `]}`...)
	case IDs:
		dst = append(dst, `{"type":"array","items":`+idSchema+`,"minItems":1,"maxItems":256}`...)
	case Time:
		dst = append(dst, `{"type":"string","format":"date-time"}`...)
	case Moment: // some providers of models refuse a list of types
		dst = append(f.appendInteger(append(dst, `{"anyOf":[{"type":"string","format":"date-time"},`...)), `]}`...)
	case Objects:
		dst = append(dst, `{"type":"array","items":{"type":"object"}}`...)
	case Texts:
		dst = append(dst, `{"type":"array","items":`+textSchema+`}`...)
	case Threads:
		dst = append(appendSchema(append(dst, `{"type":"array","items":`...), Get, threadFields), '}')
	case Messages:
		dst = append(appendSchema(append(dst, `{"type":"array","items":`...), method, messageFields), '}')
	}
	if f.Default != "" {
		dst = append(append(append(dst[:len(dst)-1], `,"default":`...), f.Default...), '}')
	}
	help := helps[method+"."+f.Name]
	help = cmp.Or(help, helps[f.Name])
	return append(jsonx.AppendString(append(dst[:len(dst)-1], `,"description":`...), help), '}')
}

// appendLine appends the schema of a text of 1 to most characters.
func appendLine(dst []byte, most int64) []byte {
	dst = append(dst, `{"type":"string","minLength":1,"maxLength":`...)
	return append(strconv.AppendInt(dst, most, 10), '}')
}

// appendInteger appends the schema of an integer.
func (f *Field) appendInteger(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"type":"integer","minimum":`...), f.Min, 10)
	return append(strconv.AppendInt(append(dst, `,"maximum":`...), f.Max, 10), '}')
}

// helps describe fields for people and for models, one sentence each: by the method and the name,
// or by the name alone.
var helps = map[string]string{
	"add":               "The agent_id of each participant to add.",
	"action":            "How the agent is woken: trigger_runtime writes to its terminal, fallback_required runs a command.",
	"agent_id":          "The caller, as in its token; leave it out.",
	"body":              "The text of the message, kept as it is.",
	"created_at":        "When it was stored, in UTC.",
	"created_by":        "The caller, as in its token; leave it out.",
	"cron":              "When it fires: minute, hour, day of month, month and day of week, or such as @daily.",
	"cursor":            "The next_cursor of the page before.",
	"defer_reason":      "Why the job waits.",
	"deferred_id":       "The id of a message that waits for its deliver_at.",
	"deferred_until":    "Until when the job waits at most.",
	"deliver_at":        "When it is to be posted, within 366 days; until then it is not in the thread.",
	"every_ms":          "An interval in milliseconds, in place of cron.",
	"fallback_action":   "Which command is run in place of a delivery.",
	"erased":            "Present where the text was erased; the message keeps its place.",
	"first_seq":         "The seq of the first message that is kept, where earlier ones have expired.",
	"has_more":          "Whether there are messages after next_seq.",
	"idempotency_key":   "A key of your choice: the same call with the same key has one effect and gives the first answer again.",
	"in_reply_to":       "The message_id of the message of this thread that is answered.",
	"job_status":        "Where the job is now.",
	"kind":              "chat for text, event for an entry whose metadata has an event_type, system for coordinators alone.",
	"last_read_seq":     "The seq of the last message that was read; it never goes back.",
	"latest_seq":        "The seq of the last message; 0 without messages.",
	"last_status":       "The status of the thread now.",
	"limit":             "How many messages are shown at most.",
	"management_mode":   "managed if the server may write to the terminal of the runtime.",
	"max_messages":      "How many of the latest messages are read.",
	"message":           "The message that is posted, in place of trigger.",
	"message_id":        "The id of the message.",
	"messages":          "The messages, in order of seq.",
	"metadata":          "An object of your choice; an event has its event_type there.",
	"misfire":           "Whether one firing makes up for those that were missed while no server ran.",
	"next_at":           "When it fires next, in UTC.",
	"next_cursor":       "The cursor of the next page; without it there is none. A page may be short, or empty, and have it.",
	"next_seq":          "The since_seq of the next call.",
	"ok":                "Always true.",
	"open_items":        "What is not resolved, one line each.",
	"order":             "updated has the threads that changed last first, created the newest.",
	"participant":       "An agent_id: threads that it is a participant of.",
	"participants":      "The agent_id of each participant.",
	"paused":            "Whether it is paused.",
	"reason":            "Why, in one line.",
	"recorded_at":       "When the server recorded it, in UTC.",
	"remove":            "The agent_id of each participant to remove. Its messages stay, its jobs end.",
	"result":            "What became of the request so far.",
	"resumable":         "Whether the session can be resumed by a command.",
	"runtime":           "Where the agent runs: a name, or tmux:SESSION:WINDOW.PANE for a terminal.",
	"runtime_command":   "The command that is run, for display.",
	"schedule_id":       "The id of the schedule.",
	"schedules":         "Each with schedule_id or deferred_id, next_at, last_at, paused and others.",
	"schema_version":    "The version of the form of a message, which is 1.",
	"sender_agent_id":   "The agent that sent the message, as in its token.",
	"sender_session_id": "The session that sent the message, as in its token.",
	"seq":               "The number of the message in its thread, from 1 on without a gap.",
	"session_id":        "The session of the caller, as in its token.",
	"session_status":    "The status in the last heartbeat of the target.",
	"since_seq":         "Messages after this number are shown; 0 begins with the first one.",
	"stale_session":     "Whether the last heartbeat of the target is too old.",
	"status":            "The status of the thread.",
	"summary":           "The findings of the thread in one line.",
	"target_agent_id":   "The participant to wake.",
	"target_session_id": "The session that is woken.",
	"thread_id":         "The id of the thread.",
	"threads":           "The threads, in the order that was chosen.",
	"thread_status":     "The status of the thread after the message.",
	"time_zone":         "The zone of cron, such as Europe/Berlin.",
	"title":             "What the thread is about, in one line.",
	"trigger":           "The participant that is woken, in place of a message; for coordinators alone.",
	"trigger_id":        "The id of the job, which the woken agent is shown.",
	"trigger_prompt":    "What the agent is told when it is woken.",
	"triggered_at":      "When the job was made, in UTC.",
	"type":              "What kind of thread it is.",
	"unread":            "How many messages are after last_read_seq; 0 if all of them are your own or the server's.",
	"updated_at":        "When it changed last, in UTC.",
	"wait_ms":           "With no message after since_seq: how long to wait for one, in milliseconds. Prefer it to calling again and again.",
	"workspace_id":      "The workspace, as in the token of the caller; leave it out.",

	Get + ".last_read_seq":       "Up to which seq the caller has acknowledged.",
	List + ".limit":              "How many threads are shown at most.",
	List + ".unread":             "true lists only threads with unread messages.",
	Get + ".workspace_id":        "The workspace of the thread, which is that of the caller.",
	Heartbeat + ".status":        "What the runtime does now; offline takes it off the register.",
	UpdateState + ".status":      "The status that the thread is to have.",
	UpdateState + ".metadata":    "An object of your choice, kept in the audit.",
	Trigger + ".reason":          "Why, in one line; human_override: or coordinator_override: at its begin does not wait for a person at the terminal.",
	Create + ".participants":     "The agent_id of each participant; add your own if you want to be one.",
	Heartbeat + ".workspace_id":  "The workspace, as in the token of the caller; leave it out.",
	Trigger + ".management_mode": "managed if the server may write to the terminal of the target.",
	Trigger + ".runtime":         "Where the target runs.",
}

// Instructions explain to a model how the methods belong together.
const Instructions = `A thread is a durable, ordered conversation between named agents of one workspace. Every message has a seq: 1, 2, 3 and so on.
Who you are and which workspace is yours is in your token: leave out workspace_id, agent_id and the other hints, and take the workspace_id of get_thread where you need it.
Start with list_threads: it shows your threads and how many messages are unread. Coordinators make threads with create_thread and change who takes part with update_participants.
Participants read_messages and post_message, with an idempotency_key that you repeat when you try again. To wait for messages call read_messages with since_seq set to the last next_seq and wait_ms 30000, and call again while messages is empty.
Call ack_read with the seq of the last message that you have dealt with.
Call heartbeat_session at the begin and every few minutes, so that a coordinator can wake you with trigger_participant. An error with retryable true may be tried again.`
