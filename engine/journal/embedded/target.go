package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// target is a directory that becomes a journal when its stamp is written, which comes last.
type target struct {
	to   vfs.FS
	dest string
	rows bool // the directory of rows was made
}

// made fills a directory that must not exist, and removes it where that fails.
func (d *target) made(fill func() error) error {
	if _, err := d.to.Stat(d.dest); err == nil {
		return ErrThere
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := pebbledir.Make(d.to, d.dest); err != nil {
		return err
	}
	err := d.locked(fill)
	if err != nil {
		_ = d.to.Remove(d.dest) // it stays where another process was faster, which fills it
	}
	if errors.Is(err, journal.ErrLocked) || errors.Is(err, ErrNotEmpty) {
		return fmt.Errorf("%w: %v", ErrThere, err)
	}
	return err
}

// within fills a directory that is missing or empty. One that was empty is so again after an error.
func (d *target) within(fill func() error) error {
	there, err := d.vacant()
	if err != nil {
		return err
	}
	if !there {
		return d.made(fill)
	}
	return d.locked(fill)
}

// locked fills an empty directory and empties it where that fails. The lock keeps out a server that
// starts meanwhile, and whatever else fills it.
func (d *target) locked(fill func() error) error {
	lock, err := lockDir(d.to, d.dest)
	if err != nil {
		return err
	}
	if _, err = d.vacant(); err == nil { // still
		if err = fill(); err != nil {
			err = errors.Join(err, d.clear())
		}
	}
	return errors.Join(err, lock.Close())
}

// buildingDir is where Build has a journal built, in the directory that it is for.
const buildingDir = "building"

// Build has build make a journal in a directory that it is given, sync it and close it, and moves
// the files to dir, which must be missing or empty, and is so again after an error. dir is locked
// meanwhile, and every opening refuses what a crash leaves in it. It returns the error of build as
// it is; journal.ErrLocked and ErrNotEmpty are of dir.
func Build(dir string, build func(dir string) error) error {
	d := target{to: disk, dest: dir}
	var failed error
	err := d.within(func() error {
		at := d.to.PathJoin(dir, buildingDir)
		if failed = build(at); failed != nil {
			return failed
		}
		return d.adopt(at)
	})
	if err != nil && failed == nil {
		err = fmt.Errorf("cannot write %s: %w", dir, typed(err))
	}
	return err
}

// adopt moves a journal to the directory, its stamp last.
func (d *target) adopt(from string) error {
	names, err := d.to.List(from)
	if err != nil {
		return err
	}
	move := func(name string) error { return d.to.Rename(d.to.PathJoin(from, name), d.to.PathJoin(d.dest, name)) }
	for _, name := range names {
		if name == "LOCK" || name == stampName {
			continue
		}
		if err := move(name); err != nil {
			return err
		}
	}
	if err := pebbledir.Sync(d.to, d.dest); err != nil {
		return err
	}
	if err := move(stampName); err != nil {
		return err
	}
	return errors.Join(pebbledir.Sync(d.to, d.dest), d.to.RemoveAll(from))
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
			return true, fmt.Errorf("%w, and %w", err, failed)
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
		if err := pebbledir.Make(d.to, d.to.PathJoin(d.dest, dir)); err != nil {
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

// finish makes the directory a journal. The rows have their lock from the beginning, as the
// directory has, so that a start that refuses a copy makes nothing.
func (d *target) finish(stamp string) error {
	if d.rows {
		if err := pebbledir.Replace(d.to, d.to.PathJoin(d.dest, RowsDir), "LOCK", ""); err != nil {
			return err
		}
	}
	return pebbledir.Replace(d.to, d.dest, stampName, stamp)
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
