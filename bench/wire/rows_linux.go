package wire

import (
	"fmt"
	"strings"

	"trunkline/bench/internal/load"
)

// kernelTapes encodes the requests of one method for every connection.
func kernelTapes(method string, rows, conns int) []*load.Tape {
	return load.Tapes(load.Deal(0, rows, conns), load.RowEncoders(method)...)
}

// redisTapes encodes GET of the same keys; storeRows wrote their values.
func redisTapes(rows, conns int) []*load.Tape {
	return load.Tapes(load.Deal(0, rows, conns), func(at load.Place) []byte { return load.AppendCommand(nil, "GET", load.PID(at.Row)) })
}

// natsTapes encodes requests as long as GetProcess's, whose replies are.
func natsTapes(conns int) (tapes []*load.Tape) {
	const repeat = 64 // they are all alike
	for conn := range conns {
		tapes = append(tapes, load.NATSTape(conn, repeat, natsSubject, len(load.RowRequest(evaluated, 0))))
	}
	return tapes
}

// getValue is the value behind every key of the GET peers: 150 bytes, within the 128 to 174 of a
// process reply's own data.
const getValue = 150

// storeRows presets a GET peer.
func storeRows(addr string, n int) error {
	tape := new(load.Tape)
	for i := range n {
		tape.Add(0, load.AppendCommand(nil, "SET", load.PID(i), strings.Repeat("v", getValue)))
	}
	if err := load.SendOnce(addr, load.RESP, []*load.Tape{tape}, 64); err != nil {
		return fmt.Errorf("cannot store %d keys: %w", n, err)
	}
	return nil
}

// probeReplies asks a server how large its reply to each hot method is, in bytes with prefix, and
// checks that CheckQuota is within bounds. It leaves row 0 READY as it was.
func probeReplies(addr string) (map[string]int, error) {
	c, err := load.Dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	sizes := map[string]int{}
	row := load.Field{Key: "pid", Value: load.PID(0)}
	for _, method := range methods {
		fields := []load.Field{row}
		if method == transitionState {
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
	_, _, err = c.Call("r0000000", "kernel", transitionState, row, load.Field{Key: "new_state", Value: "READY"})
	return sizes, err
}
