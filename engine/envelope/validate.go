package envelope

import (
	"bytes"
	"fmt"

	"trunkline/codec/jsonx"
)

// documented lists the members that the published schema requires of an envelope; all of them may
// be missing (envelope D5).
var documented = [...]Key{EnvelopeID, RequestID, UserID, SessionID, RawInput, Outputs, CurrentStage, Terminated}

// Validate appends whether src is an envelope, everything that is wrong with it, and what differs
// from the published schema though it is accepted (envelope §4.4). It takes any text.
func (x *Engine) Validate(dst, src []byte) (out []byte) {
	var errors, warnings []string
	s := x.works.Get().(*step)
	defer x.close(s)
	e := &s.e
	e.reset(JSON)
	src = jsonx.TrimBOM(src)
	if p := jsonx.Check(src, jsonx.MaxDepth); !p.OK() {
		errors = append(errors, "Invalid JSON: "+p.String())
	} else {
		e.collect = func(p *Problem) { errors = append(errors, "Invalid envelope: "+p.Message()) }
		p := e.Decode(JSON, src)
		e.collect = nil
		if p != nil {
			errors = append(errors, "Invalid envelope: "+p.Message())
		} else {
			warnings = e.warnings()
		}
	}
	return fmt.Appendf(dst, `{"valid":%t,"errors":%s,"warnings":%s,"envelope_id":%s}`, len(errors) == 0,
		appendTexts(nil, JSON, errors), appendTexts(nil, JSON, warnings), quote(e.Text(EnvelopeID)))
}

// warnings lists what the published schema does not have.
func (e *Env) warnings() (list []string) {
	for _, k := range documented {
		if e.f[k].raw == nil {
			list = append(list, "missing field `"+e.path(k)+"`")
		}
	}
	for _, id := range [...]struct {
		k      Key
		prefix string
	}{{EnvelopeID, EnvelopePrefix}, {RequestID, requestPrefix}, {SessionID, sessionPrefix}} {
		if e.f[id.k].raw != nil && !isPattern(e.Text(id.k), id.prefix) {
			list = append(list, e.path(id.k)+" is not of the form "+id.prefix+" and 16 lower-case hexadecimal digits")
		}
	}
	if e.Reason() == OtherReason {
		list = append(list, e.path(TerminalReason)+" is not a known reason")
	}
	return list
}

func isPattern(s []byte, prefix string) bool {
	digits, ok := bytes.CutPrefix(s, []byte(prefix))
	return ok && len(digits) == 2*idBytes && len(bytes.TrimLeft(digits, "0123456789abcdef")) == 0
}
