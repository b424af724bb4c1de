package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"trunkline/bench/internal/load"
)

// The kinds of requests, the AIDs they name, and how many different ones of a kind a connection
// sends.
const (
	noop       = "noop"
	hit        = "hit"
	slot       = "slot"
	kept       = "kept process"
	perCall    = "process per call"
	keptPy     = "kept python3"
	perCallPy  = "python3 per call"
	noopAID    = "AID.NOOP.v1"
	echoAID    = "AID.TEST.ECHO.v1"
	keptAID    = "AID.BENCH.KEPT.v1"
	perCallAID = "AID.BENCH.ONESHOT.v1"
	keptPyAID  = "AID.BENCH.KEPT.PYTHON.v1"
	oncePyAID  = "AID.BENCH.ONESHOT.PYTHON.v1"
	variety    = 8
)

// evaluated is the kind that the goals of the pipelined cells are about: a trivial built-in tool.
// The other hot kinds are reported.
const evaluated = noop

// bare are the kinds whose requests hold an AID and nothing else.
func bare() map[string]string {
	return map[string]string{noop: noopAID, kept: keptAID, perCall: perCallAID, keptPy: keptPyAID, perCallPy: oncePyAID}
}

// hot are the kinds that are pipelined, in the order of the table.
func hot() []string { return []string{noop, hit, slot} }

// maxInFlight bounds the requests in flight of all connections, and maxDepth those of one: their
// replies fit into a pipe.
const (
	maxInFlight = 1 << 16
	maxDepth    = 256
)

// requests returns the lines of a kind, all of one length, whose replies are of one length as well
// once primed. Those of kind slot differ from one to the next, so that each changes the state.
func requests(kind string) (lines []string) {
	if aid := bare()[kind]; aid != "" {
		return []string{`{"aid":"` + aid + `"}` + "\n"}
	}
	for i := range variety {
		switch kind {
		case hit:
			lines = append(lines, fmt.Sprintf(`{"aid":"%s","idempotency_key":"bench-key-%02d"}`+"\n", noopAID, i))
		case slot:
			lines = append(lines, fmt.Sprintf(`{"aid":"%s","input_json":"{\"x\":%d}"}`+"\n", echoAID, i))
		}
	}
	return lines
}

// wanted is what a good reply of a kind holds.
func wanted(kind string) []string {
	switch kind {
	case hit:
		return []string{`{"ok":true,"status":"OK",`, `"idempotent_hit":true`}
	case slot:
		return []string{`{"ok":true,"status":"OK",`, `"slots":{"6":{`}
	}
	return []string{`{"ok":true,"status":"OK",`, `"slots":{},`}
}

// tapes encodes the requests of a kind for a number of connections.
func tapes(kind string, conns int) []*load.Tape {
	list := make([]*load.Tape, conns)
	for i := range list {
		list[i] = new(load.Tape)
		for _, line := range requests(kind) {
			list[i].Add(0, []byte(line))
		}
	}
	return list
}

// prime sends every request of a kind twice, checks the second replies, and returns their length.
func prime(c io.ReadWriter, kind string) (size int, err error) {
	in := bufio.NewReader(c)
	for turn := range 2 {
		for _, line := range requests(kind) {
			if _, err := io.WriteString(c, line); err != nil {
				return 0, fmt.Errorf("cannot prime %s: %w", kind, err)
			}
			reply, err := in.ReadString('\n')
			if err != nil {
				return 0, fmt.Errorf("cannot prime %s: %w", kind, err)
			}
			if turn == 0 {
				continue
			}
			if err := checkReply(kind, reply); err != nil {
				return 0, err
			}
			if size != 0 && size != len(reply) {
				return 0, fmt.Errorf("cannot measure %s: replies have %d and %d bytes", kind, size, len(reply))
			}
			size = len(reply)
		}
	}
	return size, nil
}

func checkReply(kind, reply string) error {
	for _, part := range wanted(kind) {
		if !strings.Contains(reply, part) {
			return fmt.Errorf("cannot measure %s: %s is not in the reply %q", kind, part, reply)
		}
	}
	return nil
}
