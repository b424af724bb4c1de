package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// earlyMetas are the metas of snapshots of earlier versions: all in one place, so that damage of it
// hid all of them. The first change puts each one behind the chunks of its snapshot.
type earlyMetas struct {
	there bool // something is in that place
	metas map[uint64][]byte
	err   error // the damage because of which none can be read
}

// readEarlyMetas reads them. Where one cannot be read none is taken: the deletion of others may be
// in the damaged part.
func (s *Store) readEarlyMetas() (err error) {
	s.early = earlyMetas{}
	if s.early.there, err = s.holdsEarlyMetas(); err != nil || !s.early.there {
		return err
	}
	metas, err := s.earlyMetas()
	if damage := (*journal.DamageError)(nil); errors.As(err, &damage) {
		s.early.err = err
		return nil
	}
	s.early.metas = metas
	return err
}

// holdsEarlyMetas reports whether a file, or the log that is not sorted, has anything there.
func (s *Store) holdsEarlyMetas() (bool, error) {
	tables, err := s.tables()
	if err != nil {
		return false, err
	}
	for i := range tables {
		if s.ofKind(kindMeta, tables[i].Smallest.UserKey) {
			return true, nil
		}
	}
	metas, err := s.earlyMetas()
	return len(metas) > 0, err
}

func (s *Store) earlyMetas() (metas map[uint64][]byte, err error) {
	defer s.sober(new(bool), &err)
	lower, upper := keyRange(kindMeta, s.cfg.Partition)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	metas = map[uint64][]byte{}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var value []byte
		value, err = it.ValueAndErr()
		metas[keyNumber(it.Key())] = append([]byte(nil), value...)
	}
	if err = errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, s.readError("the generations", 0, err)
	}
	return metas, nil
}

// toMend returns what the first change takes out of the database: damaged snapshots, and the metas
// of earlier versions. The directory is still open for reading only. A file that also holds other
// keys would be read for it: where that is damaged, so is the journal.
func (s *Store) toMend() (out []pebble.KeyRange, err error) {
	list, err := s.ListSnapshots()
	if err != nil {
		return nil, err
	}
	add := func(r pebble.KeyRange, damage error) {
		out = append(out, r)
		if damage != nil && err == nil && !s.apart(r) {
			err = damage
		}
	}
	for _, g := range list {
		if g.Err != nil {
			add(s.whole(g.Number), g.Err)
		}
	}
	if s.early.there {
		lower, upper := keyRange(kindMeta, s.cfg.Partition)
		add(pebble.KeyRange{Start: lower, End: upper}, s.early.err)
	}
	return out, err
}

// apart reports whether each SSTable with keys in a range has no other keys.
func (s *Store) apart(r pebble.KeyRange) bool {
	return !slices.ContainsFunc(s.seen, func(t pebble.SSTableInfo) bool {
		from, to := t.Smallest.UserKey, t.Largest.UserKey
		return bytes.Compare(from, r.End) < 0 && bytes.Compare(to, r.Start) >= 0 && (bytes.Compare(from, r.Start) < 0 || bytes.Compare(to, r.End) > 0)
	})
}

// mend takes ranges out of the database, in an opening of its own in which nothing is merged.
// Damage there is not read: each range covers the files that it meets. Files that are known to be
// exchanged are removed first: pebble reads each file for its statistics, and panics at keys
// outside its bounds.
func (s *Store) mend(out []pebble.KeyRange) (err error) {
	for _, path := range s.bad {
		if err := s.cfg.FS.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	o := s.options()
	o.DisableAutomaticCompactions, o.DisableConsistencyCheck = true, true
	failed := o.EventListener.BackgroundError
	o.EventListener.BackgroundError = func(err error) {
		if !pebble.IsCorruptionError(err) && !errors.Is(err, os.ErrNotExist) { // of what is taken out
			failed(err)
		}
	}
	if s.db, err = s.openDB(o); err != nil {
		return err
	}
	err = s.moveEarlyMetas()
	for i := 0; i < len(out) && err == nil; i++ {
		if err = s.db.Excise(context.Background(), out[i]); err == nil {
			err = s.err()
		}
	}
	err = errors.Join(err, s.closeDB(s.db))
	s.db, s.lost, s.bad, s.early = nil, nil, nil, earlyMetas{}
	return typed(err)
}

// moveEarlyMetas puts the metas of earlier versions behind the chunks of their snapshots, on the
// disk.
func (s *Store) moveEarlyMetas() error {
	if len(s.early.metas) == 0 {
		return nil
	}
	b := s.db.NewBatch()
	defer b.Close()
	for g, value := range s.early.metas {
		if err := b.Set(appendChunkKey(nil, s.cfg.Partition, g, metaSeq), value, nil); err != nil {
			return err
		}
	}
	if err := s.commit(b, pebble.Sync); err != nil {
		return err
	}
	return s.flush()
}

// asideDir takes the log files that an operator dropped, so that they can be read again later.
const asideDir = "damaged"

// tornAt finds the log file that did not replay, and the start of its first bad record. Pebble has
// it in the details of its error only.
var tornAt = regexp.MustCompile(`replaying wal (\d+), offset \((.*): (\d+)\)`)

// logDamage is where a log stops being good.
type logDamage struct {
	name   string // of the file in the directory
	offset int64
}

func findLogDamage(err error) (d logDamage, ok bool) {
	m := tornAt.FindStringSubmatch(fmt.Sprintf("%+v", err))
	if m == nil {
		return d, false
	}
	d.name = fmt.Sprintf("%06s.log", m[1])
	d.offset, err = strconv.ParseInt(m[3], 10, 64)
	return d, err == nil
}

// lookBefore opens for reading what is before the damage of a log that does not replay, so that the
// refusal names the index. With AcceptLoss that is the journal, and the log is cut there before the
// first change.
func (s *Store) lookBefore(fsys vfs.FS, refused error) error {
	at, last, err := s.showBefore(fsys, refused)
	if err != nil {
		return err
	}
	damage := (*journal.DamageError)(nil)
	errors.As(refused, &damage)
	damage.Index = last + 1
	if !s.cfg.AcceptLoss {
		return damage
	}
	s.cut = &at
	s.log.Warn("journal opens with a loss that was accepted", "err", damage, "kept_in", s.cfg.FS.PathJoin(s.cfg.Dir, asideDir))
	return nil
}

// showBefore opens for reading what is before a damaged place of the log, if that was the cause of
// the refusal, and returns the place and the last index before it.
func (s *Store) showBefore(fsys vfs.FS, refused error) (at logDamage, last journal.Index, err error) {
	var damage *journal.DamageError
	if !errors.As(refused, &damage) {
		return at, 0, refused
	}
	at, ok := findLogDamage(damage.Err)
	if !ok {
		return at, 0, refused
	}
	if err = s.openForReading(cutFS{FS: fsys, dir: s.cfg.Dir, logDamage: at}); err != nil {
		return at, 0, refused
	}
	if _, last, err = s.lastBlock(s.db, maxIndex); err != nil {
		return at, 0, refused
	}
	return at, last, nil
}

// setAside moves the damaged log and those after it away, and puts the good beginning in its place.
// The later ones go first: after a crash in between the directory is still refused for the same
// damage.
func (s *Store) setAside(at logDamage) error {
	fs, dir := s.cfg.FS, s.cfg.Dir
	aside := fs.PathJoin(dir, asideDir)
	names, err := fs.List(dir)
	if err == nil {
		err = fs.MkdirAll(aside, 0o700)
	}
	for _, name := range names {
		if err == nil && isLater(name, at.name) {
			err = fs.Rename(fs.PathJoin(dir, name), fs.PathJoin(aside, name))
		}
	}
	if err == nil {
		err = cutFile(fs, dir, aside, at)
	}
	if err == nil {
		err = errors.Join(pebbledir.Sync(fs, aside), pebbledir.Sync(fs, dir))
	}
	if err != nil {
		return fmt.Errorf("cannot set aside the damaged log %s: %w", at.name, typed(err))
	}
	return nil
}

func cutFile(fs vfs.FS, dir, aside string, at logDamage) error {
	path := fs.PathJoin(dir, at.name)
	if err := vfs.Copy(fs, path, fs.PathJoin(aside, at.name)); err != nil {
		return err
	}
	in, err := fs.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.CopyN(out, in, at.offset)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return fs.Rename(path+".new", path)
}

// isLater reports whether name is a log after the log named than.
func isLater(name, than string) bool {
	return len(name) >= len(than) && name[len(name)-4:] == ".log" && (len(name) > len(than) || name > than)
}

// cutFS shows a directory as it were if its log ended at the damage.
type cutFS struct {
	vfs.FS
	dir string
	logDamage
}

// Open implements vfs.FS.
func (c cutFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil || name != c.PathJoin(c.dir, c.name) {
		return f, err
	}
	return &shortFile{File: f, r: io.LimitReader(f, c.offset)}, nil
}

// List implements vfs.FS.
func (c cutFS) List(dir string) ([]string, error) {
	all, err := c.FS.List(dir)
	kept := all[:0]
	for _, name := range all {
		if !isLater(name, c.name) {
			kept = append(kept, name)
		}
	}
	return kept, err
}

type shortFile struct {
	vfs.File
	r io.Reader
}

// Read implements vfs.File.
func (f *shortFile) Read(p []byte) (int, error) { return f.r.Read(p) }
