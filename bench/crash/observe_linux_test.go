package crash

import (
	"context"
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/wire"
	"trunkline/handlers/ipc/ipcclient"
)

// observe reads an actor's world from the server, and the reply that shows its session; nil if
// there is none.
func observe(ctx context.Context, c *ipcclient.Conn, a *actor) (w world, shown []byte, err error) {
	if w, shown, err = observeWorld(ctx, c, a.is.pid); err != nil || a.index > 0 {
		return w, shown, err
	}
	q, err := c.GetQuotaDefaults(ctx)
	w.quota = q.MaxLLMCalls
	return w, shown, err
}

// observeWorld reads a process and its session, and the reply that shows the session.
func observeWorld(ctx context.Context, c *ipcclient.Conn, pid string) (w world, shown []byte, err error) {
	w.pid = pid
	p, err := c.GetProcess(ctx, w.pid)
	switch {
	case err == nil:
		w.state, w.priority, w.llm, w.tokens = p.State, p.Priority, p.Usage.LLMCalls, p.Usage.TokensIn
	case !refused(err, wire.NotFound):
		return w, nil, err
	}
	w.session, shown, err = sessionOf(ctx, c, w.pid)
	return w, shown, err
}

// sessionOf reads a session; a life without generation is none.
func sessionOf(ctx context.Context, c *ipcclient.Conn, pid string) (life, []byte, error) {
	raw, err := c.Call(ctx, "orchestration", "GetSessionState", keyed("process_id", pid))
	if refused(err, wire.NotFound) {
		return life{}, nil, nil
	}
	if err != nil {
		return life{}, nil, err
	}
	l, err := lifeIn(raw)
	if err != nil {
		err = fmt.Errorf("%s: %w", pid, err)
	}
	return l, raw, err
}

// lifeIn reads a life out of a SessionState.
func lifeIn(raw []byte) (l life, err error) {
	var s ipcclient.SessionState
	if _, err := s.UnmarshalMsg(raw); err != nil {
		return l, fmt.Errorf("cannot read a session: %w", err)
	}
	e, err := decoded(s.Envelope)
	if err != nil {
		return l, err
	}
	l = lifeOf(e)
	l.stage, l.terminated, l.reason = s.CurrentStage, s.Terminated, s.TerminalReason
	for _, n := range s.EdgeTraversals {
		l.hops += n
	}
	switch {
	case l.generation == 0:
		return l, fmt.Errorf("cannot read a session: no generation in %v", e)
	case e["terminated"] != s.Terminated, !l.terminated && e["current_stage"] != l.stage, number(e["agent_hop_count"]) < l.hops:
		return l, fmt.Errorf("a session and its envelope do not agree: stage %s, terminated %v, edges %v, %v", s.CurrentStage, s.Terminated, s.EdgeTraversals, e)
	}
	if l.terminated {
		l.stage = ""
	}
	return l, nil
}

// lifeOf reads of an envelope what the session's own members do not hold.
func lifeOf(envelope map[string]any) life {
	l := life{iteration: number(envelope["iteration"]), llm: number(envelope["llm_call_count"]), tokens: number(envelope["tokens_in"]),
		waiting: envelope["interrupt_pending"] == true}
	context, _ := envelope["request_context"].(map[string]any)
	l.generation = int(number(context["generation"]))
	outputs, _ := envelope["outputs"].(map[string]any)
	for i, name := range agents {
		output, _ := outputs[name].(map[string]any)
		l.outputs[i] = number(output["n"])
	}
	return l
}

// decoded is a MessagePack map.
func decoded(raw []byte) (map[string]any, error) {
	v, _, err := msgp.ReadIntfBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("cannot read a reply: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("cannot read a reply: %v is no map", v)
	}
	return m, nil
}

func number(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case uint64:
		return int64(v)
	}
	return 0
}

// keyed is a request body of one text.
func keyed(key, value string) []byte {
	return msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(nil, 1), key), value)
}
