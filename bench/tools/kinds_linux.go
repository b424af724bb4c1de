package tools

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"trunkline/bench/internal/load"
)

// The tools that requests name.
const (
	noopAID    = "AID.NOOP.v1"
	echoAID    = "AID.TEST.ECHO.v1"
	keptAID    = "AID.BENCH.KEPT.v1"
	perCallAID = "AID.BENCH.ONESHOT.v1"
	keptPyAID  = "AID.BENCH.KEPT.PYTHON.v1"
	oncePyAID  = "AID.BENCH.ONESHOT.PYTHON.v1"
)

// kind is one kind of requests. They have one length, and so have their replies once primed.
type kind struct {
	name    string
	line    string // # is the number of the request
	variety int    // how many different ones a connection sends, at most ten
	good    string // what a good reply holds, beside its beginning
	// What is asked of the requests/s beside an echo over many connections, and over pipes; 0 is
	// reported.
	must, moonshot, pipes float64
}

// hot are the kinds that are pipelined, in the order of the table. Those of slot differ from one to
// the next, so that each changes the state.
func hot() []kind {
	return []kind{
		{"noop", `{"aid":"` + noopAID + `"}`, 1, `"slots":{},`, 0.6, 0.8, 0.5},
		{"hit", `{"aid":"` + noopAID + `","idempotency_key":"bench-key-#"}`, 8, `"idempotent_hit":true`, 0.35, 0.5, 0},
		{"slot", `{"aid":"` + echoAID + `","input_json":"{\"x\":#}"}`, 8, `"slots":{"6":{`, 0.25, 0.4, 0},
	}
}

// external is the kind that calls an external tool.
func external(name, aid string) kind {
	return kind{name: name, line: `{"aid":"` + aid + `"}`, variety: 1, good: `"slots":{},`}
}

// began is how every good reply begins.
const began = `{"ok":true,"status":"OK",`

// requests returns the lines of a kind.
func (k *kind) requests() (lines [][]byte) {
	for i := range k.variety {
		lines = append(lines, []byte(strings.ReplaceAll(k.line, "#", strconv.Itoa(i))+"\n"))
	}
	return lines
}

// tapes encodes the requests for a number of connections.
func (k *kind) tapes(conns int) (list []*load.Tape) {
	for range conns {
		list = append(list, load.TapeOf(k.requests()...))
	}
	return list
}

// prime sends every request twice, checks the second replies, and returns their length.
func (k *kind) prime(c io.ReadWriter) (size int, err error) {
	in := bufio.NewReader(c)
	for turn := range 2 {
		for _, line := range k.requests() {
			if _, err := c.Write(line); err != nil {
				return 0, fmt.Errorf("cannot prime %s: %w", k.name, err)
			}
			reply, err := in.ReadString('\n')
			if err != nil {
				return 0, fmt.Errorf("cannot prime %s: %w", k.name, err)
			}
			if turn == 0 {
				continue
			}
			if err := k.check(reply); err != nil {
				return 0, err
			}
			if size != 0 && size != len(reply) {
				return 0, fmt.Errorf("cannot measure %s: replies have %d and %d bytes", k.name, size, len(reply))
			}
			size = len(reply)
		}
	}
	return size, nil
}

// check evaluates the reply of a primed request.
func (k *kind) check(reply string) error {
	for _, part := range []string{began, k.good} {
		if !strings.Contains(reply, part) {
			return fmt.Errorf("cannot measure %s: %s is not in the reply %q", k.name, part, reply)
		}
	}
	return nil
}
