package kernel

import "strconv"

// QuotaCheck is the answer of CheckQuota. The caller owns and reuses it.
type QuotaCheck struct {
	// Exceeded means that used > limit for Field, the first violated row of kernel-ipc §4.7.
	Exceeded bool
	Field    QuotaField
	// Usage is always filled.
	Usage Usage
	// Used is the offending counter; for TimeoutSeconds it is the elapsed time in milliseconds.
	Used  int64
	Limit int32
	// Recorded is the index of the last record about the process, 0 without a journal.
	Recorded uint64

	counter UsageField // that of Used
}

// AppendReason appends the exceeded_reason of kernel-ipc §4.7 for process pid, if any.
func (c *QuotaCheck) AppendReason(dst, pid []byte) []byte {
	if !c.Exceeded {
		return dst
	}
	dst = append(dst, "Process "...)
	return c.appendViolation(append(dst, pid...))
}

// appendViolation appends the part of the reason behind the pid, which is plain ASCII.
func (c *QuotaCheck) appendViolation(dst []byte) []byte {
	dst = append(dst, " quota exceeded: "...)
	dst = append(dst, c.counter.String()...)
	dst = append(dst, ' ')
	if c.Field == TimeoutSeconds {
		dst = appendSeconds(dst, c.Used)
	} else {
		dst = strconv.AppendInt(dst, c.Used, 10)
	}
	dst = append(dst, " > "...)
	return strconv.AppendInt(dst, int64(c.Limit), 10)
}

// appendSeconds appends ms milliseconds as seconds in shortest decimal form.
func appendSeconds(dst []byte, ms int64) []byte {
	dst = strconv.AppendInt(dst, ms/1000, 10)
	frac := ms % 1000
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.', byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// evaluate fills c from row r, whose quota is q, at nowMs, in the order of kernel-ipc §4.7. Caller
// holds the shard.
func (c *QuotaCheck) evaluate(r *row, q *Quota, nowMs int64) {
	c.Usage.set(&r.usage)
	c.Field, c.counter, c.Used, c.Limit = 0, 0, 0, 0
	ms := r.elapsed(nowMs)
	c.Exceeded = c.over(q, MaxLLMCalls, LLMCalls) || c.over(q, MaxToolCalls, ToolCalls) ||
		c.over(q, MaxAgentHops, AgentHops) || c.over(q, MaxIterations, Iterations) ||
		c.over(q, MaxInputTokens, TokensIn) || c.over(q, MaxOutputTokens, TokensOut) ||
		ms > int64(q[TimeoutSeconds])*1000 && c.exceed(q, TimeoutSeconds, elapsed, ms) ||
		c.over(q, MaxInferenceRequests, InferenceRequests) || c.over(q, MaxInferenceInputChars, InferenceInputChars)
}

// over reports whether a counter is over its limit, and has c show that.
func (c *QuotaCheck) over(q *Quota, limit QuotaField, f UsageField) bool {
	return c.Usage[f] > int64(q[limit]) && c.exceed(q, limit, f, c.Usage[f])
}

func (c *QuotaCheck) exceed(q *Quota, limit QuotaField, f UsageField, used int64) bool {
	c.Field, c.counter, c.Used, c.Limit = limit, f, used, q[limit]
	return true
}
