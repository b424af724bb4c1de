package tools

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

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
	// Command is the command line of the embedding program: MACHINA_EMBED_CMD if
	// MACHINA_EMBED_PROVIDER is "cmd". "": the hash makes embeddings.
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
