package fuzz

// pipelinePrograms are hand-written conversations about sessions and envelopes.
func pipelinePrograms() (list [][]byte) {
	report := func(s *script, pid, agent string, more ...any) *script {
		return s.request(0, "ReportAgentResult", "1", append([]any{"process_id", pid, "agent_name", agent}, more...)...)
	}
	begin := func(s *script, pid string, config, env any) *script {
		return s.request(0, "InitializeSession", "1", "process_id", pid, "pipeline_config", config, "envelope", env)
	}
	look := func(s *script, pid any) *script {
		return s.request(0, "GetNextInstruction", "1", "process_id", pid).request(0, "GetSessionState", "2", "process_id", pid)
	}
	asking, answered := envelopes[6], envelopes[11]

	round := begin(start(), "p1", configs[3], envelopes[0])
	for range 3 {
		report(report(round, "p1", "a1", "output", results[1]), "p1", "a2", "metrics", metrics[1])
	}
	report(look(round, "p1"), "p1", "a1")

	chosen := begin(start(), "p2", configs[2], envelopes[5])
	report(report(report(chosen, "p2", "a1", "output", results[2]), "p2", "a2"), "p2", "s1", "output", results[6])
	report(look(chosen, "p2"), "p2", "s3", "success", false, "error", "done")

	asked := start().request(0, "CreateEnvelope", "1")
	look(report(begin(asked, "p1", configs[1], asking), "p1", "a1"), "p1").request(0, "UpdateEnvelope", "1", "envelope", envelopes[7]).
		request(0, "UpdateEnvelope", "1", "envelope", answered)
	report(look(asked, "p1"), "p1", "a1").request(0, "UpdateEnvelope", "1", "envelope", answered)

	unsaid := start().request(0, "CreateEnvelope", "1")
	look(begin(unsaid, "p1", configs[1], envelopes[24]), "p1").request(0, "UpdateEnvelope", "1", "envelope", envelopes[12])
	look(unsaid, "p1")

	ended := start().request(0, "CreateEnvelope", "1").request(0, "CreateProcess", "1", "pid", lastEnvelope{}).
		request(0, "InitializeSession", "1", "process_id", lastEnvelope{}, "pipeline_config", configs[1], "envelope", asking).
		request(0, "GetProcess", "1", "pid", lastEnvelope{}).request(0, "TerminateProcess", "1", "pid", lastEnvelope{})
	look(ended, lastEnvelope{}).request(0, "UpdateEnvelope", "1", "envelope", answered).request(0, "GetSystemStatus", "1")

	crowded := begin(start(setSessions, 2, setEnvelopes, 2), "p1", configs[1], envelopes[0])
	begin(crowded, "p2", configs[1], envelopes[16])
	crowded.request(0, "CreateProcess", "1", "pid", "p1").request(0, "TransitionState", "1", "pid", "p1", "new_state", "TERMINATED")
	begin(crowded, "p2", configs[1], envelopes[16]).request(0, "GetSystemStatus", "1").request(0, "CloneEnvelope", "1", "envelope", envelopes[16]).
		request(0, "CreateEnvelope", "1").request(0, "CreateEnvelope", "1").wait(3600000).request(0, "CreateEnvelope", "1").sweep()

	kept := begin(start(setSessionRetention, 1, setRetention, 2, setEnvelopeRetention, 1), "p1", configs[1], envelopes[0])
	begin(kept, "p3", configs[1], envelopes[10]).request(0, "CreateProcess", "1", "pid", "p2").request(0, "CreateEnvelope", "1")
	begin(kept, "p2", configs[1], envelopes[1]).request(0, "TerminateProcess", "1", "pid", "p2").wait(1000).wait(1).sweep()
	look(kept, "p2").wait(3000).sweep().request(0, "GetSessionState", "1", "process_id", "p1").wait(999).sweep().
		request(0, "GetSessionState", "1", "process_id", "p1").wait(50000).sweep().request(0, "UpdateEnvelope", "1", "envelope", answered).
		request(0, "GetSystemStatus", "1")

	for _, s := range []*script{round, chosen, asked, unsaid, ended, crowded, kept} {
		list = append(list, s.b)
	}
	return list
}
