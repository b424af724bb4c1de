package tools

import (
	"context"
	"errors"

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

var errInvalidMode = errors.New("invalid mode")

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
		return nil, errInvalidMode
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
