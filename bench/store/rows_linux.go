package main

import (
	"fmt"
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

// envelopes is how many stored envelopes UpdateEnvelope takes turns on, and envelopeText the bytes
// of text in each.
const (
	envelopes    = manyConns
	envelopeText = 300
)

func text(key, value string) load.Field { return load.Field{Key: key, Value: value} }

// createRequest is CreateProcess with identifiers that the tape counts up; every process has a user
// of its own, so that no rate limit bites.
func createRequest(conn int) []byte {
	id := fmt.Sprintf("c0%06x-0000-40%s", conn, load.Placeholder)
	return load.AppendRequest(nil, "create", "kernel", createProcess, text("pid", id), text("request_id", id), text("user_id", id), text("session_id", id))
}

// freshTapes encodes CreateProcess for every connection.
func freshTapes(conns int) (tapes []*load.Tape) {
	for conn := range conns {
		tape := new(load.Tape)
		tape.AddFresh(0, createRequest(conn))
		tapes = append(tapes, tape)
	}
	return tapes
}

// span is the rows from one up to below another.
type span struct{ from, to int }

// tapesOf encodes the requests of one method about rows for every connection; ids are the envelopes
// for UpdateEnvelope.
func tapesOf(method string, rows span, conns int, ids []string) []*load.Tape {
	encoders := load.RowEncoders(method)
	switch method {
	case checkRateLimit:
		encoders = []load.Encoder{func(at load.Place) []byte {
			return load.CountedRequest(at.Row, "kernel", method, text("user_id", load.Identifier('u', at.Row)))
		}}
	case updateEnvelope:
		encoders = []load.Encoder{func(at load.Place) []byte {
			id := ids[(at.Conn+at.Nth*conns)%len(ids)]
			change := []load.Field{text("envelope_id", id), text("raw_input", strings.Repeat("x", envelopeText))}
			return load.CountedRequest(at.Row, "engine", method, load.Field{Key: "envelope", Value: change})
		}}
	}
	return load.Tapes(load.Deal(rows.from, rows.to, conns), encoders...)
}

// redisTapes encodes SET of a value as long as the record of the bare loop.
func redisTapes(rows span, conns int) []*load.Tape {
	value := strings.Repeat("x", recordBytes)
	return load.Tapes(load.Deal(rows.from, rows.to, conns), func(at load.Place) []byte {
		return load.AppendCommand(nil, "SET", load.PID(at.Row), value)
	})
}

// prepare fills a server's table and lifts the rate limits.
func prepare(addr string, rows int) error {
	if err := load.CreateRows(addr, 0, rows); err != nil {
		return err
	}
	return load.LiftLimits(addr, "rate_limit_rpm", "rate_limit_rph", "rate_limit_burst")
}

// makeEnvelopes stores n envelopes and returns their identifiers. Many ask at once, so that one
// sync serves many.
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
