package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrThere means that the place for a copy is taken.
var ErrThere = errors.New("it is there already")

// ErrNotEmpty means that a directory for a copy holds something.
var ErrNotEmpty = errors.New("it is not empty")

// Copy copies a journal that is not open to the directory dir, which must not exist: every file
// byte by byte, and synced. So the copy outlives the original, and a damaged one can be kept before
// its recovery. The rows beside it, in "rows", are copied too: a start needs both. The original is
// locked meanwhile and not changed. Logs in "damaged" are not copied.
//
// progress, if not nil, gets the number of bytes copied so far. When ctx ends, or anything fails,
// dir is removed again. The stamp comes last: every opening refuses a copy that a crash left half
// made.
func Copy(ctx context.Context, cfg Config, dir string, progress func(done, total int64)) error {
	return copyOut(ctx, cfg, dir, progress, func(c *copier) error { return c.made(c.fill) })
}

// Restore is Copy to a directory that is missing or empty. An empty one is locked meanwhile, and is
// empty again after an error. journal.ErrLocked and ErrNotEmpty are of dir.
func Restore(ctx context.Context, cfg Config, dir string, progress func(done, total int64)) error {
	return copyOut(ctx, cfg, dir, progress, func(c *copier) error { return c.within(c.fill) })
}

func copyOut(ctx context.Context, cfg Config, dir string, progress func(done, total int64), run func(*copier) error) error {
	h, err := hold(cfg.FS, cfg.Dir)
	if err != nil {
		return err
	}
	c := &copier{target: target{to: h.fs.FS, dest: dir}, meter: meter{ctx: ctx, tell: progress}, holding: h}
	if err = run(c); err != nil {
		err = fmt.Errorf("cannot copy journal %s to %s: %w", h.dir, dir, typed(err))
	}
	return errors.Join(err, h.lock.Close())
}

// LeavesRoom returns an error that is ErrFull where a copy of the journal in dir to dest, which may
// be missing, would fill the disk of a server whose checkpoint dir is: less than MinFreeBytes would
// be left for it. A dest on another disk is not looked at. Disks that are of one size are taken for
// one.
func LeavesRoom(dir, dest string) error { return leavesRoom(disk, dir, dest) }

func leavesRoom(fsys vfs.FS, dir, dest string) error {
	h := holding{fs: readFS{fsys}, dir: dir}
	files, err := h.contents()
	if err != nil {
		return err
	}
	need := uint64(MinFreeBytes)
	for _, f := range files {
		need += uint64(f.Bytes)
	}
	for _, err := fsys.Stat(dest); errors.Is(err, os.ErrNotExist) && dest != fsys.PathDir(dest); _, err = fsys.Stat(dest) {
		dest = fsys.PathDir(dest)
	}
	of, err := fsys.GetDiskUsage(dir)
	to, also := fsys.GetDiskUsage(dest)
	if err != nil || also != nil || of.TotalBytes != to.TotalBytes || to.AvailBytes >= need {
		return nil // what is not known is no reason
	}
	return fmt.Errorf("cannot copy to the disk of a server: it has %d bytes free, and %d are needed for the copy and the server: %w", to.AvailBytes, need, ErrFull)
}

type copier struct {
	holding
	target
	meter
}

// contents lists what a copy has, the stamp aside.
func (h *holding) contents() ([]FileInfo, error) {
	files, err := listFiles(h.fs, h.dir, "", "")
	if err != nil {
		return nil, err
	}
	rows, err := h.listDir(RowsDir, fileRows)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(append(files, rows...), func(f FileInfo) bool { return f.Kind == fileStamp || strings.HasSuffix(f.Name, ".new") }), nil
}

func (c *copier) fill() error {
	files, err := c.contents()
	if err != nil {
		return err
	}
	for _, f := range files {
		c.total += f.Bytes
	}
	for _, f := range files {
		if err := c.file(f.Name); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return c.finish(stampText(c.mode, (&Config{Mode: c.mode}).format()))
}

func (c *copier) file(name string) error {
	in, err := c.fs.Open(c.fs.PathJoin(c.dir, name))
	if err != nil {
		return err
	}
	defer in.Close()
	return c.put(name, c.from(in))
}
