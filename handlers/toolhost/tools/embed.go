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

// embedText is AID.EMBED.TEXT.v1: the hash embedding of a text (toolhost §4.7).
func embedText() Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.EMBED.TEXT.v1",
		Name:          "embed_text",
		Deterministic: true,
		Tags:          []string{"tag.embed", "tag.meta"},
		SideEffects:   []string{"none"},
		Fast:          true,
	}, func(_ context.Context, c *tool.Call) tool.Result {
		a := pick(c.Input, "text", "dim", "normalize")
		text := bytesOf(a.value("text"))
		if len(text) == 0 {
			return tool.Fail("missing text")
		}
		dim := min(a.integer("dim", 0), maxEmbedDim)
		if dim <= 0 {
			dim = defaultEmbedDim
		}
		v := hashComponents(text)
		if a.boolean("normalize", true) {
			v = divideByNorm(v, int(dim))
		}
		return tool.Result{Output: embeddingOutput(v, int(dim))}
	})
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
