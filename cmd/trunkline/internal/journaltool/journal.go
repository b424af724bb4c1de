// Package journaltool looks at the journal of a server that is not running: it verifies it, counts
// what is in it, prints it and copies it. It changes nothing. What it holds in memory does not grow
// with the journal: one block, one record of a snapshot, the first damages, and numbers.
package journaltool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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

// ErrInside: a file or directory to be written would be in the directory that is read.
var ErrInside = errors.New("it is inside of the journal's own directory")

// Backup copies the journal in dir to dest, which must not be there and is removed again if that
// fails. A damaged journal is copied as it is; Verify of dest reports the damage. It returns how
// much was copied.
func Backup(ctx context.Context, dir, dest string, m Meter) (bytes uint64, err error) {
	if err := Outside(dir, dest); err != nil {
		return 0, err
	}
	begun := false
	err = embedded.Copy(ctx, embedded.Config{Dir: dir}, dest, func(done, total int64) {
		if !begun {
			begun = true
			m.Begin("copy", "bytes", uint64(total))
		}
		bytes = uint64(done)
		m.Set(bytes)
	})
	return bytes, err
}

// Outside returns an error that is ErrInside where path is in dir, by any of its names.
func Outside(dir, path string) error {
	real, err := trueName(dir)
	if err != nil {
		return err
	}
	to, err := trueName(path)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(real, to); err != nil || rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return fmt.Errorf("cannot write %s: %w", path, ErrInside)
	}
	return nil
}

// trueName resolves as much of a path as is there.
func trueName(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %s: %w", path, err)
	}
	rest := ""
	for at := abs; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		if at == filepath.Dir(at) {
			return abs, nil
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
