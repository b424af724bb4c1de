// Package sessions begins far more orchestration sessions (-rows) than a server with default
// settings holds, each with an envelope of 64 KiB: is its memory bounded, and is every refusal the
// one that the contract names?
//
// Two servers, one after the other. The first is given sessions that go on: the table fills, and
// all further ones are refused with RESOURCE_EXHAUSTED, "Session table is full", retryable; the
// sessions held still answer. The second is given sessions that have ended: each takes the place of
// one that was idle for longest, and none is refused (envelope §5.3).
package sessions

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/codec/transcode"
	"trunkline/handlers/ipc/ipcclient"
)

const (
	// size is the bytes of each envelope.
	size = 64 << 10
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

// Part measures memory and refusals.
func Part() part.Part {
	return part.Part{
		Name: "sessions", What: "more sessions than a server holds: is memory bounded, is each refusal the contract's?",
		Defaults: func(o *part.Options) { o.Rows = 100_000 },
		Quick:    func(o *part.Options) { o.Rows = 20_000 },
		Run:      run,
	}
}

func run(r *part.Run) error {
	r.Report.Checked = true
	table := goal.Grid{Head: []string{"sessions", "bytes each", "begun", "refused", "held", "held MiB", "RSS MiB", "peak MiB", "full table: most MiB, first half", "second half", "per second"}}
	for _, kind := range []string{running, ended} {
		s, err := r.Trunkline()
		if err != nil {
			return err
		}
		b := bench{server: s, count: int64(max(1, r.Rows/piece) * piece), kind: kind}
		if err := b.run(&table); err != nil {
			return err
		}
		b.check(r.Report)
		if err := b.stillThere(); err != nil {
			r.Report.Fault("%v", err)
		}
		s.Stop()
	}
	r.Report.Table(table)
	return nil
}

// The kinds of sessions.
const (
	running = "running"
	ended   = "ended"
)

// bench is one server and what it was seen to do.
type bench struct {
	server *load.Server
	count  int64
	kind   string

	refused atomic.Int64
	active  int64
	rss     []int64 // resident bytes after every piece, from the first full table on
}

// run begins the sessions and adds a row to the table.
func (b *bench) run(table *goal.Grid) error {
	tape := new(load.Tape)
	for range piece {
		tape.AddFresh(beginRequest(b.kind == ended))
	}
	var memory load.Memory
	start := time.Now()
	for sent := int64(piece); sent <= b.count; sent += piece {
		_, err := load.RunToEnd(load.Config{
			Addr: b.server.Addr, Tapes: []*load.Tape{tape}, Depth: depth, Once: true, Refused: b.evaluate,
		})
		if err != nil {
			return fmt.Errorf("%w; the server said:\n%s", err, b.server.Output())
		}
		if memory, err = b.server.Memory(); err != nil {
			return err
		}
		metrics, err := b.server.Metrics()
		if err != nil {
			return err
		}
		if b.active = int64(metrics["trunkline_orchestration_sessions"]); b.active < sent {
			b.rss = append(b.rss, memory.RSS)
		}
	}
	first, second := b.halves()
	table.Add(b.kind, size, b.count-b.refused.Load(), b.refused.Load(), b.active, goal.MiB(b.active*size), goal.MiB(memory.RSS), goal.MiB(memory.Peak),
		goal.MiB(first), goal.MiB(second), float64(b.count)/time.Since(start).Seconds())
	return nil
}

// evaluate counts the refusals of the contract and lets no other one pass. Workers call it.
func (b *bench) evaluate(f *load.Failure) error {
	if f.Code != "RESOURCE_EXHAUSTED" || f.Message != "Session table is full" {
		return f
	}
	b.refused.Add(1)
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

// check looks at the counts and at the memory.
func (b *bench) check(r *part.Report) {
	refused := b.refused.Load()
	switch begun := b.count - refused; {
	case b.kind == running && b.active != begun:
		r.Fault("%d sessions were begun and %d are held: a running session was given up", begun, b.active)
	case b.kind == ended && refused > 0:
		r.Fault("%d sessions were refused although ended ones could be given up", refused)
	case b.active > held:
		r.Fault("%d sessions are held, more than %d", b.active, held)
	}
	if first, second := b.halves(); float64(second) > max(growth*float64(first), slack*float64(b.active*size)) {
		r.Fault("memory grew from %.0f to %.0f MiB while the table was full", goal.MiB(first), goal.MiB(second))
	}
}

// stillThere asks the last session that was begun for its instruction.
func (b *bench) stillThere() error {
	last, want := b.count, ipcclient.Terminate
	if b.kind == running {
		last, want = b.count-b.refused.Load(), ipcclient.RunAgent
	}
	reply, err := load.Ask(b.server.Addr, "orchestration", "GetNextInstruction", "process_id", fmt.Sprintf("%012x", last))
	if err == nil && reply["kind"] != want {
		err = fmt.Errorf("cannot take the instruction %v for %s", reply["kind"], want)
	}
	if err != nil {
		return fmt.Errorf("session %d of those begun: %w", last, err)
	}
	return nil
}

// beginRequest is InitializeSession with an envelope of about size bytes and a process id that the
// tape counts up.
func beginRequest(ended bool) []byte {
	const pipeline = `{"name":"n","agents":[{"name":"s1","agent":"a1","default_next":"s2"},{"name":"s2","agent":"a2"}]}`
	envelope, err := transcode.EncodeJSON(fmt.Appendf(nil, `{"envelope_id":"e","terminated":%v,"outputs":{"seed":{"text":%q}}}`, ended, strings.Repeat("x", size)))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return load.NewRequest("orchestration", "InitializeSession", "process_id", load.Placeholder, "pipeline_config", pipeline, "envelope", load.Raw(envelope))
}
