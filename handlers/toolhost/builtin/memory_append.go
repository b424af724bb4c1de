package builtin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	maxRotateTries = 1000
	rotatedSuffix  = ".rotated"
)

var (
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
		return nil, errors.New("missing event or text")
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
	return errors.New("cannot rotate: every name is taken")
}

const (
	maxStream = 128
	// maxOutput is the longest output of a reply (§3.4). A longer one is not built to its end.
	maxOutput = 1 << 20
)

// The errors of these tools that more than one of them has. Where toolhost §4.7 gives no text for a
// file that cannot be used, the text is that of errOpenFailed.
var (
	errInvalidStream = errors.New("invalid stream")
	errOpenFailed    = errors.New("open failed")
	errMemoryOutside = errors.New("MACHINA_MEMORY_ROOT must be under MACHINA_ROOT")
	errMissingText   = errors.New("missing text")
)

// Characters of a stream's name that file names have, beside letters and digits (toolhost §4.7).
const (
	memorySpecial = "._-"
	vecdbSpecial  = "_-"
)

// streamName returns the name of a stream in file names: "default" if absent or empty.
func streamName(v jsonx.Value, special string) (name string, ok bool) {
	given, _ := v.Text()
	if len(given) == 0 {
		return "default", true
	}
	return cleanStream(string(given), special)
}

// cleanStream replaces each character by "_" that is neither an ASCII letter or digit nor in
// special. The limit is one of the given bytes.
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

// appendNumber appends the shortest text that reads back as x, which is finite.
func appendNumber(dst []byte, x float64) []byte {
	if size := math.Abs(x); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.AppendFloat(dst, x, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, x, 'f', -1, 64)
}

// sized returns output, unless no reply can carry it.
func sized(output []byte) ([]byte, error) {
	if len(output) > maxOutput {
		return nil, errors.New("output exceeds 1MB limit")
	}
	return output, nil
}

// How long lockFile waits between two tries.
const (
	firstLockWait = 50 * time.Microsecond
	lastLockWait  = 5 * time.Millisecond
)

// lockFile takes the advisory lock of f, unix.LOCK_EX or LOCK_SH, that other writers take as well
// (toolhost §4.7 "Memory"); closing f releases it. The call waits without its place.
func lockFile(ctx context.Context, f *os.File, how int) error {
	err := tryLock(ctx, f, how)
	if err == unix.EWOULDBLOCK {
		err = tool.Aside(ctx, func() error { return waitForLock(ctx, f, how) })
	}
	return err
}

// waitForLock polls: ctx could not end a wait in the system.
func waitForLock(ctx context.Context, f *os.File, how int) error {
	for wait := firstLockWait; ; wait = min(2*wait, lastLockWait) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		if err := tryLock(ctx, f, how); err != unix.EWOULDBLOCK {
			return err
		}
	}
}

// tryLock fails with unix.EWOULDBLOCK if another writer has the lock.
func tryLock(ctx context.Context, f *os.File, how int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return retry(func() error { return unix.Flock(int(f.Fd()), how|unix.LOCK_NB) })
}

// openLocked opens the file name in d to append to, makes it if missing, and holds its lock until
// it is closed. A file renamed or removed during the wait is given up for the one with the name.
func openLocked(ctx context.Context, d *dir, name string) (*os.File, error) {
	for {
		f, err := d.open(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, filePerm)
		if err != nil {
			return nil, err
		}
		if err = lockFile(ctx, f, unix.LOCK_EX); err == nil && isEntryOf(d, name, f) {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, err
		}
	}
}

func isEntryOf(d *dir, name string, f *os.File) bool {
	now, err := d.lstat(name)
	if err != nil {
		return false
	}
	var mine unix.Stat_t
	err = retry(func() error { return unix.Fstat(int(f.Fd()), &mine) })
	return err == nil && mine.Dev == now.Dev && mine.Ino == now.Ino
}

func sizeOf(f *os.File) (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// appendWhole appends data to f, which is size long and locked, in one write, and makes it durable
// if sync is set. If that fails the file is as it was before.
func appendWhole(f *os.File, size int64, data []byte, sync bool) error {
	_, err := f.Write(data)
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		_ = f.Truncate(size)
	}
	return err
}

// appendLine appends line, with its "\n", to f as appendWhole does. A line without an end, left by
// a killed writer, gets one in the same write, so that the two stay apart.
func appendLine(f *os.File, size int64, line []byte, sync bool) error {
	if size > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	return appendWhole(f, size, line, sync)
}
