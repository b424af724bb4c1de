package projects

import (
	"strconv"
	"strings"

	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/plan"
	"trunkline/engine/projects/planner"
)

// leastConfidence and sureConfidence bound what needs a confirmation (exacta §4.3, §4.4).
const (
	leastConfidence = 0.60
	sureConfidence  = 0.85
)

// Intent is what a request wants (exacta §4.3).
type Intent struct {
	planner.Intent
	ID codec.ID

	flow  *Flow
	plans int // how many were made of it
}

// usable reports whether a plan can be made of it.
func (i *Intent) usable() bool {
	return i.Type != planner.UnknownIntent && i.Confidence >= leastConfidence
}

// extract begins an ExtractIntent (exacta §4.3).
func (p *Project) extract(r *Request) {
	if strings.TrimSpace(r.Args.UserInput) == "" {
		p.fail(r, errcode.New("VAL-001", "user_input is blank"))
		return
	}
	if p.Secret(r.Args.UserInput) {
		p.fail(r, errcode.New("SEC-003", "user_input"))
		return
	}
	if err := p.Ready(); err != nil {
		p.fail(r, err)
		return
	}
	if !p.acknowledge(r) {
		return
	}
	if err := p.enter(ExtractingIntent, "ExtractIntent", r, r.flow); err != nil {
		p.raise(r, r.flow, err)
		p.fail(r, err)
		return
	}
	p.start(r)
}

// acknowledge leaves Failed and Completed (exacta §5.2). It reports whether that could be saved.
func (p *Project) acknowledge(r *Request) bool {
	if p.state != Failed && p.state != Completed {
		return true
	}
	err := p.enter(Idle, "Acknowledge", r, r.flow)
	if err != nil {
		p.raise(r, r.flow, err)
		p.fail(r, err)
	}
	return err == nil
}

// extracted ends an ExtractIntent.
func (p *Project) extracted(w *Work) {
	r := w.Request
	err := w.Fault
	if w.Cut {
		p.log(r, r.flow, "WARN", "FileGateway", "the index of the project stops at 10000 files; a file after them is found by its whole path only")
	}
	switch {
	case err != nil && w.Planner:
		p.raise(r, r.flow, err)
		p.settle(Failed, "PlannerError", r, r.flow)
		p.fail(r, err)
		return
	case err != nil:
		p.raise(r, r.flow, err)
		p.settle(Idle, "IntentRejected", r, r.flow)
		p.fail(r, err)
		return
	}
	i := &Intent{Intent: *w.Extracted, ID: p.IDs.Next(codec.Intent), flow: r.flow}
	p.remember(i)
	if i.usable() {
		p.settle(Idle, "IntentExtracted", r, r.flow)
		p.log(r, r.flow, "INFO", "AIInterface", "intent extracted: "+i.Type)
	} else {
		p.raise(r, r.flow, errcode.New("VAL-001", "intent: "+i.Type+", confidence "+confidence(i.Confidence)))
		p.settle(Idle, "IntentRejected", r, r.flow)
	}
	p.done(r, p.appendIntent(nil, i))
}

// remember keeps the last intents.
func (p *Project) remember(i *Intent) {
	p.intents[i.ID] = i
	p.recent = append(p.recent, i)
	if len(p.recent) > maxIntents {
		delete(p.intents, p.recent[0].ID)
		p.recent = append(p.recent[:0], p.recent[1:]...)
	}
}

// confidence returns the text of a confidence: at most two decimals.
func confidence(c float64) string {
	return strconv.FormatFloat(float64(int(c*100+0.5))/100, 'f', -1, 64)
}

// appendIntent appends the result of an ExtractIntent.
func (p *Project) appendIntent(dst []byte, i *Intent) []byte {
	dst = i.ID.Append(append(dst, `{"intent":{"id":"`...))
	dst = append(append(dst, `","type":"`...), i.Type...)
	dst = append(append(dst, `","confidence":`...), confidence(i.Confidence)...)
	dst = codec.AppendText(append(dst, `,"raw_input":`...), i.RawInput)
	dst = codec.AppendTexts(append(dst, `,"target":{"files":`...), i.Files)
	dst = codec.AppendTexts(append(dst, `,"symbols":`...), i.Symbols)
	dst = codec.AppendText(append(dst, `,"description":`...), i.Description)
	dst = appendConstraints(append(dst, `},"constraints":`...), i.Constraints)
	dst = p.Clock.Append(append(dst, `,"timestamp":"`...))
	return append(dst, `"}}`...)
}

// appendConstraints appends a list of constraints (exacta §3.4).
func appendConstraints(dst []byte, list []plan.Constraint) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		c := &list[i]
		dst = append(append(dst, `{"type":"`...), c.Type...)
		dst = codec.AppendText(append(dst, `","description":`...), c.Description)
		dst = codec.AppendText(append(dst, `,"scope":`...), c.Scope)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
