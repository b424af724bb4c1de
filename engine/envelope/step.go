package envelope

import (
	"math"
	"slices"
	"time"
)

// step is one call of boundary A: the envelope and what envelope §5.1 computes with.
type step struct {
	e     Env
	x     *Engine
	now   time.Time
	order [][]byte // O: the stages
	index nameSet  // of order
	goals goals
	moved []pair // scratch of rewind
	texts [][]byte
}

func (s *step) begin(x *Engine) {
	s.x = x
	s.now = x.opt.Now().UTC()
	s.goals.reset()
}

func (s *step) release() {
	s.e.Release()
	s.e.collect = nil
	s.goals.reset()
	s.index.reset()
	s.order, s.moved, s.texts = recycle(s.order), recycle(s.moved), recycle(s.texts)
	s.x = nil
}

// normalise completes the envelope (S0).
func (s *step) normalise() {
	s.e.Fill(s.now, s.x.opt.NewID)
	s.goals.normalise(&s.e)
}

// The names of stage_order that are not stages.
const (
	startStage         = "start"
	endStage           = "end"
	clarificationStage = "clarification"
	confirmationStage  = "confirmation"
)

func isPseudo(name []byte) bool {
	switch string(name) {
	case startStage, endStage, clarificationStage, confirmationStage:
		return true
	}
	return false
}

// readOrder finds out the stages.
func (s *step) readOrder() {
	s.order = s.e.strings(StageOrder, s.order)
	kept := s.order[:0]
	for _, name := range s.order {
		if !isPseudo(name) {
			kept = append(kept, name)
		}
	}
	s.order = kept
	cs := s.stage()
	if len(s.order) == 0 && (isPseudo(cs) || slices.Contains(s.x.opt.StageOrder, string(cs))) {
		s.order = append(s.order, s.x.order...)
	}
	s.index.reset()
	for _, name := range s.order {
		s.index.add(name)
	}
}

func (s *step) stage() []byte { return s.e.Text(CurrentStage) }

func (s *step) at(stage []byte) int { return s.index.find(stage) }

// run is S1 to S9; each part reports whether it ended the call.
func (s *step) run() {
	e := &s.e
	if e.Bool(Terminated) {
		return
	}
	if r := e.Reason(); r != NoReason && !r.waits() {
		e.SetBool(Terminated, true)
		e.stampCompleted(s.now)
		return
	}
	e.setReason(NoReason)
	s.readOrder()
	s.earlyGoals()
	if s.clarify() || s.confirm() || s.otherInterrupt() || s.enter() || s.consume() {
		return
	}
	s.checkBounds()
}

// earlyGoals takes the goals that stand in an output not consumed yet (S3).
func (s *step) earlyGoals() {
	s.goals.load(&s.e)
	if len(s.goals.all) > 0 {
		return
	}
	if raw, ok := s.e.output([]byte("intent")); ok {
		if list := s.e.Get(raw, "goals"); list.Kind == List {
			s.goals.add(&s.e, list)
		}
	}
}

// enter finds the first stage to run (S7).
func (s *step) enter() (ended bool) {
	cs := s.stage()
	switch {
	case len(s.order) > 0 && isPseudo(cs) && string(cs) != endStage:
		s.e.SetText(CurrentStage, s.order[0])
	case string(cs) == endStage:
		s.complete()
		return true
	case len(s.order) > 0 && s.at(cs) < 0:
		s.terminate(ToolFailedFatally, "Unknown stage: "+string(cs))
		return true
	}
	return false
}

// checkBounds is S9: an agent must run, if it may.
func (s *step) checkBounds() {
	e := &s.e
	if last, ok := s.lastError(nil, nil); ok {
		if agent, _ := e.Str(e.Get(last, "agent")); string(agent) == string(s.stage()) && isFalse(e.Get(last, "recoverable")) {
			s.terminate(ToolFailedFatally, s.errorText(last, "Stage "+string(s.stage())+" failed"))
			return
		}
	}
	if r, text := e.overBound(); r != NoReason {
		s.terminate(r, text)
	}
}

func isFalse(v Value) bool { return v.Kind == Bool && !v.true() }

// key returns under which name a stage's output stands.
func (s *step) key(stage []byte) (name []byte, ok bool) {
	if _, ok := s.e.output(stage); ok {
		return stage, true
	}
	if other := aliases[string(stage)]; other != "" {
		if _, ok := s.e.output([]byte(other)); ok {
			return []byte(other), true
		}
	}
	return nil, false
}

// aliases holds the other name of a stage that has two.
var aliases = map[string]string{"planner": "plan", "plan": "planner", "executor": "execution", "execution": "executor"}

// move makes to the stage that runs next.
func (s *step) move(to []byte) {
	e := &s.e
	if cs := s.stage(); string(cs) != string(to) && s.at(cs) >= 0 {
		e.SetInt(AgentHopCount, min(e.Int(AgentHopCount)+1, math.MaxInt32))
	}
	e.SetText(CurrentStage, to)
}

// rewind moves the outputs of a stage and of all after it out of the way and goes back there.
func (s *step) rewind(to []byte) {
	s.moved = s.moved[:0]
	if at := s.at(to); at >= 0 {
		for _, stage := range s.order[at:] {
			s.moveOutputs(stage)
		}
	} else {
		s.moveOutputs(to)
	}
	if len(s.moved) > 0 {
		s.keepMoved()
	}
	s.move(to)
}

// moveOutputs takes a stage's output away, also one under its other name, which would be taken for
// it.
func (s *step) moveOutputs(stage []byte) {
	for {
		k, ok := s.key(stage)
		if !ok {
			return
		}
		raw, _ := s.e.output(k)
		s.moved = append(s.moved, pair{spelled: s.e.spell(k), name: string(k), raw: raw})
		s.e.removeOutput(k)
	}
}

// keepMoved puts the outputs taken away into metadata.prior_outputs, over older ones of the same
// name.
func (s *step) keepMoved() {
	e := &s.e
	var names nameSet
	for i := range s.moved {
		names.add([]byte(s.moved[i].name))
	}
	list, placed := e.scratch[:0], make([]bool, len(s.moved))
	if prior := e.Get(e.Value(Metadata).Raw, priorKey); prior.Kind == Map {
		it := openMap(e.form, prior.Raw)
		for it.next() {
			at := names.find(e.unescape(it.name))
			switch {
			case at < 0:
				list = append(list, pair{spelled: it.spelled, raw: it.v.Raw})
			case !placed[at]:
				placed[at] = true
				list = append(list, s.moved[at])
			}
		}
	}
	for i := range s.moved {
		if !placed[i] {
			list = append(list, s.moved[i])
		}
	}
	raw := e.keep(appendMap(e.arena, e.form, list))
	e.scratch = recycle(list)
	e.SetMember(Metadata, priorKey, raw)
}

func (s *step) terminate(r Reason, text string) { s.e.Terminate(r, text, s.now) }

// Terminate ends the envelope: the four members that record it (envelope §5.1, §5.2).
func (e *Env) Terminate(r Reason, text string, now time.Time) {
	e.SetBool(Terminated, true)
	e.setReason(r)
	e.SetText(TerminationReason, []byte(text))
	e.stampCompleted(now)
}

func (e *Env) stampCompleted(now time.Time) {
	if v := e.Value(CompletedAt); v.Kind == Absent || v.Kind == Null {
		e.setTime(CompletedAt, now)
	}
}

func (s *step) complete() {
	s.e.SetText(CurrentStage, []byte(endStage))
	s.terminate(CompletedSuccessfully, CompletedSuccessfully.Exchange())
}
