package journaltool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
)

// Verify reads all of the journal in dir and checks it as a server would that starts on it, and
// beyond: every block and how it follows from the one before it, every record, every snapshot.
// Damage is no error of Verify: it is in the Report.
func Verify(ctx context.Context, dir string, m Meter) (*Report, error) {
	r := &Report{Dir: dir, Snapshots: []Snapshot{}, LostMarks: []string{}, Damages: []Damage{}}
	j, err := open(dir)
	var damage *journal.DamageError
	if errors.As(err, &damage) {
		r.refuse(damage)
		r.setVerdict(false)
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	v := verification{Journal: j, ctx: ctx, m: m, r: r}
	err = v.run()
	return r, errors.Join(err, j.Close())
}

type verification struct {
	*Journal
	ctx    context.Context
	m      Meter
	r      *Report
	record record
	infos  []journal.SnapshotInfo

	identity [16]byte // of the rows that the newest good snapshot belongs to
	mark     uint64   // up to which it needs them
}

func (v *verification) run() error {
	r := v.r
	r.Dir, r.Mode = v.view.Dir(), v.view.Mode().String()
	marked, closed, _ := v.view.Marked()
	r.Closed = closed
	r.LostMarks = append(r.LostMarks, v.view.LostMarks()...)
	if file, at := v.view.Torn(); file != "" {
		r.Torn = &Place{File: file, Offset: at}
	}
	if err := v.log(); err != nil {
		return err
	}
	if damage := v.view.Damage(); damage != nil {
		damage.Index = r.LastIndex + 1 // the store knows where the last block begins, not where it ends
		r.refuse(damage)
	}
	r.highest = max(r.LastIndex, v.last, marked)
	if err := v.snapshots(); err != nil {
		return err
	}
	if err := v.rows(); err != nil {
		return err
	}
	r.setVerdict(v.view.Damage() == nil || v.view.Mendable())
	return nil
}

// rows verifies the rows of agent threads, if there are any.
func (v *verification) rows() error {
	dir := filepath.Join(v.view.Dir(), embedded.RowsDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && v.identity == [16]byte{} {
		return nil
	}
	damaged := func(err error) { v.damaged(dir, 0, err); v.r.rows = true }
	db, err := rows.Open(rows.Config{Dir: dir})
	if err == nil {
		if err = db.Check(v.identity, v.mark, math.MaxUint64); err == nil {
			v.r.Rows, err = threadstore.CheckRows(threadstore.StoredRows(db), damaged)
		}
		err = errors.Join(err, db.Close())
	}
	if isDamage(err) {
		damaged(err)
		return nil
	}
	return err
}

// log verifies the blocks and what is in them.
func (v *verification) log() (err error) {
	if v.infos, err = v.in.Snapshots(); err != nil && !isDamage(err) {
		return err
	}
	if err != nil {
		v.damaged("snapshots", 0, err)
	}
	if err = v.walk(v.ctx, v.m, 0, v.block, v.lost); err != nil {
		return err
	}
	return v.resume()
}

// resume looks whether what a damaged file hides ends before the newest snapshot does: a start
// reads only what is behind that.
func (v *verification) resume() error {
	r := v.r
	newest := len(v.infos) - 1
	for newest >= 0 && v.infos[newest].Passed {
		newest--
	}
	if len(r.Damages) == 0 || newest < 0 {
		return nil
	}
	d, s := &r.Damages[len(r.Damages)-1], v.infos[newest]
	if d.snapshot || d.Until != 0 || s.Err != nil || s.Index < d.Index || r.DamageCount > maxDamages {
		return nil
	}
	return v.walk(v.ctx, v.m, s.Index+1, func(b *journal.BlockView) error {
		if b.Last < d.Index {
			return nil // it was seen before
		}
		if d.Until == 0 {
			d.Until = max(b.First, d.Index)
		}
		return v.block(b)
	}, func(again journal.Damage) error {
		if d.Until == 0 { // it is the same one
			return nil
		}
		return v.lost(again)
	})
}

func (v *verification) block(b *journal.BlockView) error {
	v.r.add(b)
	return b.Records(0, func(i journal.Index, rec []byte) error {
		if err := parseRecord(rec, &v.record); err != nil {
			v.r.damaged(Damage{Where: fmt.Sprintf("record %d", i), Index: i, Until: i + 1, Error: words(err), cut: b.First - 1})
		}
		return nil
	})
}

func (v *verification) lost(d journal.Damage) error {
	v.r.damaged(Damage{Where: d.Where, Index: d.Index, Until: d.Until, Error: words(d.Err), cut: d.Index - 1})
	return nil
}

// snapshots verifies every generation.
func (v *verification) snapshots() error {
	total, done := uint64(0), uint64(0)
	for i := range v.infos {
		total += v.infos[i].Bytes
	}
	if total > 0 {
		v.m.Begin("snapshots", "bytes", total)
	}
	for i := range v.infos {
		if err := v.snapshot(&v.infos[i], done); err != nil {
			return err
		}
		done += v.infos[i].Bytes
	}
	return nil
}

func (v *verification) snapshot(info *journal.SnapshotInfo, done uint64) (err error) {
	r, s := v.r, snapshotOf(info)
	switch {
	case info.Err != nil && !info.Passed:
		err, s.unlisted = info.Err, true
	case info.Through > r.LastIndex:
		err, s.unlisted = fmt.Errorf("it holds records up to %d, which the log does not", info.Through), true
	case info.Passed:
		err, s.passed = info.Err, true
	case r.begins() > info.Index+1:
		err = fmt.Errorf("the log behind it is gone: it begins at %d", r.begins())
	default:
		err = v.in.ReadSnapshot(info, func(from io.Reader) (err error) {
			s.Records, err = store.CheckSnapshot(&watched{r: from, ctx: v.ctx, m: v.m, done: done}, machineTags, v.fits)
			return err
		})
	}
	if v.ctx.Err() != nil {
		return v.ctx.Err()
	}
	if err != nil {
		s.Error = words(err)
		v.damaged(fmt.Sprintf("snapshot generation %d", info.Number), info.Index, err)
	}
	r.highest = max(r.highest, info.Through)
	r.Snapshots = append(r.Snapshots, s)
	return nil
}

// fits looks which rows a snapshot belongs to.
func (v *verification) fits(tag byte, rec []byte) {
	if tag == threadstore.Tag {
		if identity, mark, ok := threadstore.RowsOf(rec); ok {
			v.identity, v.mark = identity, mark
		}
	}
}

// damaged adds an error of a snapshot, or of rows.
func (v *verification) damaged(where string, index journal.Index, err error) {
	var damage *journal.DamageError
	if errors.As(err, &damage) && damage.Where != "" {
		where = damage.Where
	}
	v.r.damaged(Damage{Where: where, Index: index, Error: words(err), snapshot: true})
}

func isDamage(err error) bool {
	var damage *journal.DamageError
	return errors.As(err, &damage)
}

// words are the first line of an error, without the place if it is a DamageError. What follows are
// details of the library.
func words(err error) string {
	var damage *journal.DamageError
	if errors.As(err, &damage) {
		err = damage.Err
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// watched is a reader that ends with its context and reports its progress.
type watched struct {
	r    io.Reader
	ctx  context.Context
	m    Meter
	done uint64
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	w.done += uint64(n)
	w.m.Set(w.done)
	return n, err
}
