package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/kernel"
)

// checkQuota is kernel-ipc §4.7.
func checkQuota(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "pid")
	if !ok {
		return wire.InvalidArgument
	}
	c := &t.check
	if t.svc.kernel.CheckQuota(t.now, pid, c) != kernel.OK {
		return t.notFound(pid)
	}
	reason := t.msg[:0]
	if c.Exceeded {
		reason = c.AppendReason(reason, pid)
		t.msg = reason
	}
	viewUsage(&t.usage, &c.Usage)
	t.out = mpack.AppendQuotaCheck(t.out, !c.Exceeded, reason, &t.usage)
	return wire.OK
}

// recordUsage is kernel-ipc §4.8.
func recordUsage(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "pid")
	if !ok || !t.usageDelta() {
		return wire.InvalidArgument
	}
	if t.svc.kernel.RecordUsage(t.now, pid, &t.delta, &t.total) != kernel.OK {
		return t.notFound(pid)
	}
	viewUsage(&t.usage, &t.total)
	t.out = mpack.AppendUsage(t.out, &t.usage)
	return wire.OK
}

func (t *turn) usageDelta() (ok bool) {
	d, f := &t.delta, t.fields
	if d.LLMCalls, ok = t.i32(&f[1], "llm_calls"); !ok {
		return false
	}
	if d.ToolCalls, ok = t.i32(&f[2], "tool_calls"); !ok {
		return false
	}
	if d.TokensIn, ok = t.i64(&f[3], "tokens_in"); !ok {
		return false
	}
	if d.TokensOut, ok = t.i64(&f[4], "tokens_out"); !ok {
		return false
	}
	if d.AgentHops, ok = t.i32(&f[5], "agent_hops"); !ok {
		return false
	}
	if d.Iterations, ok = t.i32(&f[6], "iterations"); !ok {
		return false
	}
	if d.InferenceRequests, ok = t.i32(&f[7], "inference_requests"); !ok {
		return false
	}
	d.InferenceInputChars, ok = t.i64(&f[8], "inference_input_chars")
	return ok
}

// quota reads the optional map v into p: which fields are there, and their values.
func (t *turn) quota(v *mpack.Value, p *kernel.QuotaPatch) bool {
	p.Set = 0
	switch v.Kind {
	case mpack.Absent, mpack.Nil:
		return true
	case mpack.Map:
	default:
		return t.bad("quota", " must be an object")
	}
	t.scan.ParseFields(v.Data, 0, quotaFields, t.nested[:])
	for i := range t.nested {
		field := &t.nested[i]
		if field.Kind == mpack.Absent || field.Kind == mpack.Nil {
			continue
		}
		n, ok := t.i32(field, quotaNames[i])
		if !ok {
			return false
		}
		p.Set |= 1 << i
		p.Values[i] = int32(n)
	}
	return true
}

// setQuotaDefaults is kernel-ipc §4.12.
func setQuotaDefaults(t *turn) wire.Code {
	patch := &t.create.Quota
	if !t.quota(&t.fields[0], patch) {
		return wire.InvalidArgument
	}
	q := t.svc.kernel.SetDefaults(t.now, patch)
	t.out = mpack.AppendQuota(t.out, quotaNames, q[:])
	return wire.OK
}

// getQuotaDefaults is kernel-ipc §4.13.
func getQuotaDefaults(t *turn) wire.Code {
	q := t.svc.kernel.Defaults()
	t.out = mpack.AppendQuota(t.out, quotaNames, q[:])
	return wire.OK
}
