package sessions

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
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

// Part measures memory and refusals.
func Part() part.Part {
	count, size := 100_000, 64<<10
	return part.Part{
		Name: "sessions", What: "more sessions than a server holds: is memory bounded, is each refusal the contract's?",
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&count, "count", count, "sessions: how many to begin")
			f.IntVar(&size, "size", size, "sessions: bytes of each envelope")
		},
		Run: func(r *part.Run) error { return run(r, count, size) },
	}
}

func run(r *part.Run, count, size int) error {
	if r.Quick {
		count = min(count, 20_000)
	}
	r.Report.Checked = true
	table := goal.Grid{Head: []string{"sessions", "bytes each", "begun", "refused", "held", "held MiB", "RSS MiB", "peak MiB", "full table: most MiB, first half", "second half", "per second"}}
	for _, ended := range []bool{false, true} {
		s, err := r.Trunkline()
		if err != nil {
			return err
		}
		b := bench{server: s, count: count, size: size, ended: ended}
		err = b.run(&table)
		s.Stop()
		if err != nil {
			return err
		}
		for _, fault := range b.faults {
			r.Report.Fault("%v", fault)
		}
	}
	r.Report.Table(table)
	return nil
}

// bench is one server and what it was seen to do.
type bench struct {
	server      *load.Server
	count, size int
	ended       bool

	refused atomic.Int64
	rss     []int64 // resident bytes after every piece, from the first full table on
	faults  []error
}

func (b *bench) run(table *goal.Grid) error {
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
	return b.report(time.Since(start), table)
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

// report adds a row to the table and keeps what is wrong with it.
func (b *bench) report(took time.Duration, table *goal.Grid) error {
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
	table.Add(kind, b.size, int64(b.count)-refused, refused, active, goal.MiB(active*int64(b.size)), goal.MiB(m.RSS), goal.MiB(m.Peak),
		goal.MiB(first), goal.MiB(second), float64(b.count)/took.Seconds())
	for _, err := range []error{b.counts(active, refused), b.bounded(active), b.stillThere()} {
		if err != nil {
			b.faults = append(b.faults, err)
		}
	}
	return nil
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
