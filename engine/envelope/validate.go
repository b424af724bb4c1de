package envelope

import (
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
	if p := jsonx.Check(src, x.opt.MaxDepth); !p.OK() {
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
	dst = appendBool(append(dst, `{"valid":`...), JSON, len(errors) == 0)
	dst = appendStrings(append(dst, `,"errors":`...), errors)
	dst = appendStrings(append(dst, `,"warnings":`...), warnings)
	dst = jsonx.AppendString(append(dst, `,"envelope_id":`...), e.Text(EnvelopeID))
	return append(dst, '}')
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
	if len(s) != len(prefix)+16 || string(s[:len(prefix)]) != prefix {
		return false
	}
	for _, c := range s[len(prefix):] {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonx.AppendString(dst, s)
	}
	return append(dst, ']')
}
