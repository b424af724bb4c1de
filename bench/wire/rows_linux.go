package main

import (
	"fmt"
	"math/rand/v2"

	"trunkline/bench/internal/load"
)

// The hot methods measured, in the order of the table.
var methods = []string{"GetProcess", "RecordUsage", "CheckQuota", "TransitionState"}

// maxTape bounds the requests encoded per connection, so that a table of many rows does not need as much memory here.
const maxTape = 4096

func pid(i int) string { return load.Identifier('p', i) }

// kernelRequest returns one request of a hot method. The 8-byte request id is what a client with a counter sends.
func kernelRequest(method string, row int, state string) []byte {
	body := []load.Field{{Key: "pid", Value: pid(row)}}
	switch method {
	case "RecordUsage":
		body = append(body, load.Field{Key: "llm_calls", Value: 1}, load.Field{Key: "tokens_in", Value: 120}, load.Field{Key: "tokens_out", Value: 300})
	case "TransitionState":
		body = append(body, load.Field{Key: "new_state", Value: state})
	}
	return load.AppendRequest(nil, fmt.Sprintf("r%07d", row%10_000_000), "kernel", method, body...)
}

// deal gives every connection its own rows in an order that no cache foresees.
func deal(rows, conns int) [][]int {
	order := rand.New(rand.NewPCG(1, 2)).Perm(rows)
	hands := make([][]int, conns)
	for i, row := range order {
		if hand := &hands[i%conns]; len(*hand) < maxTape {
			*hand = append(*hand, row)
		}
	}
	return hands
}

// kernelTapes encodes the requests of one method for every connection. TransitionState takes all rows of a connection to
// RUNNING and then all back to READY, which every server allows however often the tape repeats.
func kernelTapes(method string, rows, conns int) []*load.Tape {
	states := []string{""}
	if method == "TransitionState" {
		states = []string{"RUNNING", "READY"}
	}
	var tapes []*load.Tape
	for _, hand := range deal(rows, conns) {
		tape := new(load.Tape)
		for _, state := range states {
			for _, row := range hand {
				tape.Add(0, kernelRequest(method, row, state))
			}
		}
		tapes = append(tapes, tape)
	}
	return tapes
}

// redisTapes encodes GET of the same keys; storeRows wrote their values.
func redisTapes(rows, conns int) []*load.Tape {
	var tapes []*load.Tape
	for _, hand := range deal(rows, conns) {
		tape := new(load.Tape)
		for _, row := range hand {
			tape.Add(0, load.AppendCommand(nil, "GET", pid(row)))
		}
		tapes = append(tapes, tape)
	}
	return tapes
}

// getValue is the value behind every key of the GET peer: 150 bytes, within the 128 to 174 of a process reply's own data.
const getValue = 150

// storeRows presets the GET peer.
func storeRows(addr string, n int) error {
	value := string(load.AppendRequest(nil, fmt.Sprintf("%0*d", getValue, 0), "", ""))[:getValue]
	tape := new(load.Tape)
	for i := range n {
		tape.Add(0, load.AppendCommand(nil, "SET", pid(i), value))
	}
	if err := load.SendOnce(addr, load.RESP, []*load.Tape{tape}, 64); err != nil {
		return fmt.Errorf("cannot store %d keys: %w", n, err)
	}
	return nil
}

// defaultReplies are the reply sizes taken when trunkline is not there to ask: kernel-ipc §9 with 36-byte identifiers.
var defaultReplies = map[string]int{"GetProcess": 324, "RecordUsage": 88, "CheckQuota": 120, "TransitionState": 326}

// probeReplies asks a server how large its reply to each hot method is, in bytes with prefix, and checks that CheckQuota is
// within bounds. It leaves row 0 READY as it was.
func probeReplies(addr string) (map[string]int, error) {
	c, err := load.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	sizes := map[string]int{}
	row := load.Field{Key: "pid", Value: pid(0)}
	for _, method := range methods {
		fields := []load.Field{row}
		if method == "TransitionState" {
			fields = append(fields, load.Field{Key: "new_state", Value: "RUNNING"})
		}
		body, size, err := c.Call("r0000000", "kernel", method, fields...)
		if err != nil {
			return nil, fmt.Errorf("cannot probe %s: %w", method, err)
		}
		if within, ok := body["within_bounds"].(bool); ok && !within {
			return nil, fmt.Errorf("cannot measure CheckQuota: over quota: %v", body["exceeded_reason"])
		}
		sizes[method] = size
	}
	_, _, err = c.Call("r0000000", "kernel", "TransitionState", row, load.Field{Key: "new_state", Value: "READY"})
	return sizes, err
}
