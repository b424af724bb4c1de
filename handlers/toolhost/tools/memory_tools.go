package tools

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	// maxStream is the longest name of a stream, in bytes (toolhost §4.7).
	maxStream = 128
	// maxContent is how much text and event or meta together one line may carry, in bytes (toolhost §4.7 "content too large").
	maxContent = 1 << 20
	// maxOutput is the longest output that can fit a reply (toolhost §3.4). A longer one is not built to its end.
	maxOutput = 1 << 20
)

// The errors of these tools that more than one of them has. Where toolhost §4.7 gives no text for a file that cannot be used, they
// answer openFailed too.
const (
	invalidStream   = "invalid stream"
	contentTooLarge = "content too large (>1MB)"
	openFailed      = "open failed"
	outputTooLarge  = "output exceeds 1MB limit"
	memoryOutside   = "MACHINA_MEMORY_ROOT must be under MACHINA_ROOT"
)

// memoryTools returns the tools that remember, and the embedding they are built on.
func memoryTools(e *Env) []Builtin {
	return []Builtin{memoryAppend(e), memorySearch(e), memoryQuery(e), embedText(e), vecdbUpsert(e), vecdbQuery(e)}
}

// streamName returns the name of the stream that v names as it stands in names of files: "default" if v is absent or empty, and
// each character that special does not allow and that is no ASCII letter or digit replaced by "_". ok is false if it is too long.
func streamName(v jsonx.Value, special string) (name string, ok bool) {
	given, _ := textOf(v)
	if given == "" {
		return "default", true
	}
	return cleanStream(given, special)
}

// cleanStream returns given with what neither is allowed always nor by special replaced. The limit is one of bytes as they are given:
// each character of several becomes one.
func cleanStream(given, special string) (name string, ok bool) {
	if len(given) > maxStream {
		return "", false
	}
	clean := make([]byte, 0, maxStream)
	for _, r := range given {
		if r >= utf8.RuneSelf || lowerAlphanumeric(byte(r)) == 0 && strings.IndexByte(special, byte(r)) < 0 {
			r = '_'
		}
		clean = append(clean, byte(r))
	}
	return string(clean), true
}

// memoryStream returns the name of the memory stream that v names; toolhost §4.7 "Memory".
func memoryStream(v jsonx.Value) (name string, ok bool) { return streamName(v, "._-") }

// memoryDir opens the directory of the memory files. why is the text of the error if it cannot be used; without it d is nil when the
// directory does not exist.
func memoryDir(e *Env, create bool) (d *dir, why string) {
	r := e.readRoot()
	if !r.has(e.MemoryRoot) {
		return nil, memoryOutside
	}
	d, err := r.dir(e.MemoryRoot, create)
	switch {
	case err == nil:
		return d, ""
	case err == errOutside:
		return nil, memoryOutside
	case isMissing(err) && !create:
		return nil, ""
	}
	return nil, openFailed
}

// isMissing tells that a file or directory does not exist.
func isMissing(err error) bool { return errors.Is(err, errNotExist) }

// bytesOf returns the meaning of v if it is a string: where it has no escapes, the bytes that v points to.
func bytesOf(v jsonx.Value) []byte {
	if v.Kind != jsonx.String || len(v.Raw) < 2 {
		return nil
	}
	raw := v.Raw[1 : len(v.Raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	return jsonx.AppendUnescaped(make([]byte, 0, len(raw)), raw)
}

// clamped returns the integer v between low and high, or otherwise if v is none.
func clamped(v jsonx.Value, low, high, otherwise int64) int64 {
	return min(max(integerOf(v, otherwise), low), high)
}

// numberOf returns the value of v if it is a number in the range of float64.
func numberOf(v jsonx.Value, absent float64) float64 {
	if v.Kind != jsonx.Number {
		return absent
	}
	x, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil {
		return absent
	}
	return x
}

// appendNumber appends the shortest text that reads back as x, in the form that most JSON writers give it. x is finite.
func appendNumber(dst []byte, x float64) []byte {
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, 64)
}

// failed returns the result of a call that failed with why, unless it did so because nobody waits for it any more.
func failed(ctx context.Context, why string) tool.Result {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	return tool.Fail(why)
}

// done returns the result with output, unless no reply can carry that.
func done(output []byte) tool.Result {
	if len(output) > maxOutput {
		return tool.Fail(outputTooLarge)
	}
	return tool.Result{Output: output}
}
