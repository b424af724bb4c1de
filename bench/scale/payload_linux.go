package scale

import (
	"fmt"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

// payloadConns and payloadDepth carry payloads: with all in flight 64 MiB at the largest.
const payloadConns, payloadDepth = 4, 16

// payloadSizes are in bytes.
func payloadSizes() []int {
	return []int{100, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}
}

// Methods that carry a payload.
const (
	published = "Publish: in"
	stated    = "GetSessionState: out"
	updated   = "UpdateEnvelope: in and out"
)

// carry returns the requests that carry n bytes of text, after what the server has to hold for
// them: a session whose state is the text, and an envelope that is replaced by one with the text.
func carry(addr string, n int) (map[string][]byte, error) {
	text := load.Field{Key: "raw_input", Value: strings.Repeat("x", n)}
	id := load.Field{Key: "process_id", Value: fmt.Sprintf("scale-%d", n)}
	_, err := load.Ask(addr, "orchestration", "InitializeSession", id, load.Field{Key: "pipeline_config", Value: `{"name":"n","agents":[{"name":"s1","agent":"a1"}]}`},
		load.Field{Key: "envelope", Value: []load.Field{{Key: "envelope_id", Value: "e"}, text}}, load.Field{Key: "force", Value: true})
	if err != nil {
		return nil, fmt.Errorf("cannot begin a session: %w", err)
	}
	envelope, err := load.CreateEnvelope(addr)
	if err != nil {
		return nil, err
	}
	update := []load.Field{{Key: "envelope_id", Value: envelope}, text}
	return map[string][]byte{
		published: load.Publish(eventType, n, "scale"), stated: load.CountedRequest(0, "orchestration", "GetSessionState", id),
		updated: load.CountedRequest(0, "engine", "UpdateEnvelope", load.Field{Key: "envelope", Value: update}),
	}, nil
}

// payloads measures methods with payloads of all sizes in turns.
func payloads(r *part.Run) error {
	s, err := way{}.start(r)
	if err != nil {
		return err
	}
	cell := func(method string, n int) goal.Cell {
		return goal.Cell{Server: fmt.Sprintf("%d bytes", n), Method: method, Conns: payloadConns, Depth: payloadDepth}
	}
	var steps []goal.Step
	methods := []string{published, stated, updated}
	for _, n := range payloadSizes() {
		tapes := map[string][]*load.Tape{}
		for range payloadConns {
			requests, err := carry(s.Addr, n)
			if err != nil {
				return err
			}
			for method, request := range requests {
				tapes[method] = append(tapes[method], load.TapeOf(request))
			}
		}
		for _, method := range methods {
			steps = append(steps, r.Step(cell(method, n), s.Server, load.Config{Addr: s.Addr, Tapes: tapes[method], Depth: payloadDepth, CPUs: s.cpus}))
		}
	}
	if err := r.Rounds(steps); err != nil {
		return err
	}
	each := goal.Chart{Name: "payload", Title: "What a request costs as its payload grows", X: "bytes of payload", Y: "server CPU µs/request"}
	kib := goal.Chart{Name: "payload-kib", Title: "What a KiB of payload costs as the payload grows", X: "bytes of payload", Y: "server CPU µs/KiB"}
	for _, method := range methods {
		for i, n := range payloadSizes() {
			cost := r.Report.Median(cell(method, n), micros)
			each.Add(method, float64(n), cost)
			if i > 0 { // in the smallest, the rest of the request costs more than its bytes
				kib.Add(method, float64(n), cost/(float64(n)/1024))
			}
		}
	}
	r.Report.Charts = append(r.Report.Charts, each, kib)
	return nil
}
