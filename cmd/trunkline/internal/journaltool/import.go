package journaltool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/store/rows"
)

// Imported is what an import has made.
type Imported struct {
	Dir  string `json:"dir"`
	Mode string `json:"mode"`
	// Lines counts those of the log, State those before them that have no index.
	Lines  uint64  `json:"lines"`
	State  uint64  `json:"state"`
	First  uint64  `json:"first_index"`
	Last   uint64  `json:"last_index"`
	Report *Report `json:"report"`
}

// ImportError is a line that cannot be taken.
type ImportError struct {
	// Line counts from 1.
	Line uint64
	Err  error
}

// Error implements error.
func (e *ImportError) Error() string { return fmt.Sprintf("cannot import line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *ImportError) Unwrap() error { return e.Err }

// rowBatch is how many bytes of rows are put at once.
const rowBatch = 1 << 20

// Import makes a store of what Export wrote, in a directory that is missing or empty and in any
// mode. It takes all or nothing: the store is built inside dir, verified as Verify does, and
// becomes one at the end. A line that does not fit is an *ImportError; what is built is removed
// then, and no server starts on what a crash left. size is that of in, 0 where it is not known.
// Where ctx ends while in has nothing to read, a goroutine stays until it has.
func Import(ctx context.Context, in io.Reader, size uint64, dir string, mode journal.Mode, m Meter) (*Imported, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	im := &importer{ctx: ctx, m: m, size: size, done: Imported{Dir: dir, Mode: mode.String()}}
	r, w := io.Pipe()
	defer r.Close()
	go func() {
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // nil is the end
	}()
	defer context.AfterFunc(ctx, func() { _ = r.CloseWithError(ctx.Err()) })()
	im.lines = lines{in: bufio.NewReaderSize(r, 64<<10), most: maxLine}
	err = embedded.Build(dir, func(place string) error {
		im.place = place
		if err := im.run(mode); err != nil {
			return err
		}
		return im.verify()
	})
	return &im.done, err
}

type importer struct {
	ctx   context.Context
	m     Meter
	size  uint64
	place string
	done  Imported

	lines   lines
	decoder decoder
	line    line
	again   bool // line was read and not taken
	builder *journal.Builder
	db      *rows.DB // nil without rows
	through uint64
	batch   *rows.Batch
	held    int // bytes in batch
}

// run builds the store.
func (im *importer) run(mode journal.Mode) error {
	s, err := embedded.Open(embedded.Config{Dir: im.place, Mode: mode, Bulk: true, SnapshotRate: -1})
	if err != nil {
		return err
	}
	im.builder = journal.NewBuilder(s, 0, mode)
	if im.size > 0 {
		im.m.Begin("import", "bytes", im.size)
	}
	err = im.all()
	if err == nil {
		if im.done.Last, err = im.builder.Close(); err != nil {
			err = im.bad(err)
		}
	}
	if im.db != nil {
		if err == nil {
			err = errors.Join(im.batch.Commit(), im.db.Flush(im.through))
		}
		err = errors.Join(err, im.db.Close())
	}
	if err == nil {
		err = s.Sync()
	}
	return errors.Join(err, s.Close())
}

// bad names the line that was read last.
func (im *importer) bad(err error) error { return &ImportError{Line: im.lines.number, Err: err} }

// next reads a line into im.line; io.EOF after the last one.
func (im *importer) next() error {
	if im.again {
		im.again = false
		return nil
	}
	text, err := im.lines.next()
	if ended := im.ctx.Err(); ended != nil {
		return ended
	}
	if err == io.EOF {
		return err
	}
	if err == nil {
		err = im.decoder.decode(text, &im.line)
	}
	if err != nil {
		return im.bad(err)
	}
	if im.size > 0 {
		im.m.Set(im.lines.read)
	}
	return nil
}

// all takes every line. Only the last one shows that none is missing at the end: a pipe ends in
// order too where its writer died.
func (im *importer) all() error {
	for {
		err := im.next()
		switch {
		case err == io.EOF && im.read() > 0:
			return im.bad(errors.New("the export has no last line, of the kind end: it is cut, or its store was damaged"))
		case err == io.EOF:
			return nil
		case err == nil && im.line.Kind == endKind:
			return im.end()
		case err == nil:
			err = im.take()
		}
		if err != nil {
			return err
		}
	}
}

// read returns how many lines were taken.
func (im *importer) read() uint64 { return im.done.State + im.done.Lines }

// end takes the last line.
func (im *importer) end() error {
	if im.line.Lines != im.read() {
		return im.bad(fmt.Errorf("the export has %d lines, and %d were there", im.line.Lines, im.read()))
	}
	err := im.next()
	if err == nil {
		err = im.bad(errors.New("a line behind the last one"))
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func (im *importer) take() error {
	l := &im.line
	switch l.Kind {
	case snapshotKind, partKind, rowsKind, rowKind:
		if im.done.Lines > 0 {
			return im.bad(fmt.Errorf("its kind %s comes before all lines with an index", l.Kind))
		}
		im.done.State++
		return im.state(l)
	}
	if err := im.builder.Add(&l.Entry); err != nil {
		return im.bad(err)
	}
	if im.done.Lines++; im.done.Lines == 1 {
		im.done.First = l.Entry.Index
	}
	return nil
}

// state takes a line without an index.
func (im *importer) state(l *line) error {
	switch {
	case l.Kind == snapshotKind:
		return im.snapshot(l.Snapshot)
	case l.Kind == partKind:
		return im.bad(errors.New("a part of a snapshot, and none begins before it"))
	case l.Kind == rowsKind && im.db == nil:
		return im.openRows(l)
	case l.Kind == rowsKind, im.db == nil:
		return im.bad(errors.New("rows begin once, and before each row"))
	}
	im.batch.Set(l.Key, l.Value)
	if err := im.batch.Err(); err != nil {
		return im.bad(err)
	}
	if im.held += len(l.Key) + len(l.Value); im.held < rowBatch {
		return nil
	}
	im.held = 0
	return im.batch.Commit()
}

func (im *importer) openRows(l *line) (err error) {
	im.through = l.Through
	im.db, err = rows.Open(rows.Config{Dir: filepath.Join(im.place, embedded.RowsDir), Identity: l.Identity})
	if err == nil {
		im.batch = im.db.NewBatch()
	}
	return err
}

// snapshot takes a snapshot with its parts.
func (im *importer) snapshot(s journal.SnapshotInfo) error {
	got := uint64(0)
	var failed error
	err := im.builder.Snapshot(s, func(w io.Writer) error {
		for {
			if failed = im.next(); failed != nil {
				return failed
			}
			if im.line.Kind != partKind {
				im.again = true
				break
			}
			im.done.State++
			if _, err := w.Write(im.line.Part); err != nil {
				return err
			}
			got += uint64(len(im.line.Part))
		}
		if got != s.Bytes {
			failed = fmt.Errorf("the snapshot before it has %d bytes, want %d", got, s.Bytes)
			return failed
		}
		return nil
	})
	if failed == io.EOF {
		err = errors.New("the export ends in its snapshot")
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.As(err, new(*ImportError)) {
		return err
	}
	return im.bad(err)
}

// verify verifies what was built.
func (im *importer) verify() (err error) {
	if im.done.Report, err = Verify(im.ctx, im.place, im.m); err != nil {
		return err
	}
	if err = im.done.Report.Err(); err != nil {
		return fmt.Errorf("what was built of the export is not sound: %w", err)
	}
	im.done.Report.Dir = im.done.Dir
	return nil
}
