package tools

import (
	"context"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// memoryQuery is AID.MEMORY.QUERY.v1: it finds those entries of a stream that suit a text best (toolhost §4.7).
func memoryQuery(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:         "AID.MEMORY.QUERY.v1",
		Name:        "memory_query",
		Tags:        []string{"tag.memory", "tag.fs", "tag.meta"},
		SideEffects: []string{"filesystem_read"},
	}, func(ctx context.Context, c *tool.Call) tool.Result {
		q, why := readQuery(c.Input, e.Weights)
		if why != "" {
			return tool.Fail(why)
		}
		docs, why := q.documents(ctx, e)
		if why != "" {
			return failed(ctx, why)
		}
		s := scorer{query: []byte(q.text), dim: q.dim, weights: q.weights, now: c.Now()}
		if s.run(ctx, docs) != nil {
			return canceled(ctx)
		}
		matches, err := q.choose(ctx, docs)
		if err != nil {
			return canceled(ctx)
		}
		return done(q.output(len(docs), matches))
	})
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

// readQuery reads input. why is the text of an error.
func readQuery(input []byte, w Weights) (q *query, why string) {
	a := pick(input, "stream", "query", "mode", "top_k", "candidate_k", "max_entries", "max_bytes", "max_files", "rerank",
		"mmr_lambda", "embed_dim", "debug")
	q = &query{
		topK:       int(clamped(a.value("top_k"), 1, 50, 10)),
		maxEntries: int(clamped(a.value("max_entries"), 10, 20000, 2000)),
		maxBytes:   clamped(a.value("max_bytes"), minTailBytes, maxTailBytes, defaultTailBytes),
		maxFiles:   int(clamped(a.value("max_files"), 1, 16, 4)),
		lambda:     min(max(numberOf(a.value("mmr_lambda"), 0.72), 0), 1),
		dim:        int(clamped(a.value("embed_dim"), 16, 1024, 256)),
		debug:      a.boolean("debug", false),
	}
	q.text, _ = a.text("query")
	rerank, ok := a.text("rerank")
	q.mmr = !ok || rerank == "mmr"
	most := min(200, max(20, 5*q.topK))
	if q.mmr {
		most = min(200, max(40, 10*q.topK))
	}
	q.candidates = int(clamped(a.value("candidate_k"), int64(q.topK), 500, int64(most)))
	if q.weights, ok = weightsFor(a.value("mode"), w); !ok {
		return nil, "invalid mode"
	}
	if q.stream, ok = memoryStream(a.value("stream")); !ok {
		return nil, invalidStream
	}
	return q, ""
}

// weightsFor returns w without what mode leaves out.
func weightsFor(mode jsonx.Value, w Weights) (_ Weights, ok bool) {
	name, given := textOf(mode)
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

// choose returns the matches among docs, which are scored and come newest first.
func (q *query) choose(ctx context.Context, docs []*document) ([]*document, error) {
	candidates := best(docs, q.candidates)
	if q.mmr {
		return rerankMMR(ctx, candidates, q.topK, q.dim, q.lambda)
	}
	return candidates[:min(q.topK, len(candidates))], nil
}

// output writes the answer, to its end only if a reply can carry it. Where there was nothing to choose from the members come in
// another order (toolhost §4.7, last words on QUERY).
func (q *query) output(docs int, matches []*document) []byte {
	out := jsonx.AppendString([]byte(`{"ok":true,"stream":`), q.stream)
	if docs == 0 {
		return append(out, `,"matches":[],"count":0}`...)
	}
	out = strconv.AppendInt(append(out, `,"count":`...), int64(len(matches)), 10)
	out = append(out, `,"matches":[`...)
	for i, d := range matches {
		if i > 0 {
			out = append(out, ',')
		}
		if out = q.appendMatch(out, d); len(out) > maxOutput {
			return out
		}
	}
	return append(out, ']', '}')
}

func (q *query) appendMatch(out []byte, d *document) []byte {
	out = jsonx.AppendString(append(out, `{"file":`...), d.file)
	out = strconv.AppendInt(append(out, `,"ts_ms":`...), d.ts, 10)
	out = appendNumber(append(out, `,"score":`...), d.score)
	out = appendNumber(append(out, `,"overlap":`...), d.overlap)
	out = appendNumber(append(out, `,"emb":`...), d.emb)
	out = appendNumber(append(out, `,"bm25":`...), d.bm25)
	if q.debug {
		out = appendNumber(append(out, `,"mmr_max_sim":`...), d.maxSim)
		out = jsonx.AppendString(append(out, `,"raw":`...), d.raw)
	}
	out = jsonx.AppendString(append(out, `,"text":`...), d.text)
	return append(out, '}')
}
