package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	maxRotateTries = 1000
	// rotatedSuffix ends the name of a file that was put aside (toolhost §4.7).
	rotatedSuffix = ".rotated"
)

var (
	errRotate       = errors.New("cannot rotate: every name is taken")
	errMissingEvent = errors.New("missing event or text")
	// errNotIndexed is an append whose line was written and whose vector was not.
	errNotIndexed = errors.New("appended, but not indexed")
)

func memoryAppend(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	a := pick(c.Input, "stream", "text", "event")
	text, _ := a.text("text")
	event := a.value("event")
	if event.Kind == jsonx.Null {
		event = jsonx.Value{}
	}
	if text == "" && event.Kind == jsonx.End {
		return nil, errMissingEvent
	}
	compact := jsonx.Compact(bytes.Clone(event.Raw))
	if len(text)+len(compact) > maxWrite {
		return nil, errContentTooLarge
	}
	stream, ok := streamName(a.value("stream"), memorySpecial)
	if !ok {
		return nil, errInvalidStream
	}
	d, err := memoryDir(e, true)
	if err != nil {
		return nil, err
	}
	defer d.close()
	now := c.Now().UnixMilli()
	var index *vecdbWriter
	if e.Embed.OnAppend {
		row := vecdbRow{text: text, ts: now}
		if text == "" {
			row.text = string(compact)
		}
		name, _ := streamName(a.value("stream"), vecdbSpecial) // of the same limit
		if index, err = newVecdbWriter(ctx, e, name, row); err != nil {
			return nil, vecdbError(err)
		}
		defer index.dir.close()
	}
	log := memoryLog{dir: d, name: stream + ".jsonl", rotateBytes: e.RotateBytes, sync: e.WALFsync, now: now}
	path, err := log.append(ctx, memoryLine(now, stream, compact, text))
	if err != nil {
		return nil, errOpenFailed
	}
	if index != nil {
		if err = index.add(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotIndexed, vecdbError(err))
		}
	}
	return jsonx.Build(nil).Bool("ok", true).Text("stream", stream).Text("file", path).Int("ts_ms", now).End(), nil
}

func memoryLine(now int64, stream string, event []byte, text string) []byte {
	line := jsonx.Build(make([]byte, 0, len(event)+len(text)+maxStream+64)).Int("ts_ms", now).Text("stream", stream)
	if len(event) > 0 {
		line = line.Raw("event", event)
	}
	if text != "" {
		line = line.Text("text", text)
	}
	return append(line.End(), '\n')
}

type memoryLog struct {
	dir         *dir
	name        string
	rotateBytes int64
	sync        bool
	now         int64 // Unix milliseconds
}

// append appends line and returns the file's path. A file of rotateBytes is rotated first.
func (l *memoryLog) append(ctx context.Context, line []byte) (path string, err error) {
	for {
		f, err := openLocked(ctx, l.dir, l.name)
		if err != nil {
			return "", err
		}
		written, err := l.write(f, line)
		f.Close()
		if err != nil {
			return "", err
		}
		if written {
			return f.Name(), nil
		}
	}
}

// write appends line to f, which is locked, unless f is to be put aside and was.
func (l *memoryLog) write(f *os.File, line []byte) (written bool, err error) {
	size, err := sizeOf(f)
	if err != nil {
		return false, err
	}
	if l.rotateBytes > 0 && size >= l.rotateBytes {
		return false, l.rotate()
	}
	if err = appendLine(f, size, line, l.sync); err == nil && l.sync && size == 0 {
		err = l.dir.sync()
	}
	return err == nil, err
}

// rotate renames the file, whose lock is held. Two rotations in one millisecond cannot take each
// other's name: only the lock's holder may rename, so looking first is enough.
func (l *memoryLog) rotate() error {
	for at := l.now; at < l.now+maxRotateTries; at++ {
		rotated := rotatedName(l.name, at)
		_, err := l.dir.lstat(rotated)
		if err == nil {
			continue
		}
		if !isMissing(err) {
			return err
		}
		if err = l.dir.rename(l.name, rotated); err == nil && l.sync {
			err = l.dir.sync()
		}
		return err
	}
	return errRotate
}

const (
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
