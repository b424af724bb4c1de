package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/vdir"
)

// target is a directory that becomes a journal when its stamp is written, which comes last.
type target struct {
	to     vfs.FS
	dest   string
	locked bool // by us, with its own LOCK
	rows   bool // the directory of rows was made
}

// made fills a directory that must not exist, and removes it where that fails.
func (d *target) made(fill func() error) error {
	if _, err := d.to.Stat(d.dest); err == nil {
		return ErrThere
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := vdir.Make(d.to, d.dest); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return errors.Join(err, d.to.RemoveAll(d.dest))
	}
	return nil
}

// within fills a directory that is missing, which toNew does, or empty.
func (d *target) within(toNew, fill func() error) error {
	there, err := d.vacant()
	if err != nil {
		return err
	}
	if !there {
		return toNew()
	}
	lock, err := lockDir(d.to, d.dest) // a server that starts meanwhile is refused
	if err != nil {
		return err
	}
	d.locked = true
	if _, err = d.vacant(); err == nil { // still
		if err = fill(); err != nil {
			err = errors.Join(err, d.clear())
		}
	}
	return errors.Join(err, lock.Close())
}

// Vacant returns nil where dir is missing or empty: a lock file that no process holds is nothing.
// Else it returns ErrNotEmpty, and with it journal.ErrLocked where a journal in it is in use.
func Vacant(dir string) error {
	d := target{to: disk, dest: dir}
	if _, err := d.vacant(); err != nil {
		return fmt.Errorf("cannot write %s: %w", dir, err)
	}
	return nil
}

// vacant reports whether the directory is there, and returns an error where it is not empty.
func (d *target) vacant() (there bool, err error) {
	names, err := d.to.List(d.dest)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if name == "LOCK" {
			continue
		}
		err = fmt.Errorf("%w (%s)", ErrNotEmpty, name)
		if h, failed := hold(d.to, d.dest); errors.Is(failed, journal.ErrLocked) {
			return true, errors.Join(err, failed)
		} else if failed == nil {
			return true, errors.Join(err, h.lock.Close())
		}
		return true, err
	}
	return true, nil
}

// clear removes what was made in a directory that was empty.
func (d *target) clear() error {
	names, err := d.to.List(d.dest)
	for _, name := range names {
		err = errors.Join(err, d.to.RemoveAll(d.to.PathJoin(d.dest, name)))
	}
	return err
}

// put makes a file, synced. Its name may begin with that of the directory of rows.
func (d *target) put(name string, in io.Reader) error {
	if dir, _, nested := cutDir(name); nested && !d.rows {
		if err := vdir.Make(d.to, d.to.PathJoin(d.dest, dir)); err != nil {
			return err
		}
		d.rows = true
	}
	out, err := d.to.Create(d.to.PathJoin(d.dest, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = io.Copy(struct{ io.Writer }{out}, in); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// finish makes the directory a journal. A copy has its locks from the beginning, so that a start
// that refuses it makes nothing.
func (d *target) finish(stamp string) error {
	if d.rows {
		if err := vdir.Replace(d.to, d.to.PathJoin(d.dest, RowsDir), "LOCK", ""); err != nil {
			return err
		}
	}
	if !d.locked {
		if err := vdir.Replace(d.to, d.dest, "LOCK", ""); err != nil {
			return err
		}
	}
	return vdir.Replace(d.to, d.dest, stampName, stamp)
}

// meter counts what is copied, and ends with its context.
type meter struct {
	ctx         context.Context
	tell        func(done, total int64) // may be nil
	done, total int64
}

// from returns a reader of what in has.
func (m *meter) from(in io.Reader) io.Reader { return &metered{m: m, in: in} }

type metered struct {
	m  *meter
	in io.Reader
}

// Read implements io.Reader.
func (r *metered) Read(b []byte) (int, error) {
	if err := r.m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.in.Read(b)
	if n > 0 {
		if r.m.done += int64(n); r.m.tell != nil {
			r.m.tell(r.m.done, r.m.total)
		}
	}
	return n, err
}
