package crash

import (
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/handlers/ipc/client"
)

// send makes the call on a process; next and hand are made by who takes processes off the ready
// queue.
func (in call) send(ctx context.Context, c *client.Conn, pid string) (out reply, err error) {
	switch in.method {
	case begin, report, instruct, show:
		return in.sendOnSession(ctx, c, pid)
	case usage:
		total, err := c.RecordUsage(ctx, client.RecordUsage{PID: pid, LLMCalls: 1, TokensIn: in.n})
		return reply{llm: total.LLMCalls, tokens: total.TokensIn}, err
	case quota:
		check, err := c.CheckQuota(ctx, pid)
		return reply{llm: check.LLMCalls, tokens: check.TokensIn}, err
	}
	var p client.Process
	switch in.method {
	case create:
		p, err = c.CreateProcess(ctx, client.CreateProcess{PID: pid, UserID: "u-" + pid, Priority: historyPriority, Schedule: new(in.flag)})
	case get:
		p, err = c.GetProcess(ctx, pid)
	case schedule:
		p, err = c.ScheduleProcess(ctx, pid)
	case move:
		p, err = c.TransitionState(ctx, client.TransitionState{PID: pid, NewState: in.to, Reason: "moved"})
	case terminate:
		p, err = c.TerminateProcess(ctx, client.TerminateProcess{PID: pid, Reason: "over"})
	default:
		panic("BUG: cannot send " + in.String())
	}
	return processReply(&p), err
}

func processReply(p *client.Process) reply {
	return reply{state: p.State, llm: p.Usage.LLMCalls, tokens: p.Usage.TokensIn}
}

func (in call) sendOnSession(ctx context.Context, c *client.Conn, pid string) (out reply, err error) {
	switch in.method {
	case begin:
		text := fmt.Sprintf(`{"envelope_id":%q,"request_context":{"generation":%d}}`, fmt.Sprintf("%s/%d", pid, in.n), in.n)
		request := client.InitializeSession{ProcessID: pid, PipelineConfig: encoded(pipeline), Envelope: encoded(text), Force: in.flag}
		body, err := request.MarshalMsg(nil)
		if err != nil {
			return out, err
		}
		return sessionReply(c.Call(ctx, "orchestration", "InitializeSession", body))
	case show:
		return sessionReply(c.Call(ctx, "orchestration", "GetSessionState", keyed("process_id", pid)))
	case instruct:
		return instructionReply(c.GetNextInstruction(ctx, pid))
	}
	return instructionReply(c.ReportAgentResult(ctx, agentResult(pid, agents[in.agent], in.n, in.n, in.result, "")))
}

func sessionReply(raw []byte, err error) (out reply, _ error) {
	if err == nil {
		out.session, err = lifeIn(raw)
	}
	return out, err
}

func instructionReply(in client.Instruction, err error) (out reply, _ error) {
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

// agentResult is a report with the number n.
func agentResult(pid, agent string, n, tokens int64, r result, pad string) client.ReportAgentResult {
	in := client.ReportAgentResult{ProcessID: pid, AgentName: agent, Success: r != fails, Metrics: client.AgentMetrics{LLMCalls: 1, TokensIn: &tokens}}
	if r == fails {
		in.Error = "it broke"
		return in
	}
	in.Output = msgp.AppendInt64(msgp.AppendString(msgp.AppendMapHeader(nil, 3), "n"), n)
	in.Output = msgp.AppendBool(msgp.AppendString(in.Output, "stop"), r == completes)
	in.Output = msgp.AppendString(msgp.AppendString(in.Output, "pad"), pad)
	return in
}
