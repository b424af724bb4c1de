package ipc

import (
	"math"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/orchestration"
)

// initializeSession is envelope §4.10.
func initializeSession(t *turn) (code wire.Code) {
	a, f := &t.init, t.fields
	*a = orchestration.InitArgs{Config: f[1], Envelope: f[2]}
	var ok bool
	if a.ProcessID, ok = t.identifier(&f[0], "process_id"); !ok {
		return wire.InvalidArgument
	}
	if !t.document(&f[1], "pipeline_config") || !t.document(&f[2], "envelope") {
		return wire.InvalidArgument
	}
	if a.Force, ok = t.flag(&f[3], "force", false); !ok {
		return wire.InvalidArgument
	}
	return t.orchestrated(t.svc.orch.Initialize(t.scratch(), a, t.out))
}

// document is a required map, or JSON text of one. Its content is validated after the types of all
// fields (envelope §4.10).
func (t *turn) document(v *mpack.Value, field string) bool {
	switch v.Kind {
	case mpack.Map, mpack.Str:
		return true
	case mpack.Absent, mpack.Nil:
		t.refuseAbout(wire.InvalidArgument, "Missing required field: ", nil, field)
		return false
	}
	return t.bad(field, " must be an object")
}

// getNextInstruction is envelope §4.11.
func getNextInstruction(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "process_id")
	if !ok {
		return wire.InvalidArgument
	}
	return t.orchestrated(t.svc.orch.Next(t.scratch(), pid, t.out))
}

// getSessionState is envelope §4.13.
func getSessionState(t *turn) wire.Code {
	pid, ok := t.identifier(&t.fields[0], "process_id")
	if !ok {
		return wire.InvalidArgument
	}
	return t.orchestrated(t.svc.orch.State(t.scratch(), pid, t.out))
}

// reportAgentResult is envelope §4.12.
func reportAgentResult(t *turn) wire.Code {
	if !t.reportArgs() {
		return wire.InvalidArgument
	}
	return t.orchestrated(t.svc.orch.Report(t.scratch(), &t.report, t.out))
}

// reportArgs fills t.report from the body.
func (t *turn) reportArgs() (ok bool) {
	r, f := &t.report, t.fields
	*r = orchestration.Report{}
	if r.ProcessID, ok = t.identifier(&f[0], "process_id"); !ok {
		return false
	}
	if r.AgentName, ok = t.identifier(&f[1], "agent_name"); !ok {
		return false
	}
	success, ok := t.flag(&f[2], "success", true)
	if !ok {
		return false
	}
	r.Failed = !success
	if r.Error, ok = t.text(&f[3], "error"); !ok {
		return false
	}
	if r.Output, ok = t.object(&f[4], "output"); !ok {
		return false
	}
	metrics, ok := t.object(&f[5], "metrics")
	return ok && (metrics == nil || t.metrics(metrics))
}

// metricFields are the keys of metrics that count, in validation order.
var metricFields = mpack.Fields("llm_calls", "tool_calls", "tokens_in", "tokens_out", "duration_ms")

// metrics fills t.report from the map metrics. Absent or nil tokens are unknown (envelope D33).
func (t *turn) metrics(encoded []byte) (ok bool) {
	r, v := &t.report, t.nested[:len(metricFields)]
	t.scan.ParseFields(encoded, 0, metricFields, v)
	if r.LLMCalls, ok = t.counter(&v[0], "metrics.llm_calls", math.MaxInt32, "i32"); !ok {
		return false
	}
	if r.ToolCalls, ok = t.counter(&v[1], "metrics.tool_calls", math.MaxInt32, "i32"); !ok {
		return false
	}
	if r.TokensIn, ok = t.i64(&v[2], "metrics.tokens_in"); !ok {
		return false
	}
	if r.TokensOut, ok = t.i64(&v[3], "metrics.tokens_out"); !ok {
		return false
	}
	r.HasTokensIn, r.HasTokensOut = v[2].Kind == mpack.Int, v[3].Kind == mpack.Int
	_, ok = t.i64(&v[4], "metrics.duration_ms")
	return ok
}
