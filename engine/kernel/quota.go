package kernel

import (
	"hash/maphash"
	"strconv"
)

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

// quotas keeps the quotas of a shard's rows, equal ones once: most processes share a handful of
// them, and a row with its own copy would take another half cache line. A unique quota costs some
// 80 bytes. It is written with the scheduling lock and the shard's mutex both held, so either one
// suffices to read.
type quotas struct {
	kept  []*[quotaChunk]keptQuota
	used  uint32 // places ever used
	index index  // by hash of the quota; text is not used
	free  uint32
	last  uint32 // kept by the latest row: mostly what the next one has
	seed  maphash.Seed
}

// quotaChunk quotas are allocated together: copying all is short, and few are unused.
const quotaChunk = 16

// keptQuota is one quota and how many rows have it. In a free place refs is the next free one.
type keptQuota struct {
	quota Quota
	refs  uint32
}

func (s *quotas) init() {
	s.free, s.last, s.seed = none, none, maphash.MakeSeed()
}

// at returns the quota of a reference that keep gave, valid until it is released.
func (s *quotas) at(ref uint32) *Quota { return &s.place(ref).quota }

func (s *quotas) place(ref uint32) *keptQuota { return &s.kept[ref/quotaChunk][ref%quotaChunk] }

// keep returns the reference of a quota equal to q, which counts one row more.
func (s *quotas) keep(q *Quota) uint32 {
	if s.last != none && *s.at(s.last) == *q {
		s.place(s.last).refs++
		return s.last
	}
	tag := s.tag(q)
	for e, pos := s.index.probe(tag, tag); e != nil; e, pos = s.index.probe(tag, pos) {
		if ref := e.slot - 1; *s.at(ref) == *q {
			s.place(ref).refs++
			s.last = ref
			return ref
		}
	}
	s.last = s.take()
	*s.place(s.last) = keptQuota{*q, 1}
	s.index.insert(tag, s.last, 0)
	return s.last
}

// release counts one row less.
func (s *quotas) release(ref uint32) {
	k := s.place(ref)
	if k.refs--; k.refs > 0 {
		return
	}
	s.index.remove(s.tag(&k.quota), ref)
	k.refs, s.free = s.free, ref
	if s.last == ref {
		s.last = none
	}
}

func (s *quotas) take() (ref uint32) {
	if ref = s.free; ref != none {
		s.free = s.place(ref).refs
		return ref
	}
	ref = s.used
	s.used++
	if int(ref/quotaChunk) == len(s.kept) {
		s.kept = append(s.kept, new([quotaChunk]keptQuota))
	}
	return ref
}

// tag hashes with a seed, because clients choose quotas and could make all of them collide.
func (s *quotas) tag(q *Quota) uint32 { return uint32(maphash.Comparable(s.seed, *q)) }

// nsPerMs converts Mono readings to the millisecond resolution of clocks and rate logs.
const nsPerMs = 1000000

// RecordUsage adds delta to pid's usage, saturating, and copies the new totals to total, which may
// be nil (kernel-ipc §4.8). It takes one shard's mutex and does not allocate. ahead is as in Get.
func (k *Kernel) RecordUsage(_ Instant, pid []byte, ahead *Ahead, delta *Usage, total *Usage) Result {
	sh, r := k.lock(pid, ahead)
	defer sh.mu.Unlock()
	if r == nil {
		return NotFound
	}
	if !delta.zero() {
		var sum Usage
		sum.sum(&r.usage, delta)
		if k.cfg.Journal != nil {
			// The shard's own record is filled in place: a fresh one would cost as much as the rest
			// of the call.
			c := &sh.change
			c.Kind, c.PID = ChangeUsage, pid
			c.Usage.set(&sum)
			r.record(k.cfg.Journal(c))
			c.PID = nil
		}
		applyUsage(&sum, r)
	}
	if total != nil {
		total.set(&r.usage)
	}
	return OK
}

// CheckQuota compares pid's usage with its quota (kernel-ipc §4.7) and emits resource.exhausted
// when it is exceeded. Within bounds it takes one shard's mutex and does not allocate. ahead is as
// in Get.
func (k *Kernel) CheckQuota(now Instant, pid []byte, ahead *Ahead, out *QuotaCheck) Result {
	sh, r := k.lock(pid, ahead)
	if r == nil {
		sh.mu.Unlock()
		return NotFound
	}
	out.evaluate(r, sh.quotas.at(r.quota), now.Mono/nsPerMs)
	out.Recorded = r.recorded
	sh.mu.Unlock()
	if !out.Exceeded || k.cfg.Events == nil {
		return OK
	}
	return k.checkExceeded(now, pid, out)
}

// checkExceeded evaluates once more under the scheduling lock, so that the event stands among the
// other events of the process where the answer puts it.
func (k *Kernel) checkExceeded(now Instant, pid []byte, out *QuotaCheck) Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	at, ok := k.locate(pid)
	if !ok {
		return NotFound
	}
	at.sh.mu.Lock()
	out.evaluate(at.r, at.sh.quotas.at(at.r.quota), now.Mono/nsPerMs)
	out.Recorded = at.r.recorded
	at.sh.mu.Unlock()
	if out.Exceeded && k.hasSubscriber(ResourceExhausted) {
		k.emitExhausted(now, &at, out)
	}
	return OK
}

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
