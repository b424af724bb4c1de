package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// scratch returns the turn's call of the orchestration engine, ready for the request at hand.
func (t *turn) scratch() *orchestration.Call {
	t.orchUsed = true
	t.orch.Now, t.orch.Retryable = t.now, false
	return &t.orch
}

// orchestrated takes over what a method of the orchestration engine came to.
func (t *turn) orchestrated(out []byte, code wire.Code) wire.Code {
	t.out = out
	if code != wire.OK {
		t.msg = append(t.msg[:0], t.orch.Msg...)
		t.extras.Retryable = t.orch.Retryable
	}
	return code
}

// createEnvelope is envelope §4.5.
func createEnvelope(t *turn) (code wire.Code) {
	if !t.envelopeArgs() {
		return wire.InvalidArgument
	}
	return t.orchestrated(t.svc.orch.CreateEnvelope(t.scratch(), &t.created, t.out))
}

// envelopeArgs fills t.created from the body.
func (t *turn) envelopeArgs() (ok bool) {
	a, f := &t.created, t.fields
	*a = orchestration.CreateArgs{}
	if a.RawInput, ok = t.text(&f[0], "raw_input"); !ok {
		return false
	}
	if a.RequestID, a.UserID, a.SessionID, ok = t.origin(f[1:4]); !ok {
		return false
	}
	if a.StageOrder, ok = t.names(&f[4], "stage_order"); !ok {
		return false
	}
	a.Metadata, ok = t.object(&f[5], "metadata")
	return ok
}

// names is an optional array of non-empty strings; encoded, nil if absent.
func (t *turn) names(v *mpack.Value, field string) (encoded []byte, ok bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return nil, true
	case mpack.Array:
	default:
		return nil, t.bad(field, " must be an array of strings")
	}
	for list := mpack.OpenList(v.Data); ; {
		raw, more := list.Next()
		if !more {
			return v.Data, true
		}
		if name := mpack.ReadValue(raw); name.Kind != mpack.Str || len(name.Data) == 0 {
			return nil, t.bad(field, " must be an array of strings")
		}
	}
}

// object is an optional map; encoded, nil if absent.
func (t *turn) object(v *mpack.Value, field string) (encoded []byte, ok bool) {
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return nil, true
	case mpack.Map:
		return v.Data, true
	}
	return nil, t.bad(field, " must be an object")
}

// checkBounds is envelope §4.6.
func checkBounds(t *turn) wire.Code {
	return t.orchestrated(t.svc.orch.CheckBounds(t.scratch(), t.req.Body, t.out))
}

// updateEnvelope is envelope §4.7.
func updateEnvelope(t *turn) wire.Code {
	resume, ok := t.flag(&t.fields[1], "resume", false)
	switch {
	case !ok:
		return wire.InvalidArgument
	case resume:
		return t.orchestrated(t.svc.orch.Resume(t.scratch(), t.fields[0], t.out))
	}
	return t.orchestrated(t.svc.orch.UpdateEnvelope(t.scratch(), t.fields[0], t.out))
}

// executePipeline is envelope §4.8.
func executePipeline(t *turn) wire.Code {
	return t.orchestrated(t.svc.orch.ExecutePipeline(t.scratch(), t.fields[0], t.fields[1], t.out))
}

// cloneEnvelope is envelope §4.9.
func cloneEnvelope(t *turn) wire.Code {
	return t.orchestrated(t.svc.orch.CloneEnvelope(t.scratch(), t.fields[0], t.out))
}
