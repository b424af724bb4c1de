package ipc

import (
	"math"

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
	t.seen = c.Recorded
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
	t.delta = kernel.Usage{}
	d, f := &t.delta, t.fields
	for i, to := range [...]*int64{&d.LLMCalls, &d.ToolCalls, &d.TokensIn, &d.TokensOut, &d.AgentHops, &d.Iterations,
		&d.InferenceRequests, &d.InferenceInputChars} {
		v := &f[1+i]
		if v.Kind == mpack.Absent {
			continue
		}
		c := &usageCounters[i]
		if *to, ok = t.counter(v, c.field, c.limit, c.class); !ok {
			return false
		}
	}
	return true
}

// usageCounters are the counters of RecordUsage in validation order.
var usageCounters = [...]struct {
	field string
	limit int64
	class string
}{
	{"llm_calls", math.MaxInt32, "i32"},
	{"tool_calls", math.MaxInt32, "i32"},
	{"tokens_in", math.MaxInt64, "i64"},
	{"tokens_out", math.MaxInt64, "i64"},
	{"agent_hops", math.MaxInt32, "i32"},
	{"iterations", math.MaxInt32, "i32"},
	{"inference_requests", math.MaxInt32, "i32"},
	{"inference_input_chars", math.MaxInt64, "i64"},
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
