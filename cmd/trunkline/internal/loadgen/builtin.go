package loadgen

import (
	"encoding/json"
	"slices"
)

// kernelBodies are the built-in bodies of ProtocolKernel. Methods that are missing need what only
// the user knows, or would take work away from the workers of the server.
var kernelBodies = map[string]string{
	"kernel.CreateProcess":    `{"pid":"` + createdPrefix + `{{run}}-{{seq}}","user_id":"bench-{{run}}-{{seq}}","schedule":false}`,
	"kernel.GetProcess":       `{"pid":"{{pid}}"}`,
	"kernel.CheckQuota":       `{"pid":"{{pid}}"}`,
	"kernel.RecordUsage":      `{"pid":"{{pid}}","tokens_in":1,"tokens_out":1}`,
	"kernel.CheckRateLimit":   `{"user_id":"bench-{{run}}-{{conn}}","record":false}`,
	"kernel.ListProcesses":    `{"limit":10}`,
	"kernel.GetProcessCounts": `{}`,
	"kernel.GetQuotaDefaults": `{}`,
	"kernel.GetSystemStatus":  `{}`,
	"engine.CheckBounds":      `{"envelope_id":"bench-{{uuid}}","raw_input":"hello","outputs":{},"current_stage":"start"}`,
	"commbus.Publish":         `{"event_type":"bench.event","payload":"{\"seq\":\"{{seq}}\"}","source":"trunkline bench"}`,
}

// createdPrefix begins the pids of kernel.CreateProcess's built-in body; a run terminates what it
// created with it.
const createdPrefix = "bench-new-"

// toolhostBodies are the built-in lines of ProtocolToolhost; any other tool is called without an
// input.
var toolhostBodies = map[string]string{
	"AID.HASH.DIGEST.v1": `{"aid":"AID.HASH.DIGEST.v1","inputs":{"text":"{{uuid}}"}}`,
	"AID.EMBED.TEXT.v1":  `{"aid":"AID.EMBED.TEXT.v1","inputs":{"text":"{{uuid}}","dim":64}}`,
	"AID.ASK_SUP.v1":     `{"aid":"AID.ASK_SUP.v1","inputs":{"q":"{{seq}}"}}`,
}

const smallEnvelope = `{"envelope_id":"bench-{{uuid}}","raw_input":"hello","outputs":{},"current_stage":"start","terminated":false}`

// builtinBody returns the body of a method for which the user gave none.
func builtinBody(protocol, name string) (body string, ok bool) {
	switch protocol {
	case ProtocolKernel:
		body, ok = kernelBodies[name]
		return body, ok
	case ProtocolToolhost:
		if body, ok = toolhostBodies[name]; ok {
			return body, true
		}
		quoted, err := json.Marshal(name)
		return `{"aid":` + string(quoted) + `}`, err == nil
	}
	return smallEnvelope, true
}

// DefaultMix is what is asked when the user names no method: for ProtocolKernel what a worker's
// calls are mostly made of, on processes of its own.
func DefaultMix(protocol string) []Share {
	switch protocol {
	case ProtocolKernel:
		return []Share{{Name: "kernel.GetProcess", Weight: 60}, {Name: "kernel.RecordUsage", Weight: 20}, {Name: "kernel.CheckQuota", Weight: 20}}
	case ProtocolToolhost:
		return []Share{{Name: "AID.NOOP.v1", Weight: 1}}
	}
	return []Share{{Name: "process", Weight: 1}}
}

// opensStream knows the methods that answer with a stream: their replies have no end.
func opensStream(name string) bool {
	return slices.Contains([]string{"commbus.Subscribe", "commbus.RegisterCommandHandler", "commbus.RegisterQueryHandler"}, name)
}
