package journaltool

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"trunkline/codec/jsonx"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/store/rows"
)

// Kinds of lines without an index: what records left that the log does not hold any more, and the
// end.
const (
	snapshotKind = "snapshot"      // its meta
	partKind     = "snapshot.part" // its content, in order
	rowsKind     = "rows"          // what the rows of agent threads are
	rowKind      = "row"           // one of them
	endKind      = "end"           // the last line, which counts those before it
)

// partBytes is how much of a snapshot is in one line.
const partBytes = 192 << 10

// state writes what records before the log left, where it does not begin at its first index: the
// newest snapshot that a start would use, and the rows of agent threads. They come before the lines
// of the log.
func (x *export) state(ctx context.Context, j *Journal) error {
	first := journal.Index(0)
	err := j.in.Blocks(0, func(b *journal.BlockView) error {
		first = b.First
		return errPast
	}, func(journal.Damage) error { return nil })
	if err != nil && err != errPast || first <= 1 {
		if err == errPast {
			err = nil
		}
		return err
	}
	infos, err := j.in.Snapshots()
	if err != nil && !isDamage(err) {
		return err
	}
	for i := len(infos) - 1; i >= 0; i-- {
		if s := &infos[i]; s.Err == nil && s.Index+1 >= first {
			return x.keep(x.snapshot(ctx, j, s), x.rows(ctx, j))
		}
	}
	x.note(fmt.Errorf("the log begins at index %d, and no snapshot has what was before", first))
	return nil
}

// keep notes damage and returns the first other error.
func (x *export) keep(errs ...error) error {
	for _, err := range errs {
		switch {
		case isDamage(err):
			x.note(err)
		case err != nil:
			return err
		}
	}
	return nil
}

func (x *export) snapshot(ctx context.Context, j *Journal, s *journal.SnapshotInfo) error {
	x.m.Begin("snapshot", "bytes", s.Bytes)
	if err := x.put(appendSnapshot(jsonx.Build(x.line[:0]), s)); err != nil {
		return err
	}
	return j.in.ReadSnapshot(s, func(r io.Reader) error {
		part, done := make([]byte, partBytes), uint64(0)
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := io.ReadFull(r, part)
			if n > 0 {
				if err := x.put(appendPart(jsonx.Build(x.line[:0]), part[:n])); err != nil {
					return err
				}
				done += uint64(n)
				x.m.Set(done)
			}
			switch {
			case err == io.EOF, err == io.ErrUnexpectedEOF:
				return nil
			case err != nil:
				return err
			}
		}
	})
}

// rows writes the rows of agent threads, if there are any.
func (x *export) rows(ctx context.Context, j *Journal) error {
	dir := filepath.Join(j.view.Dir(), embedded.RowsDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	db, err := rows.Open(rows.Config{Dir: dir})
	if err != nil {
		return err
	}
	err = x.put(appendRows(jsonx.Build(x.line[:0]), db.Identity(), db.Through()))
	if err == nil {
		var failed error
		err = db.Scan(nil, nil, false, func(key, value []byte) bool {
			if failed = ctx.Err(); failed == nil {
				failed = x.put(appendRow(jsonx.Build(x.line[:0]), key, value))
			}
			return failed == nil
		})
		err = errors.Join(err, failed)
	}
	return errors.Join(err, db.Close())
}

// put writes a line without an index.
func (x *export) put(o jsonx.Builder) error {
	x.done.State++
	return x.write(o)
}

func appendSnapshot(o jsonx.Builder, s *journal.SnapshotInfo) jsonx.Builder {
	o = appendUint(appendUint(o.Text("kind", snapshotKind), "index", s.Index), "through", s.Through)
	o = appendTime(appendUint(o, "epoch", s.Epoch), "time", moment(s.Time))
	return appendUint(o, "bytes", s.Bytes)
}

func appendPart(o jsonx.Builder, part []byte) jsonx.Builder {
	return appendBase64(o.Text("kind", partKind), "base64", part)
}

func appendRows(o jsonx.Builder, identity [16]byte, through uint64) jsonx.Builder {
	return appendUint(o.Text("kind", rowsKind).Text("identity", hex.EncodeToString(identity[:])), "through", through)
}

func appendRow(o jsonx.Builder, key, value []byte) jsonx.Builder {
	return appendBase64(appendBase64(o.Text("kind", rowKind), "key", key), "value", value)
}

func appendEnd(o jsonx.Builder, lines uint64) jsonx.Builder {
	return appendUint(o.Text("kind", endKind), "lines", lines)
}

// decodeBase64 appends what the text of a member stands for.
func decodeBase64(dst, text []byte) ([]byte, error) {
	out, err := base64.StdEncoding.Strict().AppendDecode(dst, text)
	if err != nil {
		return dst, fmt.Errorf("it is no base64: %w", err)
	}
	return out, nil
}
