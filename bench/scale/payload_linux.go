package main

import (
	"errors"
	"fmt"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

const (
	// leastPayload is the smallest payload.
	leastPayload = 100
	// payloadConns is how many connections carry payloads: with all in flight some 64 MiB at the
	// largest.
	payloadConns = 4
	// perKiBFrom is from where on bytes cost more than the rest of a request, so that a price per
	// KiB means something.
	perKiBFrom = 1 << 10
)

// carrier is a method that carries a payload.
type carrier struct {
	name    string
	request func(addr string, n int) ([]byte, error) // for n bytes, after what the server has to hold for it
}

func carriers() []carrier {
	return []carrier{
		{"Publish: in", func(_ string, n int) ([]byte, error) { return publishRequest(n), nil }},
		{"GetSessionState: out", stateRequest},
		{"UpdateEnvelope: in and out", updateRequest},
	}
}

// updateRequest stores an envelope and returns the request that replaces it by one with n bytes of
// text, which is answered with it.
func updateRequest(addr string, n int) ([]byte, error) {
	reply, err := load.Ask(addr, "engine", "CreateEnvelope", load.Field{Key: "raw_input", Value: "x"})
	if err != nil {
		return nil, fmt.Errorf("cannot make an envelope: %w", err)
	}
	identity, _ := reply["identity"].(map[string]any)
	id, ok := identity["envelope_id"].(string)
	if !ok {
		return nil, fmt.Errorf("cannot make an envelope: no envelope_id in %v", reply)
	}
	return load.CountedRequest(0, "engine", "UpdateEnvelope", load.Field{Key: "envelope", Value: textEnvelope(id, n)}), nil
}

// stateRequest begins a session whose envelope has n bytes of text and returns the request for its
// state, which holds the envelope.
func stateRequest(addr string, n int) ([]byte, error) {
	const pipeline = `{"name":"n","agents":[{"name":"s1","agent":"a1"}]}`
	id := load.Field{Key: "process_id", Value: fmt.Sprintf("scale-%d", n)}
	_, err := load.Ask(addr, "orchestration", "InitializeSession", id, load.Field{Key: "pipeline_config", Value: pipeline},
		load.Field{Key: "envelope", Value: textEnvelope("e", n)}, load.Field{Key: "force", Value: true})
	if err != nil {
		return nil, fmt.Errorf("cannot begin a session: %w", err)
	}
	return load.CountedRequest(0, "orchestration", "GetSessionState", id), nil
}

func textEnvelope(id string, n int) []load.Field {
	return []load.Field{{Key: "envelope_id", Value: id}, {Key: "raw_input", Value: strings.Repeat("x", n)}}
}

// payloadSizes are 100 bytes, and from 1 KiB on four times as much again and again, up to most.
func payloadSizes(most int) []int {
	sizes := []int{leastPayload}
	for n := 1 << 10; n <= most; n *= 4 {
		sizes = append(sizes, n)
	}
	return sizes
}

// payload measures methods with payloads of all sizes in turns.
func (b *bench) payload() error {
	s, err := b.start()
	if err != nil {
		return err
	}
	var steps []goal.Step
	sizes := payloadSizes(b.o.payload)
	for _, n := range sizes {
		for _, c := range carriers() {
			requests := make([][]byte, payloadConns)
			for i := range requests {
				if requests[i], err = c.request(s.Addr, n); err != nil {
					return err
				}
			}
			steps = append(steps, goal.One(payloadCell(c.name, n), func() (goal.Sample, error) {
				x, err := startExchange(s.Addr, requests)
				if err != nil {
					return goal.Sample{}, err
				}
				got, err := x.measure(s, b.o.warmup, b.o.window)
				return got, errors.Join(err, x.stop())
			}))
		}
	}
	samples, err := b.rounds(steps)
	if err != nil {
		return err
	}
	b.r.payload(sizes, samples)
	return nil
}

func payloadCell(name string, n int) goal.Cell {
	return goal.Cell{Server: fmt.Sprintf("%d bytes", n), Method: name, Conns: payloadConns, Depth: burst}
}

func (r *report) payload(sizes []int, samples []goal.Sample) {
	each := goal.Chart{Name: "payload", Title: "What a request costs as its payload grows", X: "bytes of payload", Y: "server CPU µs/request"}
	kib := goal.Chart{Name: "payload-kib", Title: "What a KiB of payload costs as the payload grows", X: "bytes of payload", Y: "server CPU µs/KiB"}
	for _, c := range carriers() {
		for _, n := range sizes {
			cost := median(samples, payloadCell(c.name, n), micros)
			each.Add(c.name, float64(n), cost)
			if n >= perKiBFrom {
				kib.Add(c.name, float64(n), cost/(float64(n)/1024))
			}
		}
	}
	r.Charts = append(r.Charts, each, kib)
}
