package tools

import (
	"bytes"
	"context"
	"strconv"

	"trunkline/handlers/toolhost/tool"
)

const (
	defaultEmbedDim = 384
	maxEmbedDim     = 1024
)

// embedText is AID.EMBED.TEXT.v1: the embedding of a text (toolhost §4.7). What a program answers need not be the same twice, and the
// tool has to wait for it.
func embedText(e *Env) Builtin {
	byHash := e.Embed.Program == nil
	return builtin(tool.Descriptor{
		AID:           EmbedAID,
		Name:          "embed_text",
		Deterministic: byHash,
		Tags:          []string{"tag.embed", "tag.meta"},
		SideEffects:   []string{"none"},
		Fast:          byHash,
	}, func(ctx context.Context, c *tool.Call) tool.Result {
		a := pick(c.Input, "text", "dim", "normalize")
		text := bytesOf(a.value("text"))
		if len(text) == 0 {
			return tool.Fail("missing text")
		}
		dim := min(a.integer("dim", 0), maxEmbedDim)
		if dim <= 0 {
			dim = defaultEmbedDim
		}
		normalize := a.boolean("normalize", true)
		if !byHash {
			v, err := e.Embed.embed(ctx, string(text), int(dim), normalize)
			if err != nil {
				return failed(ctx, err.Error())
			}
			return tool.Result{Output: appendEmbedded(nil, v)}
		}
		v := hashComponents(text)
		if normalize {
			v = divideByNorm(v, int(dim))
		}
		return tool.Result{Output: embeddingOutput(v, int(dim))}
	})
}

// appendEmbedded writes any vector.
func appendEmbedded(dst []byte, v embedded) []byte {
	dst = append(append(append(dst, `{"provider":"`...), v.provider...), `","dim":`...)
	dst = append(strconv.AppendInt(dst, int64(len(v.vector)), 10), `,"embedding":[`...)
	for _, x := range v.vector {
		dst = append(strconv.AppendFloat(dst, float64(x), 'f', 6, 64), ',')
	}
	dst[len(dst)-1] = ']'
	return append(dst, '}')
}

// embeddingOutput writes the vector with dim components that repeats v. Each component is put into digits once: that is what
// takes the time.
func embeddingOutput(v [hashPeriod]float32, dim int) []byte {
	const longest = len("-0.123456,")
	out := make([]byte, 0, 64+dim*longest)
	out = strconv.AppendInt(append(out, `{"provider":"hash","dim":`...), int64(dim), 10)
	out = append(out, `,"embedding":[`...)
	start, period := len(out), len(out) // where the components begin, and where they begin to repeat
	for i := range min(dim, hashPeriod) {
		out = append(strconv.AppendFloat(out, float64(v[i]), 'f', 6, 64), ',')
		period = len(out)
	}
	for range dim/hashPeriod - 1 {
		out = append(out, out[start:period]...)
	}
	if dim > hashPeriod {
		rest := out[start:]
		for range dim % hashPeriod {
			n := bytes.IndexByte(rest, ',') + 1
			out = append(out, rest[:n]...)
			rest = rest[n:]
		}
	}
	out[len(out)-1] = ']'
	return append(out, '}')
}
