package journaltool

import (
	"context"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
)

// Meter receives the progress of a piece of work.
type Meter interface {
	// Begin starts a phase that ends at total, counted in unit.
	Begin(phase, unit string, total uint64)
	// Set reports that done of total is behind.
	Set(done uint64)
}

// Journal is a journal in a directory, open for looking at it. No other process can open the
// directory meanwhile.
type Journal struct {
	view *embedded.View
	in   *journal.Inspector
	last journal.Index
}

// open opens the journal in dir, in whatever mode it was made. Close it.
//
// Errors: journal.ErrLocked, embedded.ErrNoJournal, *journal.DamageError where nothing can be read,
// or the system's error.
func open(dir string) (*Journal, error) {
	view, err := embedded.Inspect(embedded.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	j := &Journal{view: view, in: journal.NewInspector(view, 0, view.Mode())}
	if j.last, err = j.in.LastIndex(); err != nil && !isDamage(err) {
		_ = view.Close()
		return nil, err
	}
	return j, nil
}

// Close gives the directory free.
func (j *Journal) Close() error { return j.view.Close() }

// walk gives all good blocks from an index on, and the damage between them, until ctx ends.
func (j *Journal) walk(ctx context.Context, m Meter, from journal.Index, each func(*journal.BlockView) error, damaged func(journal.Damage) error) error {
	var base journal.Index
	return j.in.Blocks(from, func(b *journal.BlockView) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if base == 0 {
			base = b.First
			m.Begin("log", "records", max(j.last, b.Last)-base+1)
		}
		if err := each(b); err != nil {
			return err
		}
		m.Set(b.Last - base + 1)
		return nil
	}, damaged)
}

// moment is a time of the log for people.
func moment(ns int64) time.Time { return time.Unix(0, ns).UTC() }
