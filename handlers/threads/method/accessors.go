package method

import "trunkline/engine/threadstore"

// These return the fields of an Input, as Parse left them. Texts that were not given are nil.

// Thread is thread_id.
func (in *Input) Thread() []byte { return in.textOf(slotThread) }

// Title is title.
func (in *Input) Title() []byte { return in.textOf(slotTitle) }

// Key is idempotency_key.
func (in *Input) Key() []byte { return in.textOf(slotKey) }

// Body is body: what is between the quotes in the document.
func (in *Input) Body() []byte { return in.textOf(slotBody) }

// Metadata is metadata, an object without spaces.
func (in *Input) Metadata() []byte { return in.textOf(slotMetadata) }

// InReplyTo is in_reply_to.
func (in *Input) InReplyTo() []byte { return in.textOf(slotInReplyTo) }

// Reason is reason.
func (in *Input) Reason() []byte { return in.textOf(slotReason) }

// Runtime is runtime.
func (in *Input) Runtime() []byte { return in.textOf(slotRuntime) }

// Target is target_agent_id, or participant.
func (in *Input) Target() []byte { return in.textOf(slotTarget) }

// Prompt is trigger_prompt: what is between the quotes in the document.
func (in *Input) Prompt() []byte { return in.textOf(slotPrompt) }

// Participants is participants, or add.
func (in *Input) Participants() [][]byte { return in.lists[0] }

// Removed is remove.
func (in *Input) Removed() [][]byte { return in.lists[1] }

// Unread is unread.
func (in *Input) Unread() bool { return in.numberOf(slotUnread, 0) == 1 }

// ByCreation reports that order is created.
func (in *Input) ByCreation() bool { return in.numberOf(slotOrder, 0) == 1 }

// Cursor is cursor.
func (in *Input) Cursor() []byte { return in.textOf(slotCursor) }

// WaitMillis is wait_ms.
func (in *Input) WaitMillis() int64 { return in.numberOf(slotWait, 0) }

// TypeFilter and StatusFilter are the numbers of type and status, negative where they are not
// given.
func (in *Input) TypeFilter() int { return int(in.numberOf(slotType, -1)) }

// StatusFilter is status.
func (in *Input) StatusFilter() int { return int(in.numberOf(slotStatus, -1)) }

// Type, Kind and Status are the numbers of the values of these fields.
func (in *Input) Type() int { return int(in.numbers[slotType]) }

// Kind is kind.
func (in *Input) Kind() int { return int(in.numberOf(slotKind, 0)) }

// Status is status.
func (in *Input) Status() int { return int(in.numbers[slotStatus]) }

// Managed reports that management_mode is managed.
func (in *Input) Managed() bool { return in.has(slotMode) && in.numbers[slotMode] == 1 }

// Resumable is resumable.
func (in *Input) Resumable() bool { return in.numbers[slotResumable] == 1 }

// LastRead is last_read_seq.
func (in *Input) LastRead() int64 { return in.numbers[slotLastRead] }

// Since is since_seq.
func (in *Input) Since() int64 { return in.numberOf(slotSince, 0) }

// Limit is limit.
func (in *Input) Limit() int64 { return in.numberOf(slotLimit, 50) }

// Subscription is subscription.
func (in *Input) Subscription() int64 { return in.numbers[slotLimit] }

// MaxMessages is max_messages.
func (in *Input) MaxMessages() int64 { return in.numberOf(slotMaxMessages, 200) }

// Deliver is deliver_at in milliseconds since 1970, 0 without one.
func (in *Input) Deliver() int64 { return in.numberOf(slotDeliver, 0) }

// Timer is schedule_id or deferred_id.
func (in *Input) Timer() []byte { return in.textOf(slotTimer) }

// Paused is paused.
func (in *Input) Paused() bool { return in.numberOf(slotPaused, 0) == 1 }

// Plan is the schedule in the fields, without its trigger_prompt.
func (in *Input) Plan() threadstore.Plan {
	text := func(s slot) string { return string(in.textOf(s)) }
	return threadstore.Plan{Cron: text(slotCron), Zone: text(slotZone), Every: in.numberOf(slotEvery, 0),
		Once: in.numberOf(slotMisfire, 0) == 1, Kind: uint8(in.Kind()), Body: in.Body(), Metadata: in.Metadata(),
		Target: text(slotTarget), Reason: text(slotReason), Key: text(slotKey)}
}

func (in *Input) textOf(s slot) []byte {
	if in.has(s) {
		return in.texts[s]
	}
	return nil
}

func (in *Input) numberOf(s slot, without int64) int64 {
	if in.has(s) {
		return in.numbers[s]
	}
	return without
}
