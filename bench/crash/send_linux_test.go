package crash

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/transcode"
	"trunkline/handlers/ipc/ipcclient"
)

// send makes the call on a process; next and hand are made by who takes processes off the ready
// queue.
func (in call) send(ctx context.Context, c *ipcclient.Conn, pid string) (out reply, err error) {
	switch in.method {
	case begin, execute, report, instruct, show:
		return in.sendOnSession(ctx, c, pid)
	case limit:
		_, err := c.SetQuotaDefaults(ctx, ipcclient.QuotaPatch{MaxLLMCalls: &in.n})
		return out, err
	case update:
		_, err := c.UpdateEnvelope(ctx, encoded(fmt.Sprintf(`{"envelope_id":%q,"interrupt_pending":false,"raw_input":"%d"}`, in.envelope, in.n)))
		return out, err
	case usage:
		total, err := c.RecordUsage(ctx, ipcclient.RecordUsage{PID: pid, LLMCalls: cmp.Or(in.llm, 1), TokensIn: in.n})
		return reply{llm: total.LLMCalls, tokens: total.TokensIn}, err
	case quota:
		check, err := c.CheckQuota(ctx, pid)
		return reply{llm: check.LLMCalls, tokens: check.TokensIn}, err
	}
	var p ipcclient.Process
	switch in.method {
	case create:
		p, err = c.CreateProcess(ctx, ipcclient.CreateProcess{PID: pid, UserID: "u-" + pid, Priority: cmp.Or(in.priority, historyPriority), Schedule: new(in.flag)})
	case get:
		p, err = c.GetProcess(ctx, pid)
	case schedule:
		p, err = c.ScheduleProcess(ctx, pid)
	case move:
		p, err = c.TransitionState(ctx, ipcclient.TransitionState{PID: pid, NewState: in.to, Reason: "moved"})
	case terminate:
		p, err = c.TerminateProcess(ctx, ipcclient.TerminateProcess{PID: pid, Reason: "over"})
	default:
		panic("BUG: cannot send " + in.String())
	}
	return processReply(&p), err
}

func processReply(p *ipcclient.Process) reply {
	return reply{state: p.State, llm: p.Usage.LLMCalls, tokens: p.Usage.TokensIn}
}

func (in call) sendOnSession(ctx context.Context, c *ipcclient.Conn, pid string) (out reply, err error) {
	switch in.method {
	case begin:
		id, waits := fmt.Sprintf("%s/%d", pid, in.n), ""
		if in.waits { // it holds the stored envelope
			id, waits = in.envelope, `"interrupt_pending":true,"interrupt":{"kind":"checkpoint","id":"int_1"},`
		}
		text := fmt.Sprintf(`{"envelope_id":%q,%s"request_context":{"generation":%d}}`, id, waits, in.n)
		request := ipcclient.InitializeSession{ProcessID: pid, PipelineConfig: encoded(pipeline), Envelope: encoded(text), Force: in.flag}
		body, err := request.MarshalMsg(nil)
		if err != nil {
			return out, err
		}
		return sessionReply(c.Call(ctx, "orchestration", "InitializeSession", body))
	case execute: // under the identifier of its envelope
		envelope := encoded(fmt.Sprintf(`{"envelope_id":%q,"request_context":{"generation":%d}}`, pid, in.n))
		_, err := c.ExecutePipeline(ctx, ipcclient.ExecutePipeline{Envelope: envelope, PipelineConfig: encoded(pipeline)})
		return out, err
	case show:
		return sessionReply(c.Call(ctx, "orchestration", "GetSessionState", keyed("process_id", pid)))
	case instruct:
		return instructionReply(c.GetNextInstruction(ctx, pid))
	}
	return instructionReply(c.ReportAgentResult(ctx, agentResult(pid, in)))
}

func sessionReply(raw []byte, err error) (out reply, _ error) {
	if err == nil {
		out.session, err = lifeIn(raw)
	}
	return out, err
}

func instructionReply(in ipcclient.Instruction, err error) (out reply, _ error) {
	if err != nil {
		return out, err
	}
	e, err := decoded(in.Envelope)
	if err != nil {
		return out, err
	}
	stage, _ := e["current_stage"].(string)
	out = reply{kind: in.Kind, agent: in.AgentName, session: lifeOf(e)}
	l := &out.session
	l.stage, l.terminated, l.reason = stage, e["terminated"] == true, in.TerminalReason
	if l.terminated {
		l.stage = ""
	}
	return out, nil
}

func agentResult(pid string, in call) ipcclient.ReportAgentResult {
	failed := in.result == fails
	out := ipcclient.ReportAgentResult{ProcessID: pid, AgentName: agents[in.agent], Success: !failed, Metrics: ipcclient.AgentMetrics{LLMCalls: 1, TokensIn: &in.n}}
	if failed {
		out.Error = "it broke"
		return out
	}
	out.Output = msgp.AppendInt64(msgp.AppendString(msgp.AppendMapHeader(nil, 3), "n"), in.n)
	out.Output = msgp.AppendBool(msgp.AppendString(out.Output, "stop"), in.result == completes)
	out.Output = msgp.AppendString(msgp.AppendString(out.Output, "pad"), in.pad)
	return out
}

const pipeline = `{"name":"ring","max_iterations":2000000000,"max_llm_calls":2000000000,"max_agent_hops":2000000000,"agents":[` +
	`{"name":"s1","agent":"a1","default_next":"s2","error_next":"end","routing":[{"condition":"stop","value":true,"target":"end"}]},` +
	`{"name":"s2","agent":"a2","default_next":"s1","error_next":"end","routing":[{"condition":"stop","value":true,"target":"end"}]}]}`

// encoded is JSON that is part of this program as MessagePack.
func encoded(text string) msgp.Raw {
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return b
}
