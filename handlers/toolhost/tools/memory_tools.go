package tools

import (
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

const (
	// maxStream is the longest name of a stream, in bytes (toolhost §4.7).
	maxStream = 128
	// maxOutput is the longest output that can fit a reply (toolhost §3.4). A longer one is not
	// built to its end.
	maxOutput = 1 << 20
)

// The errors of these tools that more than one of them has. Where toolhost §4.7 gives no text for a
// file that cannot be used, the text is that of errOpenFailed.
var (
	errInvalidStream  = errors.New("invalid stream")
	errOpenFailed     = errors.New("open failed")
	errOutputTooLarge = errors.New("output exceeds 1MB limit")
	errMemoryOutside  = errors.New("MACHINA_MEMORY_ROOT must be under MACHINA_ROOT")
	errMissingText    = errors.New("missing text")
)

// The characters of a stream's name that stand in names of files as they are, beside ASCII letters
// and digits (toolhost §4.7 "Memory", "VecDB").
const (
	memorySpecial = "._-"
	vecdbSpecial  = "_-"
)

// streamName returns the name of the stream that v names as it stands in names of files: "default"
// if v is absent or empty.
func streamName(v jsonx.Value, special string) (name string, ok bool) {
	given, _ := v.Text()
	if len(given) == 0 {
		return "default", true
	}
	return cleanStream(string(given), special)
}

// cleanStream returns given with every character replaced by "_" that is neither an ASCII letter or
// digit nor in special. The limit is one of bytes as they are given: each character of several
// becomes one.
func cleanStream(given, special string) (name string, ok bool) {
	if len(given) > maxStream {
		return "", false
	}
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || lowerAlphanumeric(byte(r)) == 0 && strings.IndexByte(special, byte(r)) < 0 {
			return '_'
		}
		return r
	}, given), true
}

// memoryDir opens the directory of the memory files. Without create, d is nil if it does not exist.
func memoryDir(e *Env, create bool) (d *dir, err error) {
	r := newRoot(e.Root)
	if !r.has(e.MemoryRoot) {
		return nil, errMemoryOutside
	}
	d, err = r.dir(e.MemoryRoot, create)
	switch {
	case err == errOutside:
		return nil, errMemoryOutside
	case err != nil && isMissing(err) && !create:
		return nil, nil
	case err != nil:
		return nil, errOpenFailed
	}
	return d, nil
}

// isMissing reports that a file or directory does not exist.
func isMissing(err error) bool { return errors.Is(err, os.ErrNotExist) }

// appendNumber appends the shortest text that reads back as x, in the form that most JSON writers
// give it. x is finite.
func appendNumber(dst []byte, x float64) []byte {
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, 64)
}

// sized returns output, unless no reply can carry it.
func sized(output []byte) ([]byte, error) {
	if len(output) > maxOutput {
		return nil, errOutputTooLarge
	}
	return output, nil
}
