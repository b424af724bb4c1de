package envelope

import (
	"bytes"
	"cmp"
	"fmt"
	"time"
)

// InterruptKindOf returns the kind of the pending interrupt; ok is false if none is pending. A
// pending one without a kind, or without an object at all, is of UnknownKind.
func (e *Env) InterruptKindOf() (k InterruptKind, ok bool) {
	if !e.Bool(InterruptPending) {
		return UnknownKind, false
	}
	s, _ := e.Str(e.Get(e.Value(Interrupt).Raw, "kind"))
	return parseInterruptKind(s), true
}

// response returns the pending interrupt's answer if it is of kind k; Absent otherwise.
func (e *Env) response(k InterruptKind, member string) Value {
	if kind, ok := e.InterruptKindOf(); !ok || kind != k {
		return Value{}
	}
	return e.Get(e.Get(e.Value(Interrupt).Raw, "response").Raw, member)
}

func (e *Env) pends(k InterruptKind) bool {
	kind, ok := e.InterruptKindOf()
	return ok && kind == k
}

// clarificationAnswer returns what the user answered to a question; nil: nothing yet.
func (e *Env) clarificationAnswer() []byte {
	if s := e.Text(ClarificationResponse); len(s) > 0 {
		return s
	}
	s, _ := e.Str(e.response(Clarification, "text"))
	if len(s) == 0 {
		return nil
	}
	return s
}

// confirmationAnswer returns the answer of the user to a request for approval; ok is false while
// there is nothing.
func (e *Env) confirmationAnswer() (approved, ok bool) {
	if e.Value(ConfirmationResponse).Kind == Bool {
		return e.Bool(ConfirmationResponse), true
	}
	v := e.response(Confirmation, "approved")
	return v.true(), v.Kind == Bool
}

// fillFrom gives a text member that is null the value in the pending interrupt.
func (e *Env) fillFrom(k Key, kind InterruptKind, member string) {
	if e.Text(k) != nil || !e.pends(kind) {
		return
	}
	if s, ok := e.Str(e.Get(e.Value(Interrupt).Raw, member)); ok {
		e.SetText(k, s)
	}
}

// clarify is S4.
func (s *step) clarify() (ended bool) {
	e := &s.e
	if !e.Bool(ClarificationPending) && !e.pends(Clarification) {
		return false
	}
	answer := e.clarificationAnswer()
	if answer == nil {
		e.SetBool(ClarificationPending, true)
		e.fillFrom(ClarificationQuestion, Clarification, "question")
		e.setReason(ClarificationRequired)
		return true
	}
	e.SetBool(ClarificationPending, false)
	e.SetText(ClarificationResponse, answer)
	quoted := quote(answer)
	e.SetMember(Metadata, "user_clarification", quoted)
	s.resolve(Clarification, "text", quoted)
	s.rewind(s.afterClarification())
	return false
}

// afterClarification is the stage that an answer goes to: the one that finds out what the user
// wants, unless the question came from an earlier one.
func (s *step) afterClarification() []byte {
	cs := s.stage()
	at, intent := s.at(cs), s.at([]byte("intent"))
	switch {
	case intent >= 0 && (at < 0 || intent <= at):
		return s.order[intent]
	case at >= 0 || len(s.order) == 0:
		return bytes.Clone(cs)
	}
	return s.order[0]
}

// confirm is S5.
func (s *step) confirm() (ended bool) {
	e := &s.e
	if !e.Bool(ConfirmationPending) && !e.pends(Confirmation) {
		return false
	}
	approved, ok := e.confirmationAnswer()
	if !ok {
		e.SetBool(ConfirmationPending, true)
		e.fillFrom(ConfirmationID, Confirmation, "id")
		e.fillFrom(ConfirmationMessage, Confirmation, "message")
		e.setReason(ConfirmationRequired)
		return true
	}
	e.SetBool(ConfirmationPending, false)
	e.SetBool(ConfirmationResponse, approved)
	s.resolve(Confirmation, "approved", appendBool(nil, JSON, approved))
	if !approved {
		s.terminate(DeniedByPolicy, "User denied confirmation")
		return true
	}
	return s.approved()
}

// approved goes on to what the user agreed to.
func (s *step) approved() (ended bool) {
	cs := s.stage()
	at := s.at(cs)
	if at >= 0 && string(cs) != "execution" && string(cs) != "executor" {
		if at == len(s.order)-1 {
			s.complete()
			return true
		}
		s.move(s.order[at+1])
		return false
	}
	for _, stage := range [...]string{"executor", "execution"} {
		if s.at([]byte(stage)) >= 0 {
			s.rewind([]byte(stage))
			return false
		}
	}
	if len(s.order) > 0 {
		s.rewind(s.order[0])
	} else {
		s.rewind(bytes.Clone(cs))
	}
	return false
}

// resolve takes the pending interrupt of a kind off, with its answer in it.
func (s *step) resolve(k InterruptKind, member string, answer []byte) {
	e := &s.e
	if !e.pends(k) {
		return
	}
	v := e.Value(Interrupt)
	if r := e.Get(v.Raw, "response"); r.Kind == Absent || r.Kind == Null {
		e.SetMember(Interrupt, "response", fmt.Appendf(nil, `{"%s":%s,"received_at":"%s"}`, member, answer, appendTime(nil, s.now)))
	}
	e.SetBool(InterruptPending, false)
}

// otherInterrupt is S6.
func (s *step) otherInterrupt() (ended bool) {
	e := &s.e
	if !e.Bool(InterruptPending) {
		return false
	}
	if r := e.Get(e.Value(Interrupt).Raw, "response"); r.Kind == Absent || r.Kind == Null {
		return true
	}
	e.SetBool(InterruptPending, false)
	return false
}

// raise shows a new interrupt to callers that know them (envelope §5.1): id, then the question or
// message under member.
func (s *step) raise(k InterruptKind, id []byte, member string, ask Value) {
	e := &s.e
	if f := &e.f[InterruptPending]; e.shape == Flat && f.raw == nil && !f.null {
		return
	}
	asked := ""
	if ask.Kind == String {
		asked = fmt.Sprintf(`"%s":%s,`, member, ask.Raw)
	}
	e.SetRaw(Interrupt, Map, fmt.Appendf(nil, `{"kind":"%s","id":%s,%s"created_at":"%s"}`, k, quote(id), asked, appendTime(nil, s.now)))
	e.SetBool(InterruptPending, true)
}

// derivedID is the identifier of an interrupt that came without one (envelope §3.7).
func (s *step) derivedID(prefix string, stage []byte, k InterruptKind) []byte {
	e := &s.e
	return appendDerivedID([]byte(prefix), e.Text(EnvelopeID), stage, e.Int(Iteration), e.Int(CurrentStageNumber), k.String())
}

// InterruptKind is what a waiting envelope waits for (envelope §3.5).
type InterruptKind uint8

// The kinds of interrupt of envelope §3.5.
const (
	// UnknownKind is every other text: "unspecified", empty, or a kind of a later version.
	UnknownKind InterruptKind = iota
	Clarification
	Confirmation
	AgentReview
	Checkpoint
	ResourceExhausted
	TimedOut
	SystemError
	numInterruptKinds
)

// oldAgentReview is the name of AgentReview in older envelopes.
const oldAgentReview = "critic_review"

var interruptKinds = [1 << 8]struct {
	name      string
	retention time.Duration
}{
	UnknownKind:       {"unknown", 0},
	Clarification:     {"clarification", 24 * time.Hour},
	Confirmation:      {"confirmation", time.Hour},
	AgentReview:       {"agent_review", time.Hour},
	Checkpoint:        {"checkpoint", 24 * time.Hour},
	ResourceExhausted: {"resource_exhausted", time.Hour},
	TimedOut:          {"timeout", time.Hour},
	SystemError:       {"system_error", time.Hour},
}

// parseInterruptKind returns the kind that s spells in any ASCII case, old name included, or
// UnknownKind. It does not allocate.
func parseInterruptKind(s []byte) InterruptKind {
	for k := Clarification; k < numInterruptKinds; k++ {
		if equalFold(s, interruptKinds[k].name) {
			return k
		}
	}
	if equalFold(s, oldAgentReview) {
		return AgentReview
	}
	return UnknownKind
}

// Retention returns for how long a session that waits on an interrupt of this kind is kept at least
// (envelope §5.3). An unknown kind asks for nothing beyond the retention of every session: 0.
func (k InterruptKind) Retention() time.Duration {
	return interruptKinds[k].retention
}

// String returns the name as the engine writes it; "unknown" for UnknownKind.
func (k InterruptKind) String() string {
	return cmp.Or(interruptKinds[k].name, interruptKinds[UnknownKind].name)
}
