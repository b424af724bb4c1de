package embedded

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
)

// Limits of an archive, for what is read of one that others made.
const (
	// maxArchiveName bounds the name of a file in it.
	maxArchiveName = 255
	// maxArchiveFiles bounds how many files are in it: a store of 8 TB has a million.
	maxArchiveFiles = 1 << 20
)

// Archive writes what Copy would copy to w, as a tar stream whose last file is the stamp: a stream
// that was cut is no journal. It locks the original meanwhile and does not change it.
func Archive(ctx context.Context, cfg Config, w io.Writer, progress func(done, total int64)) error {
	h, err := hold(cfg.FS, cfg.Dir)
	if err != nil {
		return err
	}
	a := archiver{holding: h, meter: meter{ctx: ctx, tell: progress}, out: tar.NewWriter(w)}
	if err = a.run(); err != nil {
		err = fmt.Errorf("cannot archive journal %s: %w", h.dir, typed(err))
	}
	return errors.Join(err, h.lock.Close())
}

type archiver struct {
	holding
	meter
	out *tar.Writer
}

func (a *archiver) run() error {
	files, err := a.contents()
	if err != nil {
		return err
	}
	for _, f := range files {
		a.total += f.Bytes
	}
	for _, f := range files {
		if err := a.file(f); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	stamp := stampText(a.mode, (&Config{Mode: a.mode}).format())
	if err := a.out.WriteHeader(header(stampName, int64(len(stamp)))); err != nil {
		return err
	}
	if _, err := io.WriteString(a.out, stamp); err != nil {
		return err
	}
	return a.out.Close()
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, Format: tar.FormatPAX}
}

func (a *archiver) file(f FileInfo) error {
	in, err := a.fs.Open(a.fs.PathJoin(a.dir, f.Name))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := a.out.WriteHeader(header(f.Name, f.Bytes)); err != nil {
		return err
	}
	_, err = io.Copy(a.out, a.from(in))
	return err
}

// errArchive means that a stream is not one that Archive wrote, or not all of it.
var errArchive = errors.New("it is no whole archive of a store")

// Extract restores what Archive wrote to a directory, as Restore does. progress gets the bytes of
// files; total is size, what is known of it.
func Extract(ctx context.Context, cfg Config, r io.Reader, size int64, progress func(done, total int64)) error {
	fsys, dir := cfg.FS, cfg.Dir
	if fsys == nil {
		fsys = disk
	}
	x := &extractor{target: target{to: fsys, dest: dir}, meter: meter{ctx: ctx, tell: progress, total: size}, in: tar.NewReader(r)}
	if err := x.within(x.fill); err != nil {
		return fmt.Errorf("cannot restore journal %s: %w", dir, typed(err))
	}
	return nil
}

type extractor struct {
	target
	meter
	in *tar.Reader
}

func (x *extractor) fill() error {
	seen := map[string]bool{} // at most maxArchiveFiles
	for {
		h, err := x.in.Next()
		switch {
		case err == io.EOF:
			return fmt.Errorf("%w: it ends before the file %s, which is its last", errArchive, stampName)
		case err != nil:
			return archiveError(err)
		}
		if err := checkHeader(h); err != nil {
			return err
		}
		if seen[h.Name] || len(seen) == maxArchiveFiles {
			return fmt.Errorf("%w: file %d, %q, is one too many", errArchive, len(seen)+1, h.Name)
		}
		seen[h.Name] = true
		if h.Name == stampName {
			return x.stamp()
		}
		if err := x.put(h.Name, x.from(x.in)); err != nil {
			return archiveError(err)
		}
	}
}

// archiveError names what a tar reader returns for a stream that is none, or cut.
func archiveError(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %w", errArchive, err)
	}
	return err
}

// checkHeader refuses what Archive does not write: above all a name that leaves the directory, and
// extensions, by which a short stream can have a long file.
func checkHeader(h *tar.Header) error {
	dir, base, nested := cutDir(h.Name)
	extended := func(key string) bool { return key != "path" && key != "size" }
	ok := h.Typeflag == tar.TypeReg && !slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)), extended) && len(h.Name) <= maxArchiveName && (!nested || dir == RowsDir) &&
		base != "" && base != "." && base != ".." && base != "LOCK" && base != RowsDir && !strings.ContainsAny(base, "/\\\x00")
	if !ok {
		return fmt.Errorf("%w: a file %.80q of type %q", errArchive, h.Name, h.Typeflag)
	}
	return nil
}

// cutDir splits a name at the first slash.
func cutDir(name string) (dir, base string, nested bool) {
	if dir, base, nested = strings.Cut(name, "/"); !nested {
		return "", name, false
	}
	return dir, base, true
}

// stamp checks the stamp and ends the restoring with it.
func (x *extractor) stamp() error {
	text, err := io.ReadAll(io.LimitReader(x.in, maxStampBytes))
	if err != nil {
		return archiveError(err)
	}
	err = compareStamp(stampName, x.dest, string(text), journal.Always)
	if other := (*journal.ErrModeMismatch)(nil); err != nil && !errors.As(err, &other) {
		return err
	}
	switch _, err = x.in.Next(); {
	case err == nil:
		return fmt.Errorf("%w: the file %s is not its last", errArchive, stampName)
	case err != io.EOF:
		return archiveError(err)
	}
	return x.finish(string(text))
}

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
