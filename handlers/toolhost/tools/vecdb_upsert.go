package tools

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// vecdbUpsert is AID.VECDB.UPSERT.v1: it adds the embedding of a text to a store (toolhost §4.7). A text has no key, so nothing is
// ever replaced.
func vecdbUpsert(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:         "AID.VECDB.UPSERT.v1",
		Name:        "vectordb_upsert",
		Tags:        []string{"tag.vectordb", "tag.memory", "tag.fs"},
		SideEffects: []string{"filesystem_write"},
	}, func(ctx context.Context, c *tool.Call) tool.Result {
		a := pick(c.Input, "stream", "text", "meta")
		text, _ := a.text("text")
		if text == "" {
			return tool.Fail("missing text")
		}
		var meta []byte
		if v := a.value("meta"); v.Kind == jsonx.ObjectStart {
			meta = jsonx.Compact(bytes.Clone(v.Raw))
		}
		if len(text)+len(meta) > maxContent {
			return tool.Fail(contentTooLarge)
		}
		stream, ok := vecdbStream(a.value("stream"))
		if !ok {
			return tool.Fail(invalidStream)
		}
		d, err := vecdbDir(e, stream, true)
		if err != nil {
			return tool.Fail(openFailed)
		}
		defer d.close()
		s := vecdbWriter{dir: d, newDim: e.VecDim, sync: e.WALFsync}
		if err = s.add(ctx, vecdbRow{text: text, meta: meta, ts: c.Now().UnixMilli()}); err != nil {
			return failed(ctx, vecdbError(err))
		}
		return tool.Result{Output: append(jsonx.AppendString([]byte(`{"ok":true,"stream":`), stream), '}')}
	})
}

// vecdbRow is what is stored of one text.
type vecdbRow struct {
	text string
	meta []byte // an object, compact; nil for none
	ts   int64  // Unix milliseconds
}

// vecdbWriter adds rows to the store in dir.
type vecdbWriter struct {
	dir    *dir
	newDim int // the length of the vectors, if the store is new
	sync   bool
}

// add writes row behind the others, with the lock of the store held.
func (w *vecdbWriter) add(ctx context.Context, row vecdbRow) error {
	f, err := openLocked(ctx, w.dir, embeddingsFile)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := sizeOf(f)
	if err != nil {
		return err
	}
	dim, err := w.schema(size == 0)
	if err != nil {
		return err
	}
	rows := size / int64(floatBytes*dim)
	if whole := rows * int64(floatBytes*dim); whole != size {
		if err = f.Truncate(whole); err != nil {
			return err
		}
		size = whole
	}
	if err = w.addMeta(ctx, metaLine(rows, row), rows); err != nil {
		return err
	}
	if err = appendWhole(f, size, rowBytes(row.text, dim), w.sync); err == nil && w.sync && rows == 0 {
		err = w.dir.sync()
	}
	return err
}

// schema returns the length of the vectors, and decides on it if there are no vectors yet.
func (w *vecdbWriter) schema(isNew bool) (dim int, err error) {
	dim, err = readSchema(w.dir)
	if err == errMissingSchema && isNew {
		return w.newDim, writeSchema(w.dir, w.newDim, w.sync)
	}
	return dim, err
}

// addMeta appends line, which belongs to row number rows, to the lines of the rows there are.
func (w *vecdbWriter) addMeta(ctx context.Context, line []byte, rows int64) error {
	f, err := w.dir.open(metaFile, os.O_RDWR|os.O_APPEND|os.O_CREATE, filePerm)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := sizeOf(f)
	if err != nil {
		return err
	}
	whole, err := metaEnd(&untilDoneAt{ctx: ctx, from: f}, size, rows)
	if err != nil {
		return err
	}
	if whole != size {
		if err = f.Truncate(whole); err != nil {
			return err
		}
	}
	return appendLine(f, whole, line, w.sync)
}

// metaEnd returns where the lines of the rows end in f. Behind it is what a killed writer left: one line at most, in part or without
// its row. More lines without rows are none of its making and stay.
func metaEnd(f io.ReaderAt, size, rows int64) (end int64, err error) {
	lines, err := newTail(f, size, size)
	if err != nil {
		return 0, err
	}
	line, ok, err := lines.Next()
	if !ok || err != nil {
		return size, err
	}
	if i := metaRow(line); i < 0 && lines.torn || i >= rows {
		return lines.at, nil
	}
	return size, nil
}

// metaRow returns the number of the row that line belongs to, -1 if it does not say.
func metaRow(line []byte) int64 {
	if !jsonx.Check(line, jsonx.MaxDepth).OK() {
		return -1
	}
	return pick(line, "i").integer("i", -1)
}

// metaLine returns the line of row number i, "\n" included.
func metaLine(i int64, row vecdbRow) []byte {
	line := make([]byte, 0, len(row.meta)+len(row.text)+96)
	line = strconv.AppendInt(append(line, `{"i":`...), i, 10)
	line = strconv.AppendInt(append(line, `,"ts_ms":`...), row.ts, 10)
	line = append(line, `,"provider":"hash"`...)
	if len(row.meta) > 0 {
		line = append(append(line, `,"meta":`...), row.meta...)
	}
	line = jsonx.AppendString(append(line, `,"text":`...), row.text)
	return append(line, '}', '\n')
}

// rowBytes returns the row of text as it is on disk.
func rowBytes(text string, dim int) []byte {
	row := make([]byte, 0, floatBytes*dim)
	for _, x := range embedding(text, dim) {
		row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
	}
	return row
}
