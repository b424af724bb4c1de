package builtin

import (
	"bytes"
	"context"
	"io"
	"os"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

const (
	// tailChunk is how much of a file tail reads at a time, as long as no line is longer.
	tailChunk = 64 << 10
	// maxLine is the longest line that tail gives out, in bytes: a line with maxContent of control
	// characters of six bytes each is shorter. It bounds what tail holds to a few times as much.
	maxLine = 8 << 20
)

// tail reads the lines of the end of a file, last one first, holding one chunk or line of it.
//
//	file   ......partial\nline\nline\nline\n
//	             ^start    ^pos     ^        the buffer holds the file from pos to the next line
type tail struct {
	file  io.ReaderAt
	size  int64 // of the file, when it was opened
	start int64 // the first byte that may be read
	pos   int64 // the offset in the file of buf[front]
	buf   []byte
	front int   // buf[front:back] is read and not yet given out
	back  int   // as front
	clean int   // only buf[front:clean] may hold a line end
	begun bool  // Next was called
	whole bool  // a line begins at start, and it was not given out
	long  bool  // the end of the line that is buffered was thrown away
	torn  bool  // the line that Next gave last does not end in "\n"
	at    int64 // the offset in the file of the line that Next gave last
}

// newTail reads the last limit bytes of the first size bytes of file. It fails if file does.
func newTail(file io.ReaderAt, size, limit int64) (*tail, error) {
	t := &tail{file: file, size: size, start: max(size-limit, 0), pos: size, whole: true}
	if t.start == 0 {
		return t, nil
	}
	// The byte before a window decides whether the window begins with a line.
	var before [1]byte
	if n, err := file.ReadAt(before[:], t.start-1); n < 1 && err != io.EOF {
		return nil, err
	}
	t.whole = before[0] == '\n'
	return t, nil
}

// next returns the line before the one it returned last, without its "\n" or "\r\n"; ok is false
// when there is none. The line is lent until the next call. Left out are a line that begins before
// the window (toolhost §4.7), those over maxLine, and all of a file that was cut shorter meanwhile.
func (t *tail) next() (line []byte, ok bool, err error) {
	t.torn = false
	if !t.begun {
		t.begun = true
		err = t.dropEnd()
	}
	for err == nil {
		n := bytes.LastIndexByte(t.buf[t.front:t.clean], '\n')
		if n < 0 && t.pos > t.start {
			err = t.fill()
			continue
		}
		if n < 0 && !t.whole {
			return nil, false, nil
		}
		if line, ok = t.take(n); ok {
			return line, true, nil
		}
		t.torn = false
	}
	if err == io.EOF {
		err = nil
	}
	return nil, false, err
}

// take gives out the line behind n, -1 for the first line. ok is false if it is too long.
func (t *tail) take(n int) (line []byte, ok bool) {
	line = t.buf[t.front+n+1 : t.back]
	ok = !t.long && len(line) <= maxLine
	t.at = t.pos + int64(n+1)
	t.long = false
	t.whole = t.whole && n >= 0
	t.back = t.front + max(n, 0)
	t.clean = t.back
	return bytes.TrimSuffix(line, []byte{'\r'}), ok
}

// dropEnd takes the line end away that closes the file. Without one the last line is torn.
func (t *tail) dropEnd() error {
	if t.pos == t.start {
		t.whole = false
		return nil
	}
	if err := t.fill(); err != nil {
		return err
	}
	if t.torn = t.buf[t.back-1] != '\n'; !t.torn {
		t.back--
		t.clean = t.back
	}
	return nil
}

// fill reads the bytes before the buffered ones, which have no line end among them: as many as are
// buffered, so that a long line costs time proportional to its length, and at least a chunk.
func (t *tail) fill() error {
	if t.back-t.front > maxLine {
		t.back, t.long = t.front, true
	}
	held := t.back - t.front
	n := int(min(int64(max(tailChunk, held)), t.pos-t.start))
	t.makeRoom(n, held)
	if got, err := t.file.ReadAt(t.buf[t.front-n:t.front], t.pos-int64(n)); got < n {
		return err
	}
	t.clean = t.front
	t.front -= n
	t.pos -= int64(n)
	return nil
}

func (t *tail) makeRoom(n, held int) {
	if n <= t.front {
		return
	}
	buf := t.buf
	if len(buf) < n+held {
		buf = make([]byte, n+held)
	}
	copy(buf[len(buf)-held:], t.buf[t.front:t.back])
	t.buf, t.front, t.back = buf, len(buf)-held, len(buf)
}

// The bounds of max_bytes, how much of the end of the files of a stream is read (toolhost §4.7).
const (
	minTailBytes     = 4096
	maxTailBytes     = 64 << 20
	defaultTailBytes = 2 << 20
)

func memorySearch(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	a := pick(c.Input, "stream", "contains", "limit", "max_bytes")
	stream, ok := streamName(a.value("stream"), memorySpecial)
	if !ok {
		return nil, errInvalidStream
	}
	contains, _ := a.text("contains")
	s := search{
		contains: []byte(contains),
		limit:    int(a.clamped("limit", 1, 200, 20)),
		maxBytes: a.clamped("max_bytes", minTailBytes, maxTailBytes, defaultTailBytes),
		out:      append(jsonx.Build(nil).Bool("ok", true).Text("stream", stream).Name("matches"), '['),
	}
	if err := s.stream(ctx, e, stream); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return sized(jsonx.Builder(append(s.out, ']')).Int("count", int64(s.count)).End())
}

type search struct {
	contains []byte
	limit    int
	maxBytes int64
	count    int
	out      []byte
}

func (s *search) stream(ctx context.Context, e *Env, stream string) error {
	d, err := memoryDir(e, false)
	if d == nil {
		return err
	}
	defer d.close()
	f, err := d.open(stream+".jsonl", os.O_RDONLY, 0)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return errOpenFailed
	}
	defer f.Close()
	if s.file(ctx, f) != nil {
		return errOpenFailed
	}
	return nil
}

// file searches f from its end until there are enough matches or more than a reply can carry.
func (s *search) file(ctx context.Context, f *os.File) error {
	lines, err := tailOf(ctx, f, s.maxBytes)
	if err != nil {
		return err
	}
	for s.count < s.limit && len(s.out) <= maxOutput && ctx.Err() == nil {
		line, ok, err := lines.next()
		if !ok {
			return err
		}
		// A line without an end is whole if it is JSON, which no proper part of an object is.
		whole := !lines.torn || jsonx.Check(line, jsonx.MaxDepth).OK()
		if len(line) > 0 && bytes.Contains(line, s.contains) && whole {
			s.count++
			s.out = jsonx.AppendString(jsonx.AppendComma(s.out), line)
		}
	}
	return nil
}

// tailOf returns a reader of the last limit bytes of f, which fails when ctx is done.
func tailOf(ctx context.Context, f *os.File, limit int64) (*tail, error) {
	size, err := sizeOf(f)
	if err != nil {
		return nil, err
	}
	return newTail(&untilDone{ctx: ctx, at: f}, size, limit)
}
