package kernel

import "strconv"

// QuotaCheck is the answer of CheckQuota. The caller owns and reuses it.
type QuotaCheck struct {
	// Exceeded says that used > limit for Field, the first violated row of kernel-ipc §4.7.
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

// counterNames gives the counter held against each enforced quota field.
var counterNames = [NumQuotaFields]string{
	MaxLLMCalls: "llm_calls", MaxToolCalls: "tool_calls", MaxAgentHops: "agent_hops", MaxIterations: "iterations",
	MaxInputTokens: "tokens_in", MaxOutputTokens: "tokens_out", TimeoutSeconds: "elapsed_seconds",
	MaxInferenceRequests: "inference_requests", MaxInferenceInputChars: "inference_input_chars",
}

// resource returns the name of the exceeded counter, "" when within bounds (kernel-ipc §4.7, §4.22).
func (c *QuotaCheck) resource() string {
	if !c.Exceeded || c.Field < 0 || c.Field >= NumQuotaFields {
		return ""
	}
	return counterNames[c.Field]
}

// AppendReason appends the exceeded_reason of kernel-ipc §4.7 for process pid, nothing when within bounds.
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

// evaluate fills c from row r, whose quota is q, at nowMs, in the order of kernel-ipc §4.7. Caller holds the shard's mutex.
func (c *QuotaCheck) evaluate(r *row, q *Quota, nowMs int64) {
	u := &r.usage
	c.Usage.set(u)
	switch elapsed := r.elapsed(nowMs); {
	case u.LLMCalls > int64(q[MaxLLMCalls]):
		c.exceed(MaxLLMCalls, u.LLMCalls, q)
	case u.ToolCalls > int64(q[MaxToolCalls]):
		c.exceed(MaxToolCalls, u.ToolCalls, q)
	case u.AgentHops > int64(q[MaxAgentHops]):
		c.exceed(MaxAgentHops, u.AgentHops, q)
	case u.Iterations > int64(q[MaxIterations]):
		c.exceed(MaxIterations, u.Iterations, q)
	case u.TokensIn > int64(q[MaxInputTokens]):
		c.exceed(MaxInputTokens, u.TokensIn, q)
	case u.TokensOut > int64(q[MaxOutputTokens]):
		c.exceed(MaxOutputTokens, u.TokensOut, q)
	case elapsed > int64(q[TimeoutSeconds])*1000:
		c.exceed(TimeoutSeconds, elapsed, q)
	case u.InferenceRequests > int64(q[MaxInferenceRequests]):
		c.exceed(MaxInferenceRequests, u.InferenceRequests, q)
	case u.InferenceInputChars > int64(q[MaxInferenceInputChars]):
		c.exceed(MaxInferenceInputChars, u.InferenceInputChars, q)
	default:
		c.Exceeded, c.Field, c.Used, c.Limit = false, 0, 0, 0
	}
}

func (c *QuotaCheck) exceed(f QuotaField, used int64, q *Quota) {
	c.Exceeded, c.Field, c.Used, c.Limit = true, f, used, q[f]
}
