package tools

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	// maxRotateTries is how many times of rotation may be taken already before a rotation gives up.
	maxRotateTries = 1000
	// rotatedSuffix ends the name of a file that was put aside (toolhost §4.7).
	rotatedSuffix = ".rotated"
	// notIndexed begins the error of an append whose line was written and whose vector was not.
	notIndexed = "appended, but not indexed: "
)

var errRotate = errors.New("cannot rotate: every name is taken")

// memoryAppend is AID.MEMORY.APPEND.v1: it appends a line to the file of a stream (toolhost §4.7).
func memoryAppend(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:         "AID.MEMORY.APPEND.v1",
		Name:        "memory_append",
		Tags:        []string{"tag.memory", "tag.fs", "tag.meta"},
		SideEffects: []string{"filesystem_write"},
	}, func(ctx context.Context, c *tool.Call) tool.Result {
		a := pick(c.Input, "stream", "text", "event")
		text, _ := a.text("text")
		event := a.value("event")
		if event.Kind == jsonx.Null {
			event = jsonx.Value{}
		}
		if text == "" && event.Kind == jsonx.End {
			return tool.Fail("missing event or text")
		}
		compact := jsonx.Compact(bytes.Clone(event.Raw))
		if len(text)+len(compact) > maxContent {
			return tool.Fail(contentTooLarge)
		}
		stream, ok := memoryStream(a.value("stream"))
		if !ok {
			return tool.Fail(invalidStream)
		}
		d, why := memoryDir(e, true)
		if why != "" {
			return tool.Fail(why)
		}
		defer d.close()
		now := c.Now().UnixMilli()
		var index *vecdbWriter
		if e.Embed.OnAppend {
			row := vecdbRow{text: text, ts: now}
			if text == "" {
				row.text = string(compact)
			}
			name, _ := vecdbStream(a.value("stream")) // it has the limit of memoryStream
			var err error
			if index, err = newVecdbWriter(ctx, e, name, row); err != nil {
				return failed(ctx, vecdbError(err))
			}
			defer index.dir.close()
		}
		log := memoryLog{dir: d, name: stream + ".jsonl", rotateBytes: e.RotateBytes, sync: e.WALFsync, now: now}
		path, err := log.append(ctx, memoryLine(now, stream, compact, text))
		if err != nil {
			return failed(ctx, openFailed)
		}
		if index != nil {
			if err = index.add(ctx); err != nil {
				return tool.Fail(notIndexed + vecdbError(err))
			}
		}
		return tool.Result{Output: appendedOutput(stream, path, now)}
	})
}

// memoryLine returns the line of a memory file, "\n" included.
func memoryLine(now int64, stream string, event []byte, text string) []byte {
	line := make([]byte, 0, len(event)+len(text)+maxStream+64)
	line = strconv.AppendInt(append(line, `{"ts_ms":`...), now, 10)
	line = jsonx.AppendString(append(line, `,"stream":`...), stream)
	if len(event) > 0 {
		line = append(append(line, `,"event":`...), event...)
	}
	if text != "" {
		line = jsonx.AppendString(append(line, `,"text":`...), text)
	}
	return append(line, '}', '\n')
}

func appendedOutput(stream, path string, now int64) []byte {
	out := jsonx.AppendString([]byte(`{"ok":true,"stream":`), stream)
	out = jsonx.AppendString(append(out, `,"file":`...), path)
	out = strconv.AppendInt(append(out, `,"ts_ms":`...), now, 10)
	return append(out, '}')
}

// memoryLog appends to one memory file.
type memoryLog struct {
	dir         *dir
	name        string
	rotateBytes int64
	sync        bool
	now         int64 // Unix milliseconds
}

// append appends line to the file and returns the file's path. A file that has reached its size is put aside before.
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

// rotate gives the file, whose lock is held, the name that rotated files have. Two rotations in one millisecond must not take
// each other's name: only who holds the lock of the file that has the name may rename it, so looking first is enough.
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
