// Code generated from handlers/ipc/methods.txt. DO NOT EDIT.

package ipc

// allocLines are the allocs lines of the method table: request bodies, or the reason why there
// are none.
var allocLines = map[string]string{
	"kernel.CreateProcess":             "It stores a process, and keeps copies of its names.",
	"kernel.GetProcess":                "[{\"pid\":\"p1\"}]",
	"kernel.ScheduleProcess":           "[{\"pid\":\"p1\"}]",
	"kernel.GetNextRunnable":           "[{}]",
	"kernel.TransitionState":           "[{\"pid\":\"p3\",\"new_state\":\"RUNNING\"},{\"pid\":\"p3\",\"new_state\":\"READY\"}]",
	"kernel.TerminateProcess":          "[{\"pid\":\"p4\"}]",
	"kernel.CheckQuota":                "[{\"pid\":\"p2\"}]",
	"kernel.RecordUsage":               "[{\"pid\":\"p1\",\"llm_calls\":1,\"tokens_in\":120,\"tokens_out\":300}]",
	"kernel.CheckRateLimit":            "[{\"user_id\":\"u\"}]",
	"kernel.ListProcesses":             "It collects the rows before it knows how many there are.",
	"kernel.GetProcessCounts":          "[{}]",
	"kernel.SetQuotaDefaults":          "[{\"quota\":{\"max_tool_calls\":75}}]",
	"kernel.GetQuotaDefaults":          "[{}]",
	"kernel.GetSystemStatus":           "[{}]",
	"kernel.Ping":                      "[{\"payload\":{\"a\":[1,\"x\",null,-1.5]}}]",
	"engine.CreateEnvelope":            "It stores an envelope.",
	"engine.CheckBounds":               "[{\"envelope_id\":\"e\"}]",
	"engine.UpdateEnvelope":            "It stores an envelope.",
	"engine.ExecutePipeline":           "It stores a session.",
	"engine.CloneEnvelope":             "It stores an envelope.",
	"orchestration.InitializeSession":  "It stores a session.",
	"orchestration.GetNextInstruction": "[{\"process_id\":\"s1\"}]",
	"orchestration.ReportAgentResult":  "It stores the result of an agent in the envelope.",
	"orchestration.GetSessionState":    "[{\"process_id\":\"s1\"}]",
	"commbus.Publish":                  "[{\"event_type\":\"a.b\",\"payload\":\"{\\\"n\\\":1}\",\"source\":\"t\"}]",
	"commbus.Send":                     "[{\"command_type\":\"ghost\"}]",
	"commbus.Query":                    "It keeps the caller until the answer comes.",
	"commbus.Subscribe":                "It opens a stream.",
	"commbus.Unsubscribe":              "It keeps the request until its streams have ended.",
	"commbus.RegisterCommandHandler":   "It opens a stream.",
	"commbus.RegisterQueryHandler":     "It opens a stream.",
	"commbus.Reply":                    "[{\"query_id\":\"ghost\"}]",
}
