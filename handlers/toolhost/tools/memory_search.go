package tools

import (
	"bytes"
	"context"
	"os"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// The bounds of max_bytes, how much of the end of the files of a stream is read (toolhost §4.7).
const (
	minTailBytes     = 4096
	maxTailBytes     = 64 << 20
	defaultTailBytes = 2 << 20
)

// memorySearch finds the newest lines of a stream that have some text in them (toolhost §4.7).
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

// search looks for lines and writes those it finds.
type search struct {
	contains []byte
	limit    int
	maxBytes int64
	count    int
	out      []byte
}

// stream searches the file of that stream.
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

// file searches f from its end until there are enough matches, or more than a reply can carry, or the call has ended.
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
	return newTail(&untilDoneAt{ctx: ctx, from: f}, size, limit)
}
