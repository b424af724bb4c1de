package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"

	"trunkline/bench/internal/load"
)

// Methods as they stand in the table.
const (
	getProcess      = "GetProcess"
	recordUsage     = "RecordUsage"
	transitionState = "TransitionState"
	createProcess   = "CreateProcess"
	updateEnvelope  = "UpdateEnvelope"
	checkRateLimit  = "CheckRateLimit"
	appendRecord    = "append" // what the peers do with every request
)

// maxTape bounds the requests encoded per connection, so that a table of many rows does not need as much memory here.
const maxTape = 4096

// envelopes is how many stored envelopes UpdateEnvelope takes turns on, and envelopeText the bytes of text in each.
const (
	envelopes    = manyConns
	envelopeText = 300
)

func pid(i int) string { return load.Identifier('p', i) }

func text(key, value string) load.Field { return load.Field{Key: key, Value: value} }

// request returns one request about a row. state is for TransitionState, envelope the identifier for UpdateEnvelope.
func request(method string, row int, state, envelope string) []byte {
	service, body := "kernel", []load.Field{text("pid", pid(row))}
	switch method {
	case recordUsage:
		body = append(body, load.Field{Key: "llm_calls", Value: 1}, load.Field{Key: "tokens_in", Value: 120}, load.Field{Key: "tokens_out", Value: 300})
	case transitionState:
		body = append(body, text("new_state", state))
	case checkRateLimit:
		body = []load.Field{text("user_id", load.Identifier('u', row))}
	case updateEnvelope:
		service = "engine"
		body = []load.Field{{Key: "envelope", Value: []load.Field{text("envelope_id", envelope), text("raw_input", strings.Repeat("x", envelopeText))}}}
	}
	return load.AppendRequest(nil, fmt.Sprintf("r%07d", row%10_000_000), service, method, body...)
}

// createRequest is CreateProcess with identifiers that the tape counts up; every process has a user of its own, so that no rate
// limit bites.
func createRequest(conn int) []byte {
	id := fmt.Sprintf("c0%06x-0000-40%s", conn, load.Placeholder)
	return load.AppendRequest(nil, "create", "kernel", createProcess, text("pid", id), text("request_id", id), text("user_id", id), text("session_id", id))
}

// span is the rows from one up to below another.
type span struct{ from, to int }

// deal gives every connection its own rows of a span in an order that no cache foresees.
func deal(rows span, conns int) [][]int {
	order := rand.New(rand.NewPCG(1, 2)).Perm(rows.to - rows.from)
	hands := make([][]int, conns)
	for i, row := range order {
		if hand := &hands[i%conns]; len(*hand) < maxTape {
			*hand = append(*hand, rows.from+row)
		}
	}
	return hands
}

// tapesOf encodes the requests of one method for every connection. TransitionState takes all rows of a connection to RUNNING and
// then all back to READY, which the server allows however often the tape repeats; two sets of its tapes need rows of their own.
func tapesOf(method string, rows span, conns int, ids []string) []*load.Tape {
	states := []string{""}
	if method == transitionState {
		states = []string{"RUNNING", "READY"}
	}
	var tapes []*load.Tape
	for conn, hand := range deal(rows, conns) {
		tape := new(load.Tape)
		if method == createProcess {
			tape.AddFresh(0, createRequest(conn))
			hand = nil
		}
		for _, state := range states {
			for i, row := range hand {
				envelope := ""
				if len(ids) > 0 {
					envelope = ids[(conn+i*conns)%len(ids)]
				}
				tape.Add(0, request(method, row, state, envelope))
			}
		}
		tapes = append(tapes, tape)
	}
	return tapes
}

// redisTapes encodes SET of a value as long as the record of the bare loop.
func redisTapes(rows span, conns int) []*load.Tape {
	value := strings.Repeat("x", recordBytes)
	var tapes []*load.Tape
	for _, hand := range deal(rows, conns) {
		tape := new(load.Tape)
		for _, row := range hand {
			tape.Add(0, load.AppendCommand(nil, "SET", pid(row), value))
		}
		tapes = append(tapes, tape)
	}
	return tapes
}

// prepare fills a server's table and lifts the rate limits.
func prepare(addr string, rows int) error {
	if err := load.CreateRows(addr, 0, rows); err != nil {
		return err
	}
	c, err := load.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	var quota []load.Field
	for _, name := range []string{"rate_limit_rpm", "rate_limit_rph", "rate_limit_burst"} {
		quota = append(quota, load.Field{Key: name, Value: math.MaxInt32})
	}
	if _, _, err := c.Call("quota", "kernel", "SetQuotaDefaults", load.Field{Key: "quota", Value: quota}); err != nil {
		return fmt.Errorf("cannot lift the rate limits: %w", err)
	}
	return nil
}

// makeEnvelopes stores n envelopes and returns their identifiers. Many ask at once, so that one sync serves many.
func makeEnvelopes(addr string, n int) ([]string, error) {
	const askers = 32
	ids, errs := make([]string, n), make([]error, askers)
	var wg sync.WaitGroup
	for a := range askers {
		wg.Go(func() { errs[a] = makeSome(addr, ids, a, askers) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("cannot store an envelope: %w", err)
		}
	}
	return ids, nil
}

// makeSome stores every step-th envelope from the given one on.
func makeSome(addr string, ids []string, from, step int) error {
	c, err := load.Dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := from; i < len(ids); i += step {
		who := load.Identifier('e', i)
		reply, _, err := c.Call("envelope", "engine", "CreateEnvelope", text("raw_input", "x"), text("request_id", who), text("user_id", who), text("session_id", who))
		if err != nil {
			return err
		}
		identity, _ := reply["identity"].(map[string]any)
		id, ok := identity["envelope_id"].(string)
		if !ok {
			return fmt.Errorf("no envelope_id in %v", reply)
		}
		ids[i] = id
	}
	return nil
}
