package load

import (
	"fmt"
	"math"
)

// Identifier returns the 36-byte identifier of a kind for row i, in the shape of a UUID.
func Identifier(kind byte, i int) string {
	return fmt.Sprintf("%02x000000-0000-4000-8000-%012x", kind, i)
}

// quotaFields are the limits that are lifted so that no request of a run is over quota: that is not the hot path.
var quotaFields = []string{"max_llm_calls", "max_tool_calls", "max_agent_hops", "max_iterations", "timeout_seconds", "max_input_tokens",
	"max_output_tokens", "max_inference_requests", "max_inference_input_chars"}

// CreateRows fills a server's table: the processes numbered from up to below to, with 36-byte identifiers, each of a user of its
// own so that no rate limit bites, under a quota that nothing exceeds.
func CreateRows(addr string, from, to int) error {
	c, err := Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	var quota []Field
	for _, name := range quotaFields {
		quota = append(quota, Field{Key: name, Value: math.MaxInt32})
	}
	if _, _, err := c.Call("quota", "kernel", "SetQuotaDefaults", Field{Key: "quota", Value: quota}); err != nil {
		return fmt.Errorf("cannot lift the quotas: %w", err)
	}
	const piece = 100_000 // rows encoded at a time
	for at := from; at < to; at += piece {
		tape := new(Tape)
		for i := at; i < min(at+piece, to); i++ {
			tape.Add(0, AppendRequest(nil, "create", "kernel", "CreateProcess", Field{Key: "pid", Value: Identifier('p', i)},
				Field{Key: "request_id", Value: Identifier('q', i)}, Field{Key: "user_id", Value: Identifier('u', i)},
				Field{Key: "session_id", Value: Identifier('s', i)}))
		}
		if err := SendOnce(addr, Kernel, []*Tape{tape}, 64); err != nil {
			return fmt.Errorf("cannot create processes %d to %d: %w", from, to, err)
		}
	}
	return nil
}
