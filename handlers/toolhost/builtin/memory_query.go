package builtin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

func memoryQuery(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	q, err := readQuery(c.Input, e.Weights)
	if err != nil {
		return nil, err
	}
	docs, err := q.documents(ctx, e)
	if err != nil {
		return nil, err
	}
	s := scorer{query: []byte(q.text), dim: q.dim, weights: q.weights, now: c.Now()}
	if err = s.run(ctx, docs); err != nil {
		return nil, err
	}
	matches := best(docs, q.candidates)
	if !q.mmr {
		matches = matches[:min(q.topK, len(matches))]
	} else if matches, err = rerankMMR(ctx, matches, q.topK, q.dim, q.lambda); err != nil {
		return nil, err
	}
	return sized(q.output(len(docs), matches))
}

// query is what a call of AID.MEMORY.QUERY.v1 asks for, within the bounds of toolhost §4.7.
type query struct {
	stream     string
	text       string
	weights    Weights
	topK       int
	candidates int
	maxEntries int
	maxBytes   int64
	maxFiles   int
	mmr        bool
	lambda     float64
	dim        int
	debug      bool
}

func readQuery(input []byte, w Weights) (*query, error) {
	a := pick(input, "stream", "query", "mode", "top_k", "candidate_k", "max_entries", "max_bytes", "max_files", "rerank",
		"mmr_lambda", "embed_dim", "debug")
	q := &query{
		topK:       int(a.clamped("top_k", 1, 50, 10)),
		maxEntries: int(a.clamped("max_entries", 10, 20000, 2000)),
		maxBytes:   a.clamped("max_bytes", minTailBytes, maxTailBytes, defaultTailBytes),
		maxFiles:   int(a.clamped("max_files", 1, 16, 4)),
		lambda:     min(max(a.number("mmr_lambda", 0.72), 0), 1),
		dim:        int(a.clamped("embed_dim", 16, 1024, 256)),
		debug:      a.boolean("debug", false),
	}
	q.text, _ = a.text("query")
	rerank, ok := a.text("rerank")
	q.mmr = !ok || rerank == "mmr"
	most := min(200, max(20, 5*q.topK))
	if q.mmr {
		most = min(200, max(40, 10*q.topK))
	}
	q.candidates = int(a.clamped("candidate_k", int64(q.topK), 500, int64(most)))
	if q.weights, ok = weightsFor(a, w); !ok {
		return nil, errors.New("invalid mode")
	}
	if q.stream, ok = streamName(a.value("stream"), memorySpecial); !ok {
		return nil, errInvalidStream
	}
	return q, nil
}

// weightsFor returns w without what the mode leaves out.
func weightsFor(a args, w Weights) (_ Weights, ok bool) {
	name, given := a.text("mode")
	if !given {
		return w, true
	}
	switch name {
	case "hybrid", "auto", "semantic", "vecdb":
	case "bm25":
		w.Emb = 0
	case "embed":
		w.Overlap, w.BM25 = 0, 0
	default:
		return w, false
	}
	return w, true
}

// output writes the answer, to its end only if a reply can carry it. Where there was nothing to
// choose from the members come in another order (toolhost §4.7, end of QUERY).
func (q *query) output(docs int, matches []*document) []byte {
	out := jsonx.Build(nil).Bool("ok", true).Text("stream", q.stream)
	if docs == 0 {
		return out.Texts("matches", nil).Int("count", 0).End()
	}
	out = append(out.Int("count", int64(len(matches))).Name("matches"), '[')
	for _, d := range matches {
		if out = q.appendMatch(jsonx.AppendComma(out), d); len(out) > maxOutput {
			return out
		}
	}
	return append(out, `]}`...)
}

func (q *query) appendMatch(dst []byte, d *document) []byte {
	out := jsonx.Build(dst).Text("file", d.file).Int("ts_ms", d.ts)
	out = appendNumber(out.Name("score"), d.score)
	out = appendNumber(out.Name("overlap"), d.overlap)
	out = appendNumber(out.Name("emb"), d.emb)
	out = appendNumber(out.Name("bm25"), d.bm25)
	if q.debug {
		out = jsonx.Builder(appendNumber(out.Name("mmr_max_sim"), d.maxSim)).Bytes("raw", d.raw)
	}
	return out.Bytes("text", d.text).End()
}

// documents reads the entries of the last maxBytes of the stream's files, newest first.
func (q *query) documents(ctx context.Context, e *Env) (docs []*document, err error) {
	d, err := memoryDir(e, false)
	if d == nil {
		return nil, err
	}
	defer d.close()
	r := reading{query: q, left: q.maxBytes}
	if err := r.stream(ctx, d); err != nil {
		return nil, errOpenFailed
	}
	return r.docs, nil
}

type reading struct {
	query *query
	left  int64 // bytes that may still be read
	docs  []*document
}

// stream reads the stream's file and then rotated ones. The file is open before the others are
// listed: if it is rotated in between, it is passed over among them, and nothing is missed.
func (r *reading) stream(ctx context.Context, d *dir) error {
	name, files := r.query.stream+".jsonl", r.query.maxFiles
	current, err := d.open(name, os.O_RDONLY, 0)
	switch {
	case err == nil:
		defer current.Close()
		if err = r.file(ctx, current); err != nil {
			return err
		}
		files--
	case !isMissing(err):
		return err
	}
	if files == 0 {
		return nil
	}
	times, err := rotations(ctx, d, name, files+1)
	if err != nil {
		return err
	}
	for _, at := range times {
		if files == 0 || r.full() {
			break
		}
		read, err := r.rotated(ctx, d, rotatedName(name, at), current)
		if err != nil {
			return err
		}
		if read {
			files--
		}
	}
	return nil
}

// rotated reads the rotated file name, unless it is current or was removed.
func (r *reading) rotated(ctx context.Context, d *dir, name string, current *os.File) (read bool, err error) {
	if current != nil && isEntryOf(d, name, current) {
		return false, nil
	}
	f, err := d.open(name, os.O_RDONLY, 0)
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return true, r.file(ctx, f)
}

func (r *reading) full() bool { return r.left <= 0 || len(r.docs) >= r.query.maxEntries }

func (r *reading) file(ctx context.Context, f *os.File) error {
	lines, err := tailOf(ctx, f, r.left)
	if err != nil {
		return err
	}
	for !r.full() {
		if err = ctx.Err(); err != nil {
			return err
		}
		line, ok, err := lines.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if doc := r.query.document(line); doc != nil {
			doc.file = f.Name()
			r.docs = append(r.docs, doc)
		}
	}
	r.left -= lines.size - lines.start
	return nil
}

// document returns the entry that line is, nil if it is none or belongs to another stream: the
// names of two streams may differ only in characters that the name of a file does not have.
func (q *query) document(line []byte) *document {
	if !isObject(line, jsonx.MaxDepth) {
		return nil
	}
	a := pick(line, "stream", "ts_ms", "text", "event")
	if given, ok := a.text("stream"); ok {
		if clean, ok := cleanStream(given, memorySpecial); !ok || clean != q.stream {
			return nil
		}
	}
	d := &document{ts: timeOf(a)}
	if text, ok := a.text("text"); ok {
		d.text = []byte(text)
	} else if event := a.value("event"); event.Kind != jsonx.End && event.Kind != jsonx.Null {
		d.text = jsonx.Compact(bytes.Clone(event.Raw))
	} else {
		d.text = bytes.Clone(line)
	}
	if q.debug {
		d.raw = bytes.Clone(line)
	}
	return d
}

// timeOf returns ts_ms, a fraction cut off; 0 if it is no number or one beyond int64.
func timeOf(a args) int64 {
	if n := a.integer("ts_ms", 0); n != 0 {
		return n
	}
	if x := math.Trunc(a.number("ts_ms", 0)); math.Abs(x) < 1<<63 {
		return int64(x)
	}
	return 0
}

func rotatedName(name string, at int64) string {
	return name + "." + strconv.FormatInt(at, 10) + rotatedSuffix
}

// rotations returns the times of the rotated files of the file name, newest first, at most n.
func rotations(ctx context.Context, d *dir, name string, n int) (times []int64, err error) {
	err = d.names(func(entry string) bool {
		if at, ok := rotationOf(entry, name); ok {
			i, _ := slices.BinarySearchFunc(times, at, func(a, b int64) int { return cmp.Compare(b, a) })
			if i < n {
				times = slices.Insert(times, i, at)
				times = times[:min(n, len(times))]
			}
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return times, err
}

func rotationOf(entry, name string) (at int64, ok bool) {
	rest, _ := strings.CutPrefix(entry, name+".")
	at, err := strconv.ParseInt(strings.TrimSuffix(rest, rotatedSuffix), 10, 64)
	return at, err == nil && at >= 0 && rotatedName(name, at) == entry
}
