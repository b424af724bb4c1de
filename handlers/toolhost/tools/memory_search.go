package tools

import (
	"bytes"
	"context"
	"os"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// The bounds of max_bytes, how much of the end of the files of a stream is read (toolhost §4.7).
const (
	minTailBytes     = 4096
	maxTailBytes     = 64 << 20
	defaultTailBytes = 2 << 20
)

// memorySearch is AID.MEMORY.SEARCH.v1: it finds the newest lines of a stream that have some text in them (toolhost §4.7).
func memorySearch(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:         "AID.MEMORY.SEARCH.v1",
		Name:        "memory_search",
		Tags:        []string{"tag.memory", "tag.fs", "tag.meta"},
		SideEffects: []string{"filesystem_read"},
	}, func(ctx context.Context, c *tool.Call) tool.Result {
		a := pick(c.Input, "stream", "contains", "limit", "max_bytes")
		stream, ok := memoryStream(a.value("stream"))
		if !ok {
			return tool.Fail(invalidStream)
		}
		contains, _ := a.text("contains")
		s := search{
			contains: []byte(contains),
			limit:    int(clamped(a.value("limit"), 1, 200, 20)),
			maxBytes: clamped(a.value("max_bytes"), minTailBytes, maxTailBytes, defaultTailBytes),
		}
		s.out = jsonx.AppendString(append(s.out, `{"ok":true,"stream":`...), stream)
		s.out = append(s.out, `,"matches":[`...)
		if why := s.stream(ctx, e, stream); why != "" {
			return tool.Fail(why)
		}
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		s.out = strconv.AppendInt(append(s.out, `],"count":`...), int64(s.count), 10)
		return done(append(s.out, '}'))
	})
}

// search looks for lines and writes those it finds.
type search struct {
	contains []byte
	limit    int
	maxBytes int64
	count    int
	out      []byte
}

// stream searches the file of that stream; why is the text of an error.
func (s *search) stream(ctx context.Context, e *Env, stream string) (why string) {
	d, why := memoryDir(e, false)
	if d == nil {
		return why
	}
	defer d.close()
	f, err := d.open(stream+".jsonl", os.O_RDONLY, 0)
	if isMissing(err) {
		return ""
	}
	if err != nil {
		return openFailed
	}
	defer f.Close()
	if err = s.file(ctx, f); err != nil && ctx.Err() == nil {
		return openFailed
	}
	return ""
}

// file searches f from its end until there are enough matches, or more than a reply can carry, or nobody waits any more.
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
		if len(line) == 0 || !bytes.Contains(line, s.contains) || lines.torn && !isWhole(line) {
			continue
		}
		if s.count++; s.count > 1 {
			s.out = append(s.out, ',')
		}
		s.out = jsonx.AppendString(s.out, line)
	}
	return nil
}

// isWhole tells whether a line without an end is all there is of it: then it is JSON, which no proper part of an object is.
func isWhole(line []byte) bool { return jsonx.Check(line, jsonx.MaxDepth).OK() }

// tailOf returns a reader of the last limit bytes of f, which fails when ctx is done.
func tailOf(ctx context.Context, f *os.File, limit int64) (*tail, error) {
	size, err := sizeOf(f)
	if err != nil {
		return nil, err
	}
	return newTail(&untilDoneAt{ctx: ctx, from: f}, size, limit)
}
