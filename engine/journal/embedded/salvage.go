package embedded

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

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
