package envelope

import "bytes"

type output struct {
	spelled, name []byte
	raw           []byte // nil: taken away
}

// replacement stands for an escape that is half a surrogate.
var replacement = []byte("\uFFFD")

// readOutputs lists the agents' outputs; of a repeated name the last one counts. A null one is not
// there (envelope §3.2).
func (e *Env) readOutputs(raw []byte) *Problem {
	it := openMap(e.form, raw)
	for it.next() {
		if e.count(false) {
			return &Problem{Field: e.path(Outputs), Text: tooManyMembers}
		}
		name := e.unescape(it.name)
		if len(name) != len(it.spelled) && bytes.Contains(name, replacement) {
			name = it.spelled // half a surrogate has no meaning of its own: two such names differ by their spelling
		}
		o := output{it.spelled, name, it.v.Raw}
		if before := e.outputAt.add(name); before >= 0 {
			e.outputs[before], e.outputsSet = o, true
		} else {
			e.outputs = append(e.outputs, o)
		}
	}
	return e.checkOutputs()
}

// checkOutputs validates the ones that count.
func (e *Env) checkOutputs() *Problem {
	for i := range e.outputs {
		o := &e.outputs[i]
		switch valueOf(e.form, o.raw).Kind {
		case Map:
		case Null:
			o.raw, e.outputsSet = nil, true
		default:
			return &Problem{Field: e.path(Outputs) + "." + string(o.name), Text: wantMap}
		}
	}
	return nil
}

func (e *Env) outputCount() (n int) {
	for i := range e.outputs {
		if e.outputs[i].raw != nil {
			n++
		}
	}
	return n
}

// output returns the encoded map under a key.
func (e *Env) output(name []byte) (raw []byte, ok bool) {
	at := e.outputAt.find(name)
	if at < 0 || e.outputs[at].raw == nil {
		return nil, false
	}
	return e.outputs[at].raw, true
}

// SetOutput sets an agent's output, an encoded map; name and raw are kept and not copied. A new one
// comes behind the others.
func (e *Env) SetOutput(name, raw []byte) {
	e.outputsSet = true
	if at := e.outputAt.add(name); at >= 0 {
		e.outputs[at].raw = raw
		return
	}
	e.outputs = append(e.outputs, output{e.spell(name), name, raw})
}

func (e *Env) removeOutput(name []byte) {
	if at := e.outputAt.find(name); at >= 0 && e.outputs[at].raw != nil {
		e.outputs[at].raw, e.outputsSet = nil, true
	}
}

func (e *Env) appendOutputs(dst []byte) []byte {
	dst = openWritten(dst, e.form, Map, e.outputCount())
	n := 0
	for i := range e.outputs {
		if o := &e.outputs[i]; o.raw != nil {
			dst = append(appendName(dst, e.form, n, &pair{spelled: o.spelled}), o.raw...)
			n++
		}
	}
	return closeWritten(dst, e.form, Map)
}
