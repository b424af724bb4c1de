package builtin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// vecdbUpsert adds a text's embedding to a store. A text has no key, nothing is replaced.
func vecdbUpsert(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	a := pick(c.Input, "stream", "text", "meta")
	text, _ := a.text("text")
	if text == "" {
		return nil, errMissingText
	}
	var meta []byte
	if v := a.value("meta"); v.Kind == jsonx.ObjectStart {
		meta = jsonx.Compact(bytes.Clone(v.Raw))
	}
	if len(text)+len(meta) > maxWrite {
		return nil, errContentTooLarge
	}
	stream, ok := streamName(a.value("stream"), vecdbSpecial)
	if !ok {
		return nil, errInvalidStream
	}
	w, err := newVecdbWriter(ctx, e, stream, vecdbRow{text: text, meta: meta, ts: c.Now().UnixMilli()})
	if err == nil {
		defer w.dir.close()
		err = w.add(ctx)
	}
	if err != nil {
		return nil, vecdbError(err)
	}
	return jsonx.Build(nil).Bool("ok", true).Text("stream", stream).End(), nil
}

type vecdbRow struct {
	text string
	meta []byte // an object, compact; nil for none
	ts   int64  // Unix milliseconds
	embedded
}

type vecdbWriter struct {
	dir      *dir
	row      vecdbRow
	provider string // of the store
	sync     bool
}

// newVecdbWriter returns a writer of row to the store of stream, with the embedding made: that may
// take long, and so is done before the store is locked. The writer's dir is to be closed.
func newVecdbWriter(ctx context.Context, e *Env, stream string, row vecdbRow) (w *vecdbWriter, err error) {
	d, err := vecdbDir(e, stream, true)
	if err != nil {
		return nil, err
	}
	w = &vecdbWriter{dir: d, row: row, provider: e.Embed.provider(), sync: e.WALFsync}
	dim, err := readSchema(d, w.provider)
	if err == errMissingSchema {
		dim, err = e.VecDim, nil // what a new store gets; add looks whether it is one
	}
	if err == nil {
		w.row.embedded, err = e.Embed.embed(ctx, row.text, dim, true)
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return w, nil
}

// add writes the row behind the others, with the lock of the store held.
func (w *vecdbWriter) add(ctx context.Context) error {
	f, err := openLocked(ctx, w.dir, embeddingsFile)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := sizeOf(f)
	if err != nil {
		return err
	}
	dim := len(w.row.vector)
	if err = w.schema(size == 0); err != nil {
		return err
	}
	rows := size / int64(floatBytes*dim)
	if whole := rows * int64(floatBytes*dim); whole != size {
		if err = f.Truncate(whole); err != nil {
			return err
		}
		size = whole
	}
	if err = w.addMeta(ctx, metaLine(rows, w.row), rows); err != nil {
		return err
	}
	if err = appendWhole(f, size, rowBytes(w.row.vector), w.sync); err == nil && w.sync && rows == 0 {
		err = w.dir.sync()
	}
	return err
}

// schema compares the row with the schema, and writes it if there are no vectors yet.
func (w *vecdbWriter) schema(isNew bool) error {
	dim, err := readSchema(w.dir, w.provider)
	if err == errMissingSchema && isNew {
		return writeSchema(w.dir, len(w.row.vector), w.provider, w.sync)
	}
	if err == nil && dim != len(w.row.vector) { // made by another writer meanwhile
		err = errInvalidDim
	}
	return err
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
	whole, err := metaEnd(&untilDone{ctx: ctx, at: f}, size, rows)
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

// metaEnd returns where the lines of the rows end in f. Behind is what a killed writer left: at
// most one line, in part or without its row. More are not of its making and stay.
func metaEnd(f io.ReaderAt, size, rows int64) (end int64, err error) {
	lines, err := newTail(f, size, size)
	if err != nil {
		return 0, err
	}
	line, ok, err := lines.next()
	if !ok || err != nil {
		return size, err
	}
	if i := metaRow(line); i < 0 && lines.torn || i >= rows {
		return lines.at, nil
	}
	return size, nil
}

// metaRow returns the number of the row that line belongs to, -1 if it has none.
func metaRow(line []byte) int64 {
	if !jsonx.Check(line, jsonx.MaxDepth).OK() {
		return -1
	}
	return pick(line, "i").integer("i", -1)
}

// metaLine returns the line of row number i, "\n" included.
func metaLine(i int64, row vecdbRow) []byte {
	line := jsonx.Build(make([]byte, 0, len(row.meta)+len(row.text)+96)).
		Int("i", i).Int("ts_ms", row.ts).Text("provider", row.provider)
	if len(row.meta) > 0 {
		line = line.Raw("meta", row.meta)
	}
	return append(line.Text("text", row.text).End(), '\n')
}

func rowBytes(vector []float32) []byte {
	row := make([]byte, 0, floatBytes*len(vector))
	for _, x := range vector {
		row = binary.LittleEndian.AppendUint32(row, math.Float32bits(x))
	}
	return row
}

// The files of a vector store, in work/vectordb/<stream> of the root (toolhost §4.7 "VecDB").
//
//	schema.json      {"dim":n[,"provider":"..."]}; without a provider it is "hash"
//	embeddings.f32   rows of dim float32 each, little-endian. Its lock is that of the store
//	meta.jsonl       {"i":n,"ts_ms":n,"provider":"..."[,"meta":{...}],"text":"..."}: the last
//
// A row exists once all of it is in embeddings.f32. Its line is written before: a killed writer
// leaves a line without a row, which no reader sees and the next writer cuts off.
const (
	schemaFile     = "schema.json"
	embeddingsFile = "embeddings.f32"
	metaFile       = "meta.jsonl"
)

const (
	maxSchema  = 64 << 10
	floatBytes = 4
)

// What is wrong with a store; the texts are those of toolhost §4.7.
var (
	errInvalidDim        = errors.New("invalid schema.dim")
	errMissingSchema     = errors.New("missing schema")
	errMissingEmbeddings = errors.New("missing embeddings")
	errOtherProvider     = errors.New("the vectors of the store are of another embedding provider")
)

func vecdbDir(e *Env, stream string, create bool) (*dir, error) {
	return newRoot(e.Root).dir("work/vectordb/"+stream, create)
}

func vecdbError(err error) error {
	switch err {
	case errInvalidDim, errMissingSchema, errMissingEmbeddings, errOtherProvider:
		return err
	}
	if _, ok := err.(*embedError); ok {
		return err
	}
	return errOpenFailed
}

// readSchema returns the length of the vectors in d. It fails if they are of another provider.
func readSchema(d *dir, provider string) (dim int, err error) {
	f, err := d.open(schemaFile, os.O_RDONLY, 0)
	if isMissing(err) {
		return 0, errMissingSchema
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSchema+1))
	if err != nil {
		return 0, err
	}
	if len(text) > maxSchema || !jsonx.Check(text, jsonx.MaxDepth).OK() {
		return 0, errInvalidDim
	}
	a := pick(text, "dim", "provider")
	n := a.integer("dim", 0)
	if n < 1 || n > maxVecDim {
		return 0, errInvalidDim
	}
	made, ok := a.text("provider")
	if !ok {
		made = hashProvider
	}
	if made != provider {
		return 0, errOtherProvider
	}
	return int(n), nil
}

// writeSchema makes the schema of a new store in d, whose lock is held, whole or not at all.
func writeSchema(d *dir, dim int, provider string, sync bool) error {
	const fresh = "." + schemaFile + ".new"
	f, err := d.open(fresh, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	text := jsonx.Build(nil).Int("dim", int64(dim))
	if provider != hashProvider {
		text = text.Text("provider", provider)
	}
	_, err = f.Write(text.End())
	if err == nil && sync {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		err = d.rename(fresh, schemaFile)
	}
	return err
}
