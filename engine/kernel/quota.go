package kernel

// QuotaField is a field of a Quota, numbered in validation order (kernel-ipc §4.0).
type QuotaField int

// The quota fields.
const (
	MaxLLMCalls QuotaField = iota
	MaxToolCalls
	MaxAgentHops
	MaxIterations
	TimeoutSeconds
	MaxInputTokens
	MaxOutputTokens
	MaxContextTokens
	SoftTimeoutSeconds
	RateLimitRPM
	RateLimitRPH
	RateLimitBurst
	MaxInferenceRequests
	MaxInferenceInputChars
)

// NumQuotaFields is the number of quota fields.
const NumQuotaFields = 14

var quotaNames = [NumQuotaFields]string{
	"max_llm_calls", "max_tool_calls", "max_agent_hops", "max_iterations", "timeout_seconds", "max_input_tokens",
	"max_output_tokens", "max_context_tokens", "soft_timeout_seconds", "rate_limit_rpm", "rate_limit_rph",
	"rate_limit_burst", "max_inference_requests", "max_inference_input_chars",
}

// String returns the wire key, "unknown" beyond the table. It does not allocate.
func (f QuotaField) String() string {
	if f >= 0 && int(f) < len(quotaNames) {
		return quotaNames[f]
	}
	return "unknown"
}

// Quota holds the 14 limits by QuotaField; 0 is a real limit of zero.
type Quota [NumQuotaFields]int32

// BuiltinQuota returns the built-in defaults of kernel-ipc §4.0.
func BuiltinQuota() Quota {
	return Quota{
		MaxLLMCalls: 100, MaxToolCalls: 50, MaxAgentHops: 10, MaxIterations: 20, TimeoutSeconds: 300,
		MaxInputTokens: 100000, MaxOutputTokens: 50000, MaxContextTokens: 150000, SoftTimeoutSeconds: 240,
		RateLimitRPM: 60, RateLimitRPH: 1000, RateLimitBurst: 10,
		MaxInferenceRequests: 50, MaxInferenceInputChars: 500000,
	}
}

// QuotaPatch is a partial quota: bit i of Set means that field i is present.
type QuotaPatch struct {
	Set    uint16
	Values Quota
}

// over returns base with the present fields of p put over it (kernel-ipc §4.1, D18). Negative
// values do not pass the caller's validation; here they count as 0.
func (p *QuotaPatch) over(base *Quota) Quota {
	q := *base
	if p.Set == 0 {
		return q
	}
	for i := range q {
		if p.Set&(1<<i) != 0 {
			q[i] = max(p.Values[i], 0)
		}
	}
	return q
}

// overPositive returns base with the positive present fields of p over it (kernel-ipc §4.12, D33).
func (p *QuotaPatch) overPositive(base *Quota) Quota {
	q := *base
	for i := range q {
		if p.Set&(1<<i) != 0 && p.Values[i] > 0 {
			q[i] = p.Values[i]
		}
	}
	return q
}

// SetDefaults puts the fields of p that are present and positive over the default quota and returns
// the quota in force (kernel-ipc §4.12). Existing processes keep theirs; the rate limiter follows
// (D30).
func (k *Kernel) SetDefaults(now Instant, p *QuotaPatch) Quota {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	old := k.defaults.Load()
	q := p.overPositive(old)
	if q != *old {
		c := Change{Kind: ChangeQuotaDefaults, Quota: q}
		k.applyQuotaDefaults(&c, k.journalScheduled(&c))
	}
	return q
}

// Defaults returns the default quota in force (kernel-ipc §4.13). It takes no lock and does not
// allocate.
func (k *Kernel) Defaults() Quota { return *k.defaults.Load() }
