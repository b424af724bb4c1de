package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/codec/transcode"
)

const (
	// piece is how many requests are encoded at a time, and how often memory is looked at.
	piece = 500
	depth = 16
	// growth is how much more resident memory the second half of the time after the table was full
	// may show than the first: what is bounded stays where it is. Below slack times the bytes held
	// the collector has not yet had a reason to run.
	growth, slack = 1.15, 2.5
	// held is how many sessions a server holds by default (envelope §6).
	held = 10_000
)

type options struct {
	server      string
	count, size int
}

func parseFlags(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("sessions", flag.ContinueOnError)
	f.StringVar(&o.server, "server", "", "trunkline binary; empty builds ./cmd/trunkline")
	f.IntVar(&o.count, "count", 100_000, "sessions to begin")
	f.IntVar(&o.size, "size", 64<<10, "bytes of each envelope")
	return o, f.Parse(args)
}

func main() {
	load.Main("sessions", parseFlags, func(o options) (failed bool, err error) { return false, run(o) })
}

func run(o options) error {
	rig, err := load.ServerRig("sessions-", o.server)
	if err != nil {
		return err
	}
	defer rig.Close()
	rig.GoesWithSignal()
	for _, ended := range []bool{false, true} {
		s, err := rig.Trunkline()
		if err != nil {
			return err
		}
		b := bench{server: s, count: o.count, size: o.size, ended: ended}
		err = b.run()
		s.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// bench is one server and what it was seen to do.
type bench struct {
	server      *load.Server
	count, size int
	ended       bool

	refused atomic.Int64
	rss     []int64 // resident bytes after every piece, from the first full table on
}

func (b *bench) run() error {
	tape := new(load.Tape)
	for range piece {
		tape.AddFresh(0, beginRequest(b.size, b.ended))
	}
	start := time.Now()
	for done := 0; done < b.count; done += piece {
		session, err := load.Start(load.Config{Addr: b.server.Addr, Tapes: []*load.Tape{tape}, Depth: depth, Once: true, Refused: b.evaluate})
		if err != nil {
			return err
		}
		if _, err := session.Wait(); err != nil {
			return fmt.Errorf("%w; the server said:\n%s", err, b.server.Output())
		}
		if err := b.look(int64(done + piece)); err != nil {
			return err
		}
	}
	return b.report(time.Since(start))
}

// evaluate counts the refusals of the contract and lets no other one pass. Workers call it.
func (b *bench) evaluate(_ uint8, payload []byte) error {
	f, err := load.ParseFailure(payload)
	if err != nil {
		return err
	}
	if f.Code != "RESOURCE_EXHAUSTED" || f.Message != "Session table is full" {
		return f
	}
	b.refused.Add(1)
	return nil
}

// look keeps the resident memory once the table holds fewer sessions than were sent to it.
func (b *bench) look(sent int64) error {
	m, err := b.server.Memory()
	if err != nil {
		return err
	}
	active, err := b.active()
	if err == nil && active < sent {
		b.rss = append(b.rss, m.RSS)
	}
	return err
}

func (b *bench) active() (int64, error) {
	status, err := load.Ask(b.server.Addr, "kernel", "GetSystemStatus")
	if err != nil {
		return 0, err
	}
	orchestration, _ := status["orchestration"].(map[string]any)
	switch n := orchestration["active_sessions"].(type) {
	case int64:
		return n, nil
	case uint64:
		return int64(n), nil
	}
	return 0, fmt.Errorf("cannot read active_sessions of %v", status)
}

// report prints what happened and reports what is wrong with it.
func (b *bench) report(took time.Duration) error {
	active, err := b.active()
	if err != nil {
		return err
	}
	m, err := b.server.Memory()
	if err != nil {
		return err
	}
	first, second := b.halves()
	kind, refused := "running", b.refused.Load()
	if b.ended {
		kind = "ended"
	}
	fmt.Printf("%d %s sessions of %d bytes: %d begun, %d refused, %d held (%.0f MiB); RSS %.0f MiB, peak %.0f MiB, "+
		"since the table is full at most %.0f MiB in the first half and %.0f MiB in the second; %.0f/s\n",
		b.count, kind, b.size, int64(b.count)-refused, refused, active, goal.MiB(active*int64(b.size)), goal.MiB(m.RSS), goal.MiB(m.Peak),
		goal.MiB(first), goal.MiB(second), float64(b.count)/took.Seconds())
	return errors.Join(b.counts(active, refused), b.bounded(active), b.stillThere())
}

func (b *bench) counts(active, refused int64) error {
	begun := int64(b.count) - refused
	switch {
	case !b.ended && active != begun:
		return fmt.Errorf("%d sessions were begun and %d are held: a running session was given up", begun, active)
	case b.ended && refused > 0:
		return fmt.Errorf("%d sessions were refused although ended ones could be given up", refused)
	case active > held:
		return fmt.Errorf("%d sessions are held, more than %d", active, held)
	}
	return nil
}

// halves returns the most resident memory in the first and the second half of the time after the
// table was full.
func (b *bench) halves() (first, second int64) {
	if len(b.rss) < 2 {
		return 0, 0
	}
	middle := len(b.rss) / 2
	return slices.Max(b.rss[:middle]), slices.Max(b.rss[middle:])
}

func (b *bench) bounded(active int64) error {
	first, second := b.halves()
	if float64(second) > max(growth*float64(first), slack*float64(active*int64(b.size))) {
		return fmt.Errorf("memory grew from %.0f to %.0f MiB while the table was full", goal.MiB(first), goal.MiB(second))
	}
	return nil
}

// stillThere asks the last session that was begun for its instruction.
func (b *bench) stillThere() error {
	last, want := int64(b.count), "TERMINATE"
	if !b.ended {
		last, want = int64(b.count)-b.refused.Load(), "RUN_AGENT"
	}
	reply, err := load.Ask(b.server.Addr, "orchestration", "GetNextInstruction", load.Field{Key: "process_id", Value: fmt.Sprintf("%016x", last)})
	if err != nil {
		return fmt.Errorf("session %d of those begun: %w", last, err)
	}
	if reply["kind"] != want {
		return fmt.Errorf("session %d of those begun got %v, not %s", last, reply["kind"], want)
	}
	return nil
}

// beginRequest is InitializeSession with an envelope of about size bytes and a process id that the
// tape counts up.
func beginRequest(size int, ended bool) []byte {
	const pipeline = `{"name":"n","agents":[{"name":"s1","agent":"a1","default_next":"s2"},{"name":"s2","agent":"a2"}]}`
	text := fmt.Sprintf(`{"envelope_id":"e","terminated":%v,"outputs":{"seed":{"text":%q}}}`, ended, strings.Repeat("x", size))
	return load.AppendRequest(nil, "begin", "orchestration", "InitializeSession", load.Field{Key: "process_id", Value: load.Placeholder},
		load.Field{Key: "pipeline_config", Value: raw(pipeline)}, load.Field{Key: "envelope", Value: raw(text)})
}

// raw encodes JSON that is part of this program.
func raw(text string) load.Raw {
	b, err := transcode.EncodeJSON([]byte(text))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return load.Raw(b)
}
