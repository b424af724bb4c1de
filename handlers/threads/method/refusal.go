package method

import (
	"trunkline/codec/jsonx"
	"trunkline/engine/threadstore"
)

func details() jsonx.Builder { return jsonx.Build(nil) }

// Refused returns how a refusal of the engine is answered (threads §3.4).
func Refused(r *threadstore.Refusal) *Fault {
	switch r.Code {
	case threadstore.NoThread:
		return &Fault{Condition: NotFound, Message: "thread_id names no thread"}
	case threadstore.OtherWorkspace:
		return &Fault{Condition: OtherWorkspace, Message: "thread_id names a thread of another workspace"}
	case threadstore.NotMember:
		return &Fault{Condition: Forbidden, Message: "the caller is not a participant of the thread"}
	case threadstore.NoMessage:
		return &Fault{Condition: NoSuchMessage, Message: "in_reply_to names no message of the thread"}
	case threadstore.ThreadClosed:
		return &Fault{Condition: Conflict, Message: "the thread is closed",
			Details: details().Text("current_status", r.Status.String()).End()}
	case threadstore.KeyReused:
		return &Fault{Condition: KeyReused, Message: "idempotency_key was used with another payload"}
	case threadstore.RateLimited:
		return &Fault{Condition: RateLimited, Message: "too many messages",
			Details: details().Int("retry_after_ms", r.N).End()}
	case threadstore.TooMany:
		return &Fault{Condition: RateLimited, Message: "a table of the server is full",
			Details: details().Int("retry_after_ms", 1000).End()}
	case threadstore.AckBeyond:
		return &Fault{Condition: Invalid, Message: "last_read_seq is beyond the latest message",
			Details: details().Int("latest_seq", r.N).End()}
	case threadstore.AckBehind:
		return &Fault{Condition: Conflict, Message: "last_read_seq is behind the cursor",
			Details: details().Int("current_last_read_seq", r.N).End()}
	case threadstore.BadTransition:
		return &Fault{Condition: BadTransition, Message: "a thread that is " + r.From.String() + " does not become " + r.Status.String(),
			Details: details().Text("from_status", r.From.String()).Text("to_status", r.Status.String()).End()}
	case threadstore.NeedsAuthority:
		return &Fault{Condition: NoAuthority, Message: "only a coordinator or an operator may change the status so"}
	case threadstore.NeedsOverride:
		return &Fault{Condition: NoAuthority, Message: "a blocked thread is closed by an override: reason has to begin so",
			Details: details().Texts("required_reason_prefixes", threadstore.OverridePrefixes()).End()}
	case threadstore.SessionHeld:
		return &Fault{Condition: Conflict, Message: "session_id is that of another agent"}
	case threadstore.SeqExhausted:
		return &Fault{Condition: Conflict, Message: "the thread takes no more messages"}
	case threadstore.NoTarget:
		return &Fault{Condition: Invalid, Message: "target_agent_id is not a participant of the thread"}
	case threadstore.Unmanaged:
		return &Fault{Condition: UnmanagedRuntime, Message: "the runtime of the target is not managed, and there is no fallback"}
	case threadstore.NoRuntime:
		return &Fault{Condition: WakeFailed, Message: "the target has no live runtime, and there is no fallback"}
	case threadstore.HumanBusy:
		return &Fault{Condition: HumanBusy, Message: "a person uses the runtime of the target"}
	case threadstore.BadCount:
		return &Fault{Condition: Invalid, Message: "a thread has 1 to 256 participants",
			Details: details().Int("participants", r.N).End()}
	case threadstore.NoTimer:
		return &Fault{Condition: NotFound, Message: "schedule_id names no schedule"}
	case threadstore.NotAuthor:
		return &Fault{Condition: Forbidden, Message: "only its author and coordinators may change it"}
	case threadstore.BadCron:
		return &Fault{Condition: Invalid, Message: r.Err.Error()}
	case threadstore.NotStored:
		return &Fault{Condition: Unavailable, Message: "changes cannot be stored now"}
	}
	return &Fault{Condition: Unavailable, Message: "stored messages cannot be read now"}
}
