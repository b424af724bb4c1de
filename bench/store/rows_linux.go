package store

import (
	"fmt"
	"strings"

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
	appendRecord    = "append 300 bytes" // what peers do with every request: redis with SET
)

// envelopes is how many stored envelopes UpdateEnvelope takes turns on, and envelopeText the bytes
// of text in each.
const (
	envelopes    = 1024
	envelopeText = 300
)

func text(key, value string) load.Field { return load.Field{Key: key, Value: value} }

// each makes a tape of one request, whose placeholders count up, for every connection. hello is
// nil, or what the connection begins with.
func each(conns int, hello, request func(conn int) string) (tapes []*load.Tape) {
	for conn := range conns {
		tape := new(load.Tape)
		if hello != nil {
			tape.Hello = []byte(hello(conn))
		}
		tape.AddFresh(0, []byte(request(conn)))
		tapes = append(tapes, tape)
	}
	return tapes
}

// freshTapes encodes CreateProcess for every connection, with identifiers that the tape counts up;
// every process has a user of its own, so that no rate limit bites.
func freshTapes(conns int) []*load.Tape {
	return each(conns, nil, func(conn int) string {
		id := fmt.Sprintf("c0%06x-0000-40%s", conn, load.Placeholder)
		return string(load.AppendRequest(nil, "create", "kernel", createProcess, text("pid", id), text("request_id", id), text("user_id", id), text("session_id", id)))
	})
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

// makeEnvelopes stores envelopes and returns their identifiers.
func makeEnvelopes(addr string) (ids []string, err error) {
	for i := range envelopes {
		who := load.Identifier('e', i)
		reply, err := load.Ask(addr, "engine", "CreateEnvelope", text("raw_input", "x"), text("request_id", who), text("user_id", who), text("session_id", who))
		if err != nil {
			return nil, fmt.Errorf("cannot store an envelope: %w", err)
		}
		identity, _ := reply["identity"].(map[string]any)
		id, ok := identity["envelope_id"].(string)
		if !ok {
			return nil, fmt.Errorf("cannot find envelope_id in %v", reply)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
