package conformance

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/fuzz/kit/ipctest"
	"trunkline/handlers/ipc/ipcclient"
)

func encode(t testing.TB, text string) msgp.Raw {
	t.Helper()
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// cycle is a pipeline that goes round two stages for as long as it is let.
const cycle = `{"name":"n","max_iterations":2147483647,"max_llm_calls":2147483647,"max_agent_hops":2147483647,` +
	`"agents":[{"name":"s1","agent":"a1","default_next":"s2"},{"name":"s2","agent":"a2","default_next":"s1"}]}`

// TestOneOfManyReportsCounts: of N equal reports at once exactly one moves the session, the others
// see an agent that is not due (envelope §2.1, D32).
func TestOneOfManyReportsCounts(t *testing.T) {
	conns := crowd(t, 16)
	if _, err := conns[0].ExecutePipeline(t.Context(), ipcclient.ExecutePipeline{Envelope: encode(t, `{"envelope_id":"p"}`), PipelineConfig: encode(t, cycle)}); err != nil {
		t.Fatal(err)
	}
	const rounds = 20
	for round := range rounds {
		agent := []string{"a1", "a2"}[round%2]
		codes := atOnce(t, conns, func(_ int, c *ipcclient.Conn) error {
			_, err := c.ReportAgentResult(t.Context(), ipcclient.ReportAgentResult{ProcessID: "p", AgentName: agent, Success: true})
			return err
		})
		if codes[0] != wire.OK || codes[1] != wire.FailedPrecondition || codes[len(codes)-1] != wire.FailedPrecondition {
			t.Fatalf("round %d: %v", round, codes)
		}
	}
	state, err := conns[0].GetSessionState(t.Context(), "p")
	if err != nil || state.EdgeTraversals["s1->s2"] != rounds/2 || state.EdgeTraversals["s2->s1"] != rounds/2 {
		t.Fatalf("got %+v, %v", state.EdgeTraversals, err)
	}
}

// TestOneOfManySessionsBegins: without force a session is begun once (envelope §4.10).
func TestOneOfManySessionsBegins(t *testing.T) {
	conns := crowd(t, 16)
	for round := range 10 {
		pid := fmt.Sprint("p", round)
		codes := atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
			_, err := c.InitializeSession(t.Context(), ipcclient.InitializeSession{
				ProcessID: pid, PipelineConfig: encode(t, cycle), Envelope: encode(t, fmt.Sprintf(`{"envelope_id":"e%d"}`, i)),
			})
			return err
		})
		if codes[0] != wire.OK || codes[1] != wire.InvalidArgument {
			t.Fatalf("round %d: %v", round, codes)
		}
	}
}

// TestSessionTableHoldsExactlyItsLimit: concurrent beginners never get past max_sessions, and none
// is refused below it.
func TestSessionTableHoldsExactlyItsLimit(t *testing.T) {
	conns := crowd(t, 8, ipctest.With(func(c *ipctest.Config) { c.MaxSessions = 20 }))
	var begun atomic.Int64
	atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
		for k := range 10 {
			_, err := c.ExecutePipeline(t.Context(), ipcclient.ExecutePipeline{Envelope: encode(t, fmt.Sprintf(`{"envelope_id":"%d-%d"}`, i, k)), PipelineConfig: encode(t, cycle)})
			var said *ipcclient.Error
			switch {
			case err == nil:
				begun.Add(1)
			case !errors.As(err, &said) || said.Code != wire.ResourceExhausted || !said.Retryable:
				return err
			}
		}
		return nil
	})
	status, err := conns[0].GetSystemStatus(t.Context(), false)
	if err != nil || begun.Load() != 20 || status.Orchestration.ActiveSessions != 20 {
		t.Fatalf("%d were begun, %+v are held, %v", begun.Load(), status.Orchestration, err)
	}
}

// TestReportsAddUp: reports of many workers on sessions of their own lose nothing while others look
// on.
func TestReportsAddUp(t *testing.T) {
	conns := crowd(t, 8)
	const steps = 50
	atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
		pid := fmt.Sprint("p", i)
		step, err := c.ExecutePipeline(t.Context(), ipcclient.ExecutePipeline{Envelope: encode(t, fmt.Sprintf(`{"envelope_id":%q}`, pid)), PipelineConfig: encode(t, cycle)})
		for range steps {
			if err != nil {
				return err
			}
			_, lookErr := c.GetSessionState(t.Context(), fmt.Sprint("p", (i+1)%len(conns)))
			var said *ipcclient.Error
			if lookErr != nil && !errors.As(lookErr, &said) {
				return lookErr
			}
			step, err = c.ReportAgentResult(t.Context(), ipcclient.ReportAgentResult{
				ProcessID: pid, AgentName: step.AgentName, Success: true, Metrics: ipcclient.AgentMetrics{LLMCalls: 1},
			})
		}
		return err
	})
	for i := range conns {
		state, err := conns[0].GetSessionState(t.Context(), fmt.Sprint("p", i))
		if err != nil {
			t.Fatal(err)
		}
		text, err := transcode.AppendJSON(nil, state.Envelope)
		if err != nil {
			t.Fatal(err)
		}
		env := parseTwin(string(text))
		if env.get("iteration").scalar != "50" || env.get("llm_call_count").scalar != "50" || env.get("agent_hop_count").scalar != "50" {
			t.Fatalf("session %d: %s", i, text)
		}
	}
}

// TestUpdateAndReportAtOnce: an answer that comes while others report and look resolves the session
// exactly once.
func TestUpdateAndReportAtOnce(t *testing.T) {
	conns := crowd(t, 8)
	for range 20 {
		created, err := conns[0].CreateEnvelope(t.Context(), ipcclient.CreateEnvelope{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := transcode.AppendJSON(nil, created)
		if err != nil {
			t.Fatal(err)
		}
		id := parseTwin(string(text)).get("identity").get("envelope_id").text()
		waiting := fmt.Sprintf(`{"envelope_id":%q,"interrupt_pending":true,"interrupt":{"kind":"clarification"}}`, id)
		if _, err := conns[0].ExecutePipeline(t.Context(), ipcclient.ExecutePipeline{Envelope: encode(t, waiting), PipelineConfig: encode(t, cycle)}); err != nil {
			t.Fatal(err)
		}
		var accepted atomic.Int64
		atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
			if i == 0 {
				_, err := c.UpdateEnvelope(t.Context(), encode(t, fmt.Sprintf(`{"envelope_id":%q,"interrupt_pending":false}`, id)))
				return err
			}
			for range 5 {
				step, err := c.ReportAgentResult(t.Context(), ipcclient.ReportAgentResult{ProcessID: id, AgentName: "a1", Success: true})
				var said *ipcclient.Error
				switch {
				case err == nil && step.AgentName == "a2":
					accepted.Add(1)
				case !errors.As(err, &said) || said.Code != wire.FailedPrecondition:
					return fmt.Errorf("got %+v, %v", step, err) // not wrapped: it is no answer to let pass
				}
			}
			return nil
		})
		if n := accepted.Load(); n > 1 {
			t.Fatalf("%d reports of one stage were accepted", n)
		}
	}
}

// TestNothingIsReportedAfterTheEnd: once TerminateProcess has answered, no report moves the session
// any more, from any sender (kernel-ipc §2.5, envelope §5.2).
func TestNothingIsReportedAfterTheEnd(t *testing.T) {
	conns := crowd(t, 8)
	for round := range 10 {
		pid := fmt.Sprint("p", round)
		if _, err := conns[0].CreateProcess(t.Context(), ipcclient.CreateProcess{PID: pid, UserID: pid}); err != nil {
			t.Fatal(err)
		}
		if _, err := conns[0].ExecutePipeline(t.Context(), ipcclient.ExecutePipeline{Envelope: encode(t, fmt.Sprintf(`{"envelope_id":%q}`, pid)), PipelineConfig: encode(t, cycle)}); err != nil {
			t.Fatal(err)
		}
		var over atomic.Bool
		atOnce(t, conns, func(i int, c *ipcclient.Conn) error {
			if i == 0 {
				_, err := c.TerminateProcess(t.Context(), ipcclient.TerminateProcess{PID: pid})
				over.Store(true)
				return err
			}
			for k := range 20 {
				was := over.Load()
				agent := []string{"a1", "a2"}[k%2]
				step, err := c.ReportAgentResult(t.Context(), ipcclient.ReportAgentResult{ProcessID: pid, AgentName: agent, Success: true})
				var said *ipcclient.Error
				if was && (err != nil || step.Kind != ipcclient.Terminate || step.TerminalReason != "USER_CANCELLED") {
					return fmt.Errorf("after the end: %+v, %v", step, err) // not wrapped: it is no answer to let pass
				}
				if err != nil && (!errors.As(err, &said) || said.Code != wire.FailedPrecondition) {
					return err
				}
			}
			return nil
		})
	}
}
