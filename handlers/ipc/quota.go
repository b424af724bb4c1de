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
	if t.svc.kernel.CheckQuota(t.now, pid, t.ahead, c) != kernel.OK {
		return t.notFound(pid)
	}
	t.seen = c.Recorded
	reason := t.msg[:0]
	if c.Exceeded {
		reason = c.AppendReason(reason, pid)
		t.msg = reason
	}
	t.out = mpack.AppendQuotaCheck(t.out, !c.Exceeded, reason, shown(&c.Usage))
	return wire.OK
}

// recordUsage is kernel-ipc §4.8.
func recordUsage(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "pid")
	t.delta = kernel.Usage{}
	for i := 0; ok && i < len(usageCounters); i++ {
		if v, c := &t.fields[1+i], &usageCounters[i]; v.Kind != mpack.Absent {
			t.delta[c.field], ok = t.counter(v, c.field.String(), c.limit, c.class)
		}
	}
	if !ok {
		return wire.InvalidArgument
	}
	if t.svc.kernel.RecordUsage(t.now, pid, t.ahead, &t.delta, &t.total) != kernel.OK {
		return t.notFound(pid)
	}
	t.out = mpack.AppendUsage(t.out, shown(&t.total))
	return wire.OK
}

// usageCounters are the counters of RecordUsage in validation order.
var usageCounters = [...]struct {
	field kernel.UsageField
	limit int64
	class string
}{
	{kernel.LLMCalls, math.MaxInt32, "i32"},
	{kernel.ToolCalls, math.MaxInt32, "i32"},
	{kernel.TokensIn, math.MaxInt64, "i64"},
	{kernel.TokensOut, math.MaxInt64, "i64"},
	{kernel.AgentHops, math.MaxInt32, "i32"},
	{kernel.Iterations, math.MaxInt32, "i32"},
	{kernel.InferenceRequests, math.MaxInt32, "i32"},
	{kernel.InferenceInputChars, math.MaxInt64, "i64"},
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

// checkRateLimit is kernel-ipc §4.9. A refusal by the limiter is a normal response.
func checkRateLimit(t *turn) wire.Code {
	user := &t.fields[0]
	if user.Kind == mpack.Str && len(user.Data) == 0 {
		return t.refuse(wire.InvalidArgument, "user_id is required")
	}
	id, ok := t.identifier(user, "user_id")
	if !ok {
		return wire.InvalidArgument
	}
	record, ok := t.flag(&t.fields[1], "record", true)
	if !ok {
		return wire.InvalidArgument
	}
	d := t.svc.kernel.CheckRate(t.now, id, record)
	t.transient = !d.Allowed
	t.msg = d.AppendReason(t.msg)
	t.out = mpack.AppendRateDecision(t.out, &mpack.RateDecision{
		Allowed: d.Allowed, Reason: t.msg, LimitType: d.Window.String(),
		CurrentCount: d.CurrentCount, Limit: d.Limit, Remaining: d.Remaining, RetryAfter: float64(d.RetryAfter),
	})
	return wire.OK
}
