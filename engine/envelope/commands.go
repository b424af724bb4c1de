package envelope

import (
	"fmt"
	"math"
	"strconv"

	"trunkline/codec/jsonx"
)

// CanContinue appends whether an agent may run (envelope §4.4): not for an envelope that has ended,
// waits for an answer or is over a bound.
func (x *Engine) CanContinue(dst, src []byte) (out []byte, err *Error) {
	s, err := x.open(src, decodeEnvelope)
	if err != nil {
		return dst, err
	}
	defer x.close(s)
	e := &s.e
	can, reason := s.mayRun()
	return fmt.Appendf(dst, `{"can_continue":%t,"terminal_reason":%s,"iteration":%d,"llm_call_count":%d,"agent_hop_count":%d}`,
		can, reason, e.Int(Iteration), e.Int(LLMCallCount), e.Int(AgentHopCount)), nil
}

// mayRun decides CanContinue; reason is the encoded terminal_reason to show.
func (s *step) mayRun() (can bool, reason []byte) {
	e := &s.e
	r := e.Reason()
	if e.Bool(Terminated) || r != NoReason && !r.waits() {
		if r != NoReason && r != OtherReason {
			return false, quote(r.Exchange())
		}
		return false, e.shown(TerminalReason)
	}
	if e.Bool(ClarificationPending) || e.pends(Clarification) {
		if e.clarificationAnswer() == nil {
			return false, quote(ClarificationRequired.Exchange())
		}
	}
	if e.Bool(ConfirmationPending) || e.pends(Confirmation) {
		if _, ok := e.confirmationAnswer(); !ok {
			return false, quote(ConfirmationRequired.Exchange())
		}
	}
	if k, ok := e.InterruptKindOf(); ok && k != Clarification && k != Confirmation {
		if a := e.Get(e.Value(Interrupt).Raw, "response"); a.Kind == Absent || a.Kind == Null {
			return false, appendNull(nil, JSON)
		}
	}
	if r, _ := e.overBound(); r != NoReason {
		return false, quote(r.Exchange())
	}
	return true, appendNull(nil, JSON)
}

// Result appends what a user wants to know of an envelope (envelope §4.4).
func (x *Engine) Result(dst, src []byte) (out []byte, err *Error) {
	s, err := x.open(src, decodeEnvelope)
	if err != nil {
		return dst, err
	}
	defer x.close(s)
	s.normalise()
	e := &s.e
	start := len(dst)
	dst = append(dst, '{')
	for _, k := range [...]Key{EnvelopeID, RequestID, UserID, SessionID, CurrentStage, Terminated, TerminationReason, Iteration, LLMCallCount} {
		dst = appendMember(dst, k.String(), e.shown(k))
	}
	dst = appendMember(dst, "response", e.answer())
	asks := e.pendingKind()
	dst = appendMember(dst, "interrupt_pending", appendBool(nil, JSON, e.Bool(InterruptPending) || asks != UnknownKind))
	dst = append(dst, `,"processing_time_ms":`...)
	dst = strconv.AppendFloat(dst, max(min(e.spentMS(), math.MaxFloat64), -math.MaxFloat64), 'f', -1, 64)
	dst = appendMember(dst, "errors", e.shown(Errors))
	if e.outputCount() > 0 {
		dst = e.appendOutputs(append(dst, `,"outputs":`...))
	}
	dst = append(e.appendAsked(dst, asks), '}')
	return dst[:start+len(jsonx.Compact(dst[start:]))], nil
}

// appendMember appends a member; nil is null.
func appendMember(dst []byte, name string, raw []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(append(dst, '"'), name...), `":`...)
	if raw == nil {
		return appendNull(dst, JSON)
	}
	return append(dst, raw...)
}

// pendingKind is the kind of question the user is to answer; UnknownKind: none.
func (e *Env) pendingKind() InterruptKind {
	switch {
	case e.Bool(ClarificationPending) || e.pends(Clarification):
		return Clarification
	case e.Bool(ConfirmationPending) || e.pends(Confirmation):
		return Confirmation
	}
	return UnknownKind
}

// asked returns a text member of the question, from the flag's keys or else from the interrupt.
func (e *Env) asked(k Key, kind InterruptKind, member string) []byte {
	if v := e.Value(k); v.Kind == String {
		return v.Raw
	}
	if e.pends(kind) {
		if v := e.Get(e.Value(Interrupt).Raw, member); v.Kind == String {
			return v.Raw
		}
	}
	return appendNull(nil, JSON)
}

// answer is what to show the user: a pending question, else a pending message, else the final
// response.
func (e *Env) answer() []byte {
	null := appendNull(nil, JSON)
	if e.Bool(ClarificationPending) || e.pends(Clarification) {
		if raw := e.asked(ClarificationQuestion, Clarification, "question"); string(raw) != string(null) {
			return raw
		}
	}
	if e.Bool(ConfirmationPending) || e.pends(Confirmation) {
		if raw := e.asked(ConfirmationMessage, Confirmation, "message"); string(raw) != string(null) {
			return raw
		}
	}
	if out, ok := e.output([]byte("integration")); ok {
		if v := e.Get(out, "final_response"); v.Kind == String {
			return v.Raw
		}
	}
	return null
}

// spentMS is the sum of the durations in processing_history.
func (e *Env) spentMS() (sum float64) {
	it := openList(e.form, e.Value(ProcessingHistory).Raw)
	for it.next() {
		if d := e.Get(it.v.Raw, "duration_ms"); d.Kind == Float {
			if ms, err := strconv.ParseFloat(string(d.Raw), 64); err == nil {
				sum += ms
			}
		}
	}
	return sum
}

// appendAsked appends the interrupt and the question, if there is either.
func (e *Env) appendAsked(dst []byte, asks InterruptKind) []byte {
	v := e.Value(Interrupt)
	question, message := e.Value(ClarificationQuestion), e.Value(ConfirmationMessage)
	if v.Kind != Map && asks == UnknownKind && question.Kind != String && message.Kind != String {
		return dst
	}
	kind := asks
	switch {
	case asks != UnknownKind:
	case v.Kind == Map:
		s, _ := e.Str(e.Get(v.Raw, "kind"))
		kind = parseInterruptKind(s)
	case question.Kind == String:
		kind = Clarification
	default:
		kind = Confirmation
	}
	dst = append(dst, `,"interrupt":{`...)
	name := quote(kind.String())
	if own := e.Get(v.Raw, "kind"); kind == UnknownKind && own.Kind == String {
		name = own.Raw
	}
	dst = appendMember(dst, "kind", name)
	for _, m := range [...]struct {
		name string
		k    Key
		kind InterruptKind
	}{{"id", ConfirmationID, Confirmation}, {"question", ClarificationQuestion, Clarification}, {"message", ConfirmationMessage, Confirmation}} {
		raw := e.Get(v.Raw, m.name).Raw
		if raw == nil && kind == m.kind {
			raw = e.shown(m.k)
		}
		dst = appendMember(dst, m.name, raw)
	}
	dst = append(appendMember(dst, "created_at", e.Get(v.Raw, "created_at").Raw), '}')
	switch kind {
	case Clarification:
		dst = appendMember(dst, "clarification_needed", appendBool(nil, JSON, asks == Clarification))
		return appendMember(dst, "clarification_question", e.asked(ClarificationQuestion, Clarification, "question"))
	case Confirmation:
		dst = appendMember(dst, "confirmation_needed", appendBool(nil, JSON, asks == Confirmation))
		dst = appendMember(dst, "confirmation_message", e.asked(ConfirmationMessage, Confirmation, "message"))
		return appendMember(dst, "confirmation_id", e.asked(ConfirmationID, Confirmation, "id"))
	}
	return dst
}
