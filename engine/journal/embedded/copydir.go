package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"trunkline/engine/journal/vdir"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrThere means that the place for a copy is taken.
var ErrThere = errors.New("it is there already")

const copyBuffer = 256 << 10

// Copy copies a journal that is not open to the directory dir, which must not exist: every file
// byte by byte, and synced. So the copy outlives the original, and a damaged one can be kept before
// its recovery. The rows beside it, in "rows", are copied too: a start needs both. The original is
// locked meanwhile and not changed. Logs in "damaged" are not copied.
//
// progress, if not nil, gets the number of bytes copied so far. When ctx ends, or anything fails,
// dir is removed again. The stamp comes last: every opening refuses a copy that a crash left half
// made.
func Copy(ctx context.Context, cfg Config, dir string, progress func(done, total int64)) error {
	h, err := hold(cfg.FS, cfg.Dir)
	if err != nil {
		return err
	}
	c := copier{ctx: ctx, holding: h, to: h.fs.FS, dest: dir, tell: progress}
	if err = c.run(); err != nil {
		err = fmt.Errorf("cannot copy journal %s to %s: %w", h.dir, dir, typed(err))
	}
	return errors.Join(err, h.lock.Close())
}

type copier struct {
	holding
	ctx         context.Context
	to          vfs.FS
	dest        string
	tell        func(done, total int64)
	done, total int64
}

func (c *copier) run() error {
	if _, err := c.to.Stat(c.dest); err == nil {
		return ErrThere
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	files, err := listFiles(c.fs, c.dir, "", "")
	if err != nil {
		return err
	}
	rows, err := c.listDir(RowsDir, fileRows)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(append(files, rows...), func(f FileInfo) bool { return f.Kind == fileStamp || strings.HasSuffix(f.Name, ".new") })
	for _, f := range files {
		c.total += f.Bytes
	}
	dirs := []string{c.dest}
	if len(rows) > 0 {
		dirs = append(dirs, c.to.PathJoin(c.dest, RowsDir))
	}
	for _, dir := range dirs {
		if err := vdir.Make(c.to, dir); err != nil {
			return err
		}
	}
	if err := c.fill(files, dirs); err != nil {
		return errors.Join(err, c.to.RemoveAll(c.dest))
	}
	return nil
}

func (c *copier) fill(files []FileInfo, dirs []string) error {
	buf := make([]byte, copyBuffer)
	for _, f := range files {
		if err := c.file(f.Name, buf); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	for _, dir := range dirs {
		// A copy has its lock from the beginning, so that a start that refuses it makes nothing.
		if err := vdir.Replace(c.to, dir, "LOCK", ""); err != nil {
			return err
		}
	}
	return writeStamp(c.to, c.dest, c.mode)
}

func (c *copier) file(name string, buf []byte) error {
	in, err := c.fs.Open(c.fs.PathJoin(c.dir, name))
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.Create(c.to.PathJoin(c.dest, name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err = c.bytes(out, in, buf); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

func (c *copier) bytes(out io.Writer, in io.Reader, buf []byte) error {
	for {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		n, err := in.Read(buf)
		if n > 0 {
			if _, err := out.Write(buf[:n]); err != nil {
				return err
			}
			if c.done += int64(n); c.tell != nil {
				c.tell(c.done, c.total)
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}
