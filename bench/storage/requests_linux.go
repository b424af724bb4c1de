package storage

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
)

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

// each makes a tape of one request, whose placeholders count up, for every connection. hello is
// nil, or what the connection begins with.
func each(conns int, hello, request func(conn int) string) (tapes []*load.Tape) {
	for conn := range conns {
		tape := new(load.Tape)
		if hello != nil {
			tape.Hello = []byte(hello(conn))
		}
		tape.AddFresh([]byte(request(conn)))
		tapes = append(tapes, tape)
	}
	return tapes
}

// freshTapes create processes of a user each, so that no rate limit bites.
func freshTapes(conns int) []*load.Tape {
	return each(conns, nil, func(conn int) string {
		id := fmt.Sprintf("c0%06x-0000-400000%s", conn, load.Placeholder)
		return string(load.CreateRequest(id))
	})
}

type span struct{ from, to int }

// tapesOf encodes the requests of one method about rows for every connection; ids are the envelopes
// for UpdateEnvelope.
func tapesOf(method string, rows span, conns int, ids []string) []*load.Tape {
	encoders := load.RowEncoders(method)
	switch method {
	case checkRateLimit:
		encoders = []load.Encoder{func(row int) []byte {
			return load.NewRequest("kernel", method, "user_id", load.Identifier('u', row))
		}}
	case updateEnvelope:
		encoders = []load.Encoder{func(row int) []byte {
			change := load.Map("envelope_id", ids[row%len(ids)], "raw_input", strings.Repeat("x", envelopeText))
			return load.NewRequest("engine", method, "envelope", change)
		}}
	}
	return load.Tapes(load.Deal(rows.from, rows.to, conns), encoders...)
}

func redisTapes(rows span, conns int) []*load.Tape {
	value := strings.Repeat("x", recordBytes)
	return load.Tapes(load.Deal(rows.from, rows.to, conns), func(row int) []byte {
		return load.AppendCommand(nil, "SET", load.PID(row), value)
	})
}

func prepare(addr string, rows int) error {
	if err := load.CreateRows(addr, 0, rows); err != nil {
		return err
	}
	return load.LiftLimits(addr, "rate_limit_rpm", "rate_limit_rph", "rate_limit_burst")
}

const askTimeout = 10 * time.Second

// startMore starts a server with tools and more beside the kernel protocol.
func startMore(r *part.Run, mode string, more ...string) (*load.Server, error) {
	c := load.Trunkline(r.Binary, settings(r, mode, append(more, "toolhost.listen_addr=127.0.0.1:0", "toolhost.loops="+strconv.Itoa(r.Loops))...)...)
	c.Env = []string{"MACHINA_API_TOKEN="}
	return r.Start(c)
}

// ask writes a request to a connection of its own, and reads until what comes back matches. It
// returns the first group.
func ask(addr, request, pattern string) (found string, err error) {
	c, err := load.Dial(addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(askTimeout)) // an error shows with the next call
	if _, err := c.Write([]byte(request)); err != nil {
		return "", err
	}
	want, got, buf := regexp.MustCompile(pattern), []byte(nil), make([]byte, 64<<10)
	for err == nil && len(got) < len(buf) {
		var n int
		n, err = c.Read(buf)
		got = append(got, buf[:n]...)
		if m := want.FindSubmatch(got); m != nil {
			return string(m[1]), nil
		}
	}
	return "", fmt.Errorf("no %s in %q: %w", pattern, got, err)
}

func answers(r *part.Run, addr string, tapes []*load.Tape, depth int, good string) load.Config {
	cfg := r.Config(addr, load.Lines, tapes, depth)
	cfg.Good, cfg.Spin = good, cfg.Spin || depth == polled.depth // where no disk is waited for
	return cfg
}

func (b *bench) addNoop(s *load.Server, addr string, at size) goal.Cell {
	tapes := each(at.conns, nil, func(int) string { return `{"aid":"AID.NOOP.v1"}` + "\n" })
	return b.add("toolhost", "AID.NOOP.v1", s, answers(b.Run, addr, tapes, at.depth, `{"ok":true,`))
}
