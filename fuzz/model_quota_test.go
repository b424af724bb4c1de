package fuzz

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// quotaTable is the quota of kernel-ipc §4.0 in validation order.
var quotaTable = []struct {
	name    string
	builtin int64
}{
	{"max_llm_calls", 100}, {"max_tool_calls", 50}, {"max_agent_hops", 10}, {"max_iterations", 20}, {"timeout_seconds", 300},
	{"max_input_tokens", 100000}, {"max_output_tokens", 50000}, {"max_context_tokens", 150000}, {"soft_timeout_seconds", 240},
	{"rate_limit_rpm", 60}, {"rate_limit_rph", 1000}, {"rate_limit_burst", 10}, {"max_inference_requests", 50},
	{"max_inference_input_chars", 500000},
}

// checkTable are the counters and their limits in the order of kernel-ipc §4.7.
var checkTable = [][2]string{
	{"llm_calls", "max_llm_calls"}, {"tool_calls", "max_tool_calls"}, {"agent_hops", "max_agent_hops"},
	{"iterations", "max_iterations"}, {"tokens_in", "max_input_tokens"}, {"tokens_out", "max_output_tokens"},
	{"elapsed_seconds", "timeout_seconds"}, {"inference_requests", "max_inference_requests"},
	{"inference_input_chars", "max_inference_input_chars"},
}

// quota reads the optional field quota and hands over what is present.
func (k *call) quota(set func(name string, n int64)) {
	v := k.field("quota")
	fields, ok := v.(object)
	if !ok && v != nil {
		k.invalid("quota must be an object")
	}
	nested := args{body: fields, bad: k.bad}
	for _, q := range quotaTable {
		n := nested.i32(q.name)
		if v, _ := fields.get(q.name); v != nil && nested.bad == nil {
			set(q.name, n)
		}
	}
	k.bad = nested.bad
}

func (m *model) quotaBody() object {
	o := object{}
	for _, q := range quotaTable {
		o = append(o, member{q.name, m.quota[q.name]})
	}
	return o
}

// setQuotaDefaults is kernel-ipc §4.12.
func setQuotaDefaults(k *call) object {
	given := map[string]int64{}
	k.quota(func(name string, n int64) { given[name] = n })
	if k.bad != nil {
		return nil
	}
	for name, n := range given {
		if n > 0 {
			k.model.quota[name] = n
		}
	}
	return k.model.quotaBody()
}

// recordUsage is kernel-ipc §4.8.
func recordUsage(k *call) object {
	pid := k.requiredID("pid")
	wide := []string{"tokens_in", "tokens_out", "inference_input_chars"}
	delta := map[string]int64{}
	for _, name := range []string{"llm_calls", "tool_calls", "tokens_in", "tokens_out", "agent_hops", "iterations",
		"inference_requests", "inference_input_chars"} {
		if slices.Contains(wide, name) {
			delta[name] = k.i64(name)
		} else {
			delta[name] = k.i32(name)
		}
	}
	p := k.known(pid)
	if p == nil {
		return nil
	}
	for name, n := range delta {
		if p.usage[name] > math.MaxInt64-n {
			p.usage[name] = math.MaxInt64
		} else {
			p.usage[name] += n
		}
	}
	return p.usageBody()
}

// checkQuota is kernel-ipc §4.7.
func checkQuota(k *call) object {
	p := k.known(k.requiredID("pid"))
	if p == nil {
		return nil
	}
	usage := p.usageBody()
	for _, row := range checkTable {
		counter, limit := row[0], p.quota[row[1]]
		used, exceeded := strconv.FormatInt(p.usage[counter], 10), p.usage[counter] > limit
		if counter == "elapsed_seconds" {
			ms := p.ran
			if p.state == "RUNNING" {
				ms += k.model.ms - p.started
			}
			used, exceeded = strconv.FormatFloat(float64(ms)/1000, 'f', -1, 64), ms > limit*1000
		}
		if exceeded {
			reason := fmt.Sprintf("Process %s quota exceeded: %s %s > %d", p.pid, counter, used, limit)
			k.model.emit("resource.exhausted", object{{"pid", p.pid}, {"session_id", p.session}, {"reason", reason},
				{"usage", usage}, {"resource", counter}, {"quota", object{{row[1], limit}}}})
			return append(object{{"within_bounds", false}, {"exceeded_reason", reason}}, usage...)
		}
	}
	return append(object{{"within_bounds", true}, {"exceeded_reason", ""}}, usage...)
}

// decision is the answer of the rate limiter (kernel-ipc §4.9).
type decision struct {
	allowed        bool
	reason, window string
	count, limit   int64
	retryAfter     float64
	remaining      int64
}

// rate decides on a request of user now and, if so and if record, records it.
func (m *model) rate(user string, record bool) decision {
	within := func(ms int64) (stamps []int64) {
		for _, s := range m.stamps[user] {
			if m.ms-s <= ms {
				stamps = append(stamps, s)
			}
		}
		return stamps
	}
	d := decision{limit: m.quota["rate_limit_rpm"], count: int64(len(within(60000)))}
	for _, w := range []struct {
		ms            int64
		limit         int64
		reason, label string
	}{
		{3600000, min(m.quota["rate_limit_rph"], 100000), "Rate limit exceeded: %d requests per hour", "hour"},
		{60000, m.quota["rate_limit_rpm"], "Rate limit exceeded: %d requests per minute", "minute"},
		{10000, m.quota["rate_limit_burst"], "Burst limit exceeded: %d requests per 10 seconds", "burst"},
	} {
		stamps := within(w.ms)
		if int64(len(stamps)) < w.limit {
			continue
		}
		frees := stamps[int64(len(stamps))-w.limit] + w.ms
		d.reason, d.window = fmt.Sprintf(w.reason, w.limit), w.label
		d.retryAfter = max(math.Ceil(float64(frees-m.ms)/1000), 1)
		return d
	}
	d.allowed = true
	if record {
		m.stamps[user] = append(m.stamps[user], m.ms)
		d.count++
	}
	d.remaining = max(0, d.limit-d.count)
	return d
}

// checkRateLimit is kernel-ipc §4.9.
func checkRateLimit(k *call) object {
	if k.field("user_id") == "" {
		k.invalid("user_id is required")
	}
	user, record := k.requiredID("user_id"), k.flag("record", true)
	if k.bad != nil {
		return nil
	}
	d := k.model.rate(user, record)
	return object{{"allowed", d.allowed}, {"exceeded", !d.allowed}, {"reason", d.reason}, {"limit_type", d.window},
		{"current_count", d.count}, {"limit", d.limit}, {"retry_after_seconds", d.retryAfter}, {"remaining", d.remaining}}
}
