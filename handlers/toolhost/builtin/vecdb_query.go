package builtin

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	defaultHits = 8
	maxHits     = 50
	// rowsChunk is how many bytes of rows are read at a time, and at least one row.
	rowsChunk = 256 << 10
)

func vecdbQuery(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	a := pick(c.Input, "stream", "query", "top_k")
	text, _ := a.text("query")
	if text == "" {
		return nil, errors.New("missing query")
	}
	// A name that is too long is that of no store.
	const unknown = `{"ok":true,"hits":[]}`
	stream, ok := streamName(a.value("stream"), vecdbSpecial)
	if !ok {
		return []byte(unknown), nil
	}
	d, err := vecdbDir(e, stream, false)
	if isMissing(err) {
		return []byte(unknown), nil
	}
	if err != nil {
		return nil, errOpenFailed
	}
	defer d.close()
	r := vecdbReader{env: e, dir: d, most: int(a.positive("top_k", maxHits, defaultHits))}
	if err = r.find(ctx, text); err != nil {
		return nil, vecdbError(err)
	}
	return sized(r.output())
}

type vecdbReader struct {
	env      *Env
	dir      *dir
	most     int
	provider string     // of the embedding of the text
	hits     []vecdbHit // by score, of equal ones the lower row first
}

type vecdbHit struct {
	i     int64
	score float64
	meta  []byte // its line; nil if there is none
}

func (r *vecdbReader) find(ctx context.Context, text string) error {
	f, openErr := r.dir.open(embeddingsFile, os.O_RDONLY, 0)
	if openErr == nil {
		defer f.Close()
	}
	dim, err := readSchema(r.dir, r.env.Embed.provider())
	if err == errMissingSchema && openErr == nil {
		// Perhaps the first writer is just about to write it, with the lock held.
		if err = lockFile(ctx, f, unix.LOCK_SH); err == nil {
			dim, err = readSchema(r.dir, r.env.Embed.provider())
		}
	}
	if err != nil {
		return err
	}
	if isMissing(openErr) {
		return errMissingEmbeddings
	}
	if openErr != nil {
		return openErr
	}
	query, err := r.env.Embed.embed(ctx, text, dim, true)
	if err != nil {
		return err
	}
	r.provider = query.provider
	if err = r.scan(ctx, f, query.vector); err != nil {
		return err
	}
	return r.readMeta(ctx)
}

// scan goes over all whole rows of f without a lock: a row with its last byte never changes.
func (r *vecdbReader) scan(ctx context.Context, f *os.File, query []float32) error {
	row := floatBytes * len(query)
	buf := make([]byte, max(rowsChunk/row, 1)*row)
	rows := &untilDone{ctx: ctx, at: f}
	for i := int64(0); ; {
		n, err := rows.ReadAt(buf, i*int64(row))
		for b := buf[:n]; len(b) >= row; b = b[row:] {
			r.add(i, dotRow(query, b))
			i++
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func dotRow(query []float32, b []byte) (sum float64) {
	b = b[:floatBytes*len(query)]
	for i, x := range query {
		sum += float64(x) * float64(math.Float32frombits(binary.LittleEndian.Uint32(b[floatBytes*i:])))
	}
	return sum
}

// add takes row i as a hit if it is among the best. A score that is no number is of a broken row.
func (r *vecdbReader) add(i int64, score float64) {
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return
	}
	if n := len(r.hits); n == r.most {
		if score <= r.hits[n-1].score {
			return
		}
		r.hits = r.hits[:n-1]
	}
	at, _ := slices.BinarySearchFunc(r.hits, score, func(h vecdbHit, score float64) int {
		return cmp.Or(cmp.Compare(score, h.score), -1) // behind those of the same score
	})
	r.hits = slices.Insert(r.hits, at, vecdbHit{i: i, score: score})
}

// readMeta gives the hits their lines. It reads backward, because the last line of a row counts,
// and stops when every hit has its own or there are more than a reply can carry.
func (r *vecdbReader) readMeta(ctx context.Context) error {
	f, err := r.dir.open(metaFile, os.O_RDONLY, 0)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines, err := tailOf(ctx, f, math.MaxInt64)
	if err != nil {
		return err
	}
	for left, size := len(r.hits), 0; left > 0 && size <= maxOutput; {
		if err = ctx.Err(); err != nil {
			return err
		}
		line, ok, err := lines.next()
		if !ok || err != nil {
			return err
		}
		i := metaRow(line)
		for at := range r.hits {
			if h := &r.hits[at]; h.i == i && h.meta == nil {
				h.meta = slices.Clone(line)
				left--
				size += len(line)
			}
		}
	}
	return nil
}

func (r *vecdbReader) output() []byte {
	out := append(jsonx.Build(nil).Bool("ok", true).Text("provider", r.provider).Name("hits"), '[')
	for _, h := range r.hits {
		hit := jsonx.Build(jsonx.AppendComma(out)).Int("i", h.i).Name("score")
		hit = strconv.AppendFloat(hit, h.score, 'f', 6, 64)
		if h.meta != nil {
			hit = hit.Bytes("meta_line", h.meta)
		}
		out = hit.End()
	}
	return append(out, `]}`...)
}
