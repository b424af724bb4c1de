package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

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

// embeddingOutput writes v, repeated to dim components, each put into digits once: that takes long.
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

// hashComponents returns the hash embedding before the norm: component i is i mod hashPeriod.
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

// embedding returns the hash embedding of text: L2 norm 1, and not semantic.
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

// The providers of embeddings, as they are called in the environment and in replies.
const (
	hashProvider = "hash"
	cmdProvider  = "cmd"
)

// EmbedAID is the action id of the embedding program in logs and events.
const EmbedAID = "AID.EMBED.TEXT.v1"

const (
	// defaultEmbedTimeout is how long one embedding may take, maxEmbedTimeout the most to be set.
	defaultEmbedTimeout = 10 * time.Second
	maxEmbedTimeout     = 600 * time.Second
)

// EmbedEnv is what makes embeddings (toolhost §11).
type EmbedEnv struct {
	// Command is the embedding program: MACHINA_EMBED_CMD of the provider "cmd", else "".
	Command string
	// Program runs Command; Use sets it where Command is not "". Its input is
	// {"text":"...","dim":n}, its output {"embedding":[...]} with dim numbers, or {"error":"..."}.
	Program tool.Tool
	turn    chan struct{} // of the one text that the program works on
	// Fallback makes the hash stand in for a program that fails: MACHINA_EMBED_FALLBACK is "hash".
	Fallback bool
	// Timeout bounds the program for one text: MACHINA_EMBED_TIMEOUT_MS, 10 s, at most 600 s.
	Timeout time.Duration
	// OnAppend makes MEMORY.APPEND index each text: MACHINA_MEMORY_VECDB_ENABLE is "1".
	OnAppend bool
}

// Use makes program make the embeddings, of one text at a time.
func (e *EmbedEnv) Use(program tool.Tool) { e.Program, e.turn = program, make(chan struct{}, 1) }

// embedEnvFrom reads the variables of embeddings. An unknown provider's vectors would be of no use.
func embedEnvFrom(getenv func(string) string) (e EmbedEnv, err error) {
	e = EmbedEnv{
		Timeout:  time.Duration(intBetween(getenv("MACHINA_EMBED_TIMEOUT_MS"), 1, maxEmbedTimeout.Milliseconds(), defaultEmbedTimeout.Milliseconds())) * time.Millisecond,
		OnAppend: getenv("MACHINA_MEMORY_VECDB_ENABLE") == "1",
	}
	switch provider := getenv("MACHINA_EMBED_PROVIDER"); provider {
	case "", hashProvider:
	case cmdProvider:
		if e.Command = getenv("MACHINA_EMBED_CMD"); e.Command == "" {
			return e, errors.New(`cannot use MACHINA_EMBED_PROVIDER = "cmd": MACHINA_EMBED_CMD is not set`)
		}
	default:
		return e, fmt.Errorf("cannot use MACHINA_EMBED_PROVIDER = %q: want hash or cmd", provider)
	}
	switch fallback := getenv("MACHINA_EMBED_FALLBACK"); fallback {
	case "":
	case hashProvider:
		e.Fallback = true
	default:
		return e, fmt.Errorf("cannot use MACHINA_EMBED_FALLBACK = %q: want hash, or nothing", fallback)
	}
	return e, nil
}

func (e *EmbedEnv) provider() string {
	if e.Program == nil {
		return hashProvider
	}
	return cmdProvider
}

type embedded struct {
	provider string
	vector   []float32
}

// embedError is why there is no embedding, for the caller.
type embedError struct{ why string }

// Error returns the text of the tool's error.
func (e *embedError) Error() string { return "embedding failed: " + e.why }

// embed returns the embedding of text with dim components; its L2 norm is 1 if normalize is set.
func (e *EmbedEnv) embed(ctx context.Context, text string, dim int, normalize bool) (embedded, error) {
	if e.Program != nil {
		v, err := e.ask(ctx, text, dim)
		if err == nil && normalize {
			normalizeVector(v)
		}
		if err == nil || !e.Fallback || ctx.Err() != nil {
			return embedded{cmdProvider, v}, err
		}
	}
	if normalize {
		return embedded{hashProvider, embedding(text, dim)}, nil
	}
	return embedded{hashProvider, repeated(hashComponents(text), dim)}, nil
}

// errNoTurn is why a text was not given to the program.
var errNoTurn = &embedError{"the program is busy with other texts"}

// awaitTurn waits for the program until only Timeout, or half of the call's time, is left: a
// program that is late is killed and loads its model again, so it gets no text without time.
func (e *EmbedEnv) awaitTurn(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	default:
	}
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, left-min(e.Timeout, left/2))
		defer cancel()
	}
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errNoTurn
	}
}

// ask has the program make the embedding of text, and waits without the place of the call.
func (e *EmbedEnv) ask(ctx context.Context, text string, dim int) (v []float32, err error) {
	line := jsonx.Build(nil).Text("text", text).Int("dim", int64(dim)).End()
	var r tool.Result
	err = tool.Aside(ctx, func() error {
		if e.turn != nil {
			if err := e.awaitTurn(ctx); err != nil {
				return err
			}
			defer func() { <-e.turn }()
		}
		ctx, cancel := context.WithTimeout(ctx, e.Timeout)
		defer cancel()
		r = e.Program.Run(ctx, &tool.Call{AID: EmbedAID, Input: line, Now: time.Now})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.Failure != nil {
		why := r.ErrorText()
		if d := r.Dispatch(); d != nil && !strings.HasSuffix(why, d.Detail) {
			why += ": " + d.Detail
		}
		return nil, &embedError{why}
	}
	return vectorOf(r.Output, dim)
}

// vectorOf reads the reply of the program, a checked object: dim numbers of float32, or an error.
func vectorOf(reply []byte, dim int) (v []float32, err error) {
	a := pick(reply, "embedding", "error")
	list := a.value("embedding")
	if list.Kind != jsonx.ArrayStart {
		why, ok := a.text("error")
		if !ok {
			why = "the reply has no embedding"
		}
		return nil, &embedError{tool.Detail(why)}
	}
	v = make([]float32, 0, dim)
	n := 0
	items := jsonx.OpenArray(list.Raw)
	for item, more := items.Next(); more; item, more = items.Next() {
		if n++; n > dim {
			continue
		}
		x, err := strconv.ParseFloat(string(item.Raw), 32)
		if item.Kind != jsonx.Number || err != nil {
			return nil, &embedError{fmt.Sprintf("component %d is no number that 32 bits hold", n-1)}
		}
		v = append(v, float32(x))
	}
	if n != dim {
		return nil, &embedError{fmt.Sprintf("%d components instead of %d", n, dim)}
	}
	return v, nil
}

// normalizeVector divides v by its L2 norm. A vector of zeros stays what it is.
func normalizeVector(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if norm := math.Sqrt(sum); norm > 0 {
		for i := range v {
			v[i] = float32(float64(v[i]) / norm)
		}
	}
}
