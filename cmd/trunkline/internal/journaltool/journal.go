// Package journaltool works on the journal of a server that is not running: it verifies it, counts
// what is in it, prints it and copies it, which changes nothing, and makes one of a copy or of what
// was printed. What it holds in memory does not grow with the journal: one block, one record of a
// snapshot, the first damages, and numbers.
package journaltool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	err = embedded.Copy(ctx, embedded.Config{Dir: dir}, dest, progressOf(m, "copy", &bytes))
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

// Stats is what is in a journal, in numbers. They do not show whether it is sound: what cannot be
// read is not counted.
type Stats struct {
	Dir  string `json:"dir"`
	Mode string `json:"mode"`
	Totals
	// RecordBytes are those of the records without what a block adds.
	RecordBytes   uint64        `json:"record_bytes"`
	LargestRecord uint64        `json:"largest_record"`
	LargestBlock  uint64        `json:"largest_block"`
	Kinds         []KindCount   `json:"kinds"`
	Snapshots     []SnapshotAge `json:"snapshots"`
	DiskBytes     uint64        `json:"disk_bytes"`
	Files         []FileCount   `json:"files"`
	// Damages is how many places could not be read.
	Damages int `json:"damages"`
}

// KindCount counts the records of one kind of change.
type KindCount struct {
	Kind    string `json:"kind"`
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"`
}

// SnapshotAge is a generation and how old it was when it was looked at.
type SnapshotAge struct {
	Generation uint64    `json:"generation"`
	Index      uint64    `json:"index"`
	Bytes      uint64    `json:"bytes"`
	Time       time.Time `json:"time"`
	AgeSecs    int64     `json:"age_secs"`
	// Behind is how many indexes of the log a start reads after it.
	Behind uint64 `json:"behind"`
}

// FileCount counts the files of one kind in the directory.
type FileCount struct {
	Kind  string `json:"kind"`
	Files int    `json:"files"`
	Bytes uint64 `json:"bytes"`
}

// unreadable is the kind of a record that is no change known here.
const unreadable = "unreadable"

// Count reads all of the journal in dir and counts.
func Count(ctx context.Context, dir string, now time.Time, m Meter) (*Stats, error) {
	j, err := open(dir)
	if err != nil {
		return nil, err
	}
	c := counting{Journal: j, s: &Stats{Dir: j.view.Dir(), Mode: j.view.Mode().String()}, kinds: map[string]*KindCount{}}
	if err = c.log(ctx, m); err == nil {
		err = errors.Join(c.snapshots(now), c.files())
	}
	return c.s, errors.Join(err, j.Close())
}

type counting struct {
	*Journal
	s      *Stats
	record record
	kinds  map[string]*KindCount // there are as many as kinds of change
}

func (c *counting) log(ctx context.Context, m Meter) error {
	err := c.walk(ctx, m, 0, c.block, func(journal.Damage) error { c.s.Damages++; return nil })
	if c.view.Damage() != nil {
		c.s.Damages++
	}
	c.s.Kinds = make([]KindCount, 0, len(c.kinds))
	for _, k := range c.kinds {
		c.s.Kinds = append(c.s.Kinds, *k)
	}
	slices.SortFunc(c.s.Kinds, func(a, b KindCount) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Kind, b.Kind))
	})
	return err
}

func (c *counting) block(b *journal.BlockView) error {
	s := c.s
	s.add(b)
	s.LargestBlock = max(s.LargestBlock, uint64(b.Bytes))
	return b.Records(0, func(_ journal.Index, rec []byte) error {
		kind, n := unreadable, uint64(len(rec))
		if parseRecord(rec, &c.record) == nil {
			kind = c.record.Kind()
		}
		k := c.kinds[kind]
		if k == nil {
			k = &KindCount{Kind: kind}
			c.kinds[kind] = k
		}
		k.Records++
		k.Bytes += n
		s.RecordBytes += n
		s.LargestRecord = max(s.LargestRecord, n)
		return nil
	})
}

func (c *counting) snapshots(now time.Time) error {
	c.s.Snapshots = []SnapshotAge{}
	infos, err := c.in.Snapshots()
	if isDamage(err) {
		c.s.Damages++
		return nil
	}
	for i := range infos {
		info := &infos[i]
		if info.Err != nil {
			c.s.Damages++
			continue
		}
		at := moment(info.Time)
		c.s.Snapshots = append(c.s.Snapshots, SnapshotAge{Generation: info.Number, Index: info.Index, Bytes: info.Bytes, Time: at,
			AgeSecs: int64(max(now.Sub(at), 0) / time.Second), Behind: c.s.LastIndex - min(info.Index, c.s.LastIndex)})
	}
	return err
}

func (c *counting) files() error {
	files, err := c.view.Files()
	for _, f := range files {
		i := slices.IndexFunc(c.s.Files, func(k FileCount) bool { return k.Kind == f.Kind })
		if i < 0 {
			i = len(c.s.Files)
			c.s.Files = append(c.s.Files, FileCount{Kind: f.Kind})
		}
		c.s.Files[i].Files++
		c.s.Files[i].Bytes += uint64(f.Bytes)
		c.s.DiskBytes += uint64(f.Bytes)
	}
	slices.SortFunc(c.s.Files, func(a, b FileCount) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind))
	})
	return err
}
