package envelope

import (
	"fmt"
	"math"

	"trunkline/codec/jsonx"
)

// next is what follows the consumption of an output.
type next uint8

const (
	ended     next = iota // the call is over
	again                 // the next stage may have an output too
	runAgent              // go to S9
	following             // row i
)

// consume is S8: it goes through the outputs that stand there. It reports whether the call is over.
func (s *step) consume() bool {
	for {
		cs := s.stage()
		k, ok := s.key(cs)
		if !ok {
			return false
		}
		raw, _ := s.e.output(k)
		n := s.decide(cs, k, raw)
		if n == following {
			n = s.advance()
		}
		switch n {
		case ended:
			return true
		case runAgent:
			return false
		}
	}
}

// The members of an output that the engine reads (envelope §3.8).
const (
	outStatus = iota
	outApproval
	outClarificationNeeded
	outClarificationQuestion
	outConfirmationNeeded
	outConfirmationID
	outConfirmationMessage
	outGoals
	outVerdict
	outSatisfiedGoals
	outFeedback
	outGoalUpdates
	outSummary
)

var outcomeNames = [...]string{"status", "approval", "clarification_needed", "clarification_question",
	"confirmation_needed", "confirmation_id", "confirmation_message", "goals", "verdict", "satisfied_goals",
	"feedback", "goal_updates", "summary"}

type outcome [len(outcomeNames)]Value

// readOutcome picks them out of an output in one walk; of a repeated name the last one counts.
func (e *Env) readOutcome(raw []byte) (o outcome) {
	it := openMap(e.form, raw)
	for it.next() {
		name := e.unescape(it.name)
		for i := range outcomeNames {
			if string(name) == outcomeNames[i] {
				o[i] = it.v
			}
		}
	}
	return o
}

// decide is the table of S8 up to row h.
func (s *step) decide(stage, k, raw []byte) next {
	e := &s.e
	out := e.readOutcome(raw)
	if status, _ := e.Str(out[outStatus]); string(status) == "error" {
		s.failed(stage, k)
		return ended
	}
	approval, _ := e.Str(out[outApproval])
	switch {
	case out[outClarificationNeeded].true():
		s.ask(stage, &out)
		return ended
	case out[outConfirmationNeeded].true() || string(approval) == "requires_confirmation":
		s.askApproval(stage, &out)
		return ended
	case string(approval) == "denied":
		s.terminate(DeniedByPolicy, "Denied by "+string(stage))
		return ended
	case string(k) == "critic":
		return s.criticise(stage, &out)
	case string(k) == "intent":
		if out[outGoals].Kind == List {
			s.goals.add(e, out[outGoals])
		}
	}
	return following
}

// failed is row a.
func (s *step) failed(stage, k []byte) {
	r, text := ToolFailedFatally, "Stage "+string(stage)+" reported an error"
	if last, ok := s.lastError(stage, k); ok {
		if s.e.Get(last, "recoverable").true() {
			r = ToolFailedRecoverably
		}
		text = s.errorText(last, text)
	}
	s.terminate(r, text)
}

// lastError returns the last element of errors whose agent is one of two; the very last one if both
// are nil.
func (s *step) lastError(a, b []byte) (last []byte, ok bool) {
	e := &s.e
	v := e.Value(Errors)
	if v.Kind != List {
		return nil, false
	}
	it := openList(e.form, v.Raw)
	for it.next() {
		if a != nil {
			agent, isText := e.Str(e.Get(it.v.Raw, "agent"))
			if !isText || string(agent) != string(a) && string(agent) != string(b) {
				continue
			}
		}
		last, ok = it.v.Raw, true
	}
	return last, ok
}

func (s *step) errorText(element []byte, otherwise string) string {
	if text, ok := s.e.Str(s.e.Get(element, "message")); ok {
		return string(text)
	}
	return otherwise
}

// ask is row b.
func (s *step) ask(stage []byte, out *outcome) {
	e := &s.e
	question := out[outClarificationQuestion]
	e.SetBool(ClarificationPending, true)
	s.setOrNull(ClarificationQuestion, question)
	e.SetNull(ClarificationResponse)
	e.setReason(ClarificationRequired)
	s.raise(Clarification, s.derivedID(interruptPrefix, stage, Clarification), "question", question)
}

// askApproval is row c.
func (s *step) askApproval(stage []byte, out *outcome) {
	e := &s.e
	message := out[outConfirmationMessage]
	id, ok := e.Str(out[outConfirmationID])
	if !ok || len(id) == 0 {
		id = s.derivedID(confirmationPrefix, stage, Confirmation)
	}
	e.SetBool(ConfirmationPending, true)
	e.SetText(ConfirmationID, id)
	s.setOrNull(ConfirmationMessage, message)
	e.SetNull(ConfirmationResponse)
	e.setReason(ConfirmationRequired)
	s.raise(Confirmation, id, "message", message)
}

func (s *step) setOrNull(k Key, v Value) {
	if text, ok := s.e.Str(v); ok {
		s.e.SetText(k, text)
	} else {
		s.e.SetNull(k)
	}
}

// criticise is rows f, g and h.
func (s *step) criticise(stage []byte, out *outcome) next {
	e := &s.e
	verdict, _ := e.Str(out[outVerdict])
	list := s.satisfied(out)
	if s.goals.tooMany = s.goals.tooMany || e.tooLong(list); s.goals.tooMany {
		return ended
	}
	s.texts = e.textsOf(list, recycle(s.texts))
	s.goals.satisfy(e, s.texts)
	here := s.at(stage)
	if here < 0 {
		return following // it stays where it is, and would be handled again by the next call
	}
	switch string(verdict) {
	case "reintent":
		to := s.at([]byte("intent"))
		if to = max(to, 0); to > here {
			return following
		}
		s.reintent(out)
		s.rewind(s.order[to])
		return runAgent
	case "next_stage":
		to := s.planStage()
		if len(s.goals.remaining) > 0 && e.Int(CurrentStageNumber) < e.Int(MaxStages) && to <= here {
			s.recordStage(out)
			e.SetInt(CurrentStageNumber, e.Int(CurrentStageNumber)+1)
			s.rewind(s.order[to])
			return runAgent
		}
	case "approved", "": // an empty verdict counts as none
	default:
		s.recordVerdict(stage, verdict)
	}
	s.recordStage(out)
	return following
}

// satisfied returns the list of goals that a critic reports as reached.
func (s *step) satisfied(out *outcome) Value {
	if out[outSatisfiedGoals].Kind == List {
		return out[outSatisfiedGoals]
	}
	return s.e.Get(out[outGoalUpdates].Raw, "satisfied")
}

// reintent keeps what the next round should know.
func (s *step) reintent(out *outcome) {
	e := &s.e
	if v := out[outFeedback]; v.Kind == String && len(v.Raw) > len(`""`) {
		e.appendElement(LoopFeedback, v.Raw)
	}
	if plan, ok := e.output([]byte("plan")); ok {
		e.appendElement(PriorPlans, plan)
	}
	e.SetInt(Iteration, min(e.Int(Iteration)+1, math.MaxInt32))
}

// planStage is where the next round of planning begins.
func (s *step) planStage() int {
	for _, stage := range [...]string{"plan", "planner"} {
		if at := s.at([]byte(stage)); at >= 0 {
			return at
		}
	}
	if at := s.at([]byte("intent")); at >= 0 && at+1 < len(s.order) {
		return at + 1
	}
	return 0
}

func (s *step) recordStage(out *outcome) {
	e := &s.e
	summary, planID := []byte("{}"), []byte("null")
	if v := out[outSummary]; v.Kind == Map {
		summary = v.Raw
	}
	plan, _ := e.output([]byte("plan"))
	if v := e.Get(plan, "plan_id"); v.Kind == String {
		planID = v.Raw
	}
	e.appendElement(CompletedStages, fmt.Appendf(nil, `{"stage_number":%d,"satisfied_goals":%s,"summary":%s,"plan_id":%s}`,
		e.Int(CurrentStageNumber), appendTexts(nil, JSON, s.texts), summary, planID))
}

// recordVerdict leaves a trace of an unknown verdict (envelope D17).
func (s *step) recordVerdict(stage, verdict []byte) {
	s.e.appendElement(Errors, fmt.Appendf(nil, `{"agent":%s,"error_type":"UnknownVerdict","message":%s,"timestamp":"%s",`+
		`"recoverable":true,"details":{"verdict":%s}}`,
		quote(stage), quote("Unknown verdict: "+string(verdict)), appendTime(nil, s.now), quote(verdict)))
}

func quote[T ~string | ~[]byte](s T) []byte { return jsonx.AppendString(nil, s) }

// advance is row i.
func (s *step) advance() next {
	at := s.at(s.stage())
	switch {
	case at < 0:
		return ended // the successor of a stage that is in no order is not known
	case at == len(s.order)-1:
		s.complete()
		return ended
	}
	s.move(s.order[at+1])
	return again
}
