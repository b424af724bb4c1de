package ipc

import (
	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

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
