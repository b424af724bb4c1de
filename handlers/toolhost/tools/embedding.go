package tools

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	defaultEmbedDim = 384
	maxEmbedDim     = 1024
)

func embedText(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	a := pick(c.Input, "text", "dim", "normalize")
	text, _ := a.value("text").Text()
	if len(text) == 0 {
		return nil, errMissingText
	}
	dim := int(a.positive("dim", maxEmbedDim, defaultEmbedDim))
	normalize := a.boolean("normalize", true)
	if e.Embed.Program != nil {
		v, err := e.Embed.embed(ctx, string(text), dim, normalize)
		if err != nil {
			return nil, err
		}
		return appendEmbedded(nil, v), nil
	}
	v := hashComponents(text)
	if normalize {
		v = divideByNorm(v, dim)
	}
	return embeddingOutput(v, dim), nil
}

func appendEmbedded(dst []byte, v embedded) []byte {
	dst = append(jsonx.Build(dst).Text("provider", v.provider).Int("dim", int64(len(v.vector))).Name("embedding"), '[')
	for _, x := range v.vector {
		dst = append(strconv.AppendFloat(dst, float64(x), 'f', 6, 64), ',')
	}
	dst[len(dst)-1] = ']'
	return append(dst, '}')
}

// embeddingOutput writes the vector with dim components that repeats v. Each component is put into
// digits once: that is what takes the time.
func embeddingOutput(v [hashPeriod]float32, dim int) []byte {
	const longest = len("-0.123456,")
	out := []byte(jsonx.Build(make([]byte, 0, 64+dim*longest)).Text("provider", hashProvider).Int("dim", int64(dim)).Name("embedding"))
	out = append(out, '[')
	start, period := len(out), len(out) // of the components, and of their repetition
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

// hashPeriod is how many components of a hash embedding differ: two from each of hexadecimal digits
// 0, 16 and 32 of the digest, and then again from 0 (toolhost §4.7 "Hash embedding").
const hashPeriod = 6

// hashComponents returns the components of the hash embedding of text before it is divided by its
// norm; component i of the vector is component i mod hashPeriod.
func hashComponents[T ~string | ~[]byte](text T) (v [hashPeriod]float32) {
	sum := sha256.Sum256([]byte(text))
	for chunk := range hashPeriod / 2 {
		x := binary.BigEndian.Uint64(sum[8*chunk:])
		v[2*chunk] = unitOf(uint32(x))
		v[2*chunk+1] = unitOf(uint32(x >> 32))
	}
	return v
}

// unitOf spreads u over -1 to 1.
func unitOf(u uint32) float32 { return float32(float64(u)/4294967295*2 - 1) }

// embedding returns the hash embedding of text: dim components, L2 norm 1. It is not semantic:
// equal texts are equal vectors, and that is all.
func embedding(text string, dim int) []float32 {
	return repeated(divideByNorm(hashComponents(text), dim), dim)
}

// repeated returns the vector with dim components that repeats v.
func repeated(v [hashPeriod]float32, dim int) []float32 {
	row := make([]float32, dim)
	for i := range row {
		row[i] = v[i%hashPeriod]
	}
	return row
}

// divideByNorm divides v by the L2 norm of the vector with dim components that repeats it. The sum
// runs over the components in their order, so that it rounds as a sum over the vector does.
func divideByNorm(v [hashPeriod]float32, dim int) [hashPeriod]float32 {
	sum := 0.0
	for i := range dim {
		c := float64(v[i%hashPeriod])
		sum += c * c
	}
	if norm := math.Sqrt(sum); norm > 0 {
		for i := range v {
			v[i] = float32(float64(v[i]) / norm)
		}
	}
	return v
}

// dotHashed returns the dot product of the two vectors with dim components that repeat a and b.
func dotHashed(a, b *[hashPeriod]float32, dim int) (sum float64) {
	for i := range hashPeriod {
		times := (dim - i + hashPeriod - 1) / hashPeriod
		sum += float64(times) * float64(a[i]) * float64(b[i])
	}
	return sum
}
