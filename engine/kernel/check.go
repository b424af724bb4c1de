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
}

// checks lists which counter CheckQuota compares with which limit, in the order of kernel-ipc §4.7.
var checks = [...]struct {
	field QuotaField
	used  UsageField
}{
	{MaxLLMCalls, LLMCalls}, {MaxToolCalls, ToolCalls}, {MaxAgentHops, AgentHops}, {MaxIterations, Iterations},
	{MaxInputTokens, TokensIn}, {MaxOutputTokens, TokensOut}, {TimeoutSeconds, elapsed},
	{MaxInferenceRequests, InferenceRequests}, {MaxInferenceInputChars, InferenceInputChars},
}

// resource returns the name of the exceeded counter, or "" (kernel-ipc §4.7, §4.22).
func (c *QuotaCheck) resource() string {
	for i := range checks {
		if c.Exceeded && checks[i].field == c.Field {
			return checks[i].used.String()
		}
	}
	return ""
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
	dst = append(dst, c.resource()...)
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

// evaluate fills c from row r, whose quota is q, at nowMs (kernel-ipc §4.7). Caller holds the
// shard.
func (c *QuotaCheck) evaluate(r *row, q *Quota, nowMs int64) {
	c.Usage.set(&r.usage)
	for i := range checks {
		field, used := checks[i].field, int64(0)
		limit := int64(q[field])
		if f := checks[i].used; f < elapsed {
			used = r.usage[f]
		} else {
			used, limit = r.elapsed(nowMs), limit*1000
		}
		if used > limit {
			c.Exceeded, c.Field, c.Used, c.Limit = true, field, used, q[field]
			return
		}
	}
	c.Exceeded, c.Field, c.Used, c.Limit = false, 0, 0, 0
}
