package tools

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"strconv"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/dsstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	// scanRows is after which line ERROR_SCAN stops if the caller does not say.
	scanRows = 1_000_000
	// scanLine is how many bytes of a line it looks at: the rest is cut.
	scanLine = 1 << 20
	// maxSamples is how many of the lines found it shows, and how many REPORT_SUMMARY prints.
	maxSamples = 5
)

// errorScan counts the lines of a file that contain a text.
func errorScan(e *Env) Builtin {
	return builtin(tool.Descriptor{
		AID:           "AID.ERROR_SCAN.v1",
		Name:          "error_scan_csv",
		Deterministic: true,
		Tags:          []string{"tag.log", "tag.scan", "tag.error"},
		SideEffects:   []string{"filesystem_read"},
		ReplayInputs:  []string{"input_path_fingerprint"},
	}, func(ctx context.Context, c *tool.Call) tool.Result { return runErrorScan(ctx, e, c) })
}

func runErrorScan(ctx context.Context, e *Env, c *tool.Call) tool.Result {
	in := pick(c.Input, "input_path", "pattern", "max_rows")
	path, _ := in.text("input_path")
	pattern, _ := in.text("pattern")
	if path == "" || pattern == "" {
		return tool.Fail("missing input_path/pattern")
	}
	f, _, err := e.openInput(path)
	if err == errNotRegular {
		err = os.ErrInvalid // this tool has no other word for it than for a file that is not there
	}
	if err != nil {
		return tool.Fail(readFailure(path, err))
	}
	defer f.Close()
	s := scan{pattern: []byte(pattern), maxRows: in.integer("max_rows", scanRows)}
	if err := s.run(ctx, f); err != nil {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		return tool.Fail("cannot open file: " + path)
	}
	out := s.appendResult(nil)
	c.State.Set(0, dsstate.Artifact{Type: "table_summary", Provenance: "scan:" + pattern, Content: string(out), Size: s.matches})
	return tool.Result{Output: out}
}

// scan is one pass over the lines of a file. It keeps one line and the samples.
type scan struct {
	pattern []byte
	maxRows int64
	matches int64
	samples []byte // the elements of sample_rows
	shown   int
}

func (s *scan) run(ctx context.Context, from io.Reader) error {
	lines := lineReader{from: bufio.NewReaderSize(&untilDone{ctx: ctx, from: from}, 64<<10)}
	for row := int64(1); row <= s.maxRows; row++ {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if row > 1 && bytes.Contains(line, s.pattern) { // the first line is the header
			s.found(row, line)
		}
	}
	return nil
}

// found counts line and keeps it if it is among the first. Samples that no reply can carry any more are not added to: the count
// still is right, and the server refuses the output as a whole (toolhost §3.4).
func (s *scan) found(row int64, line []byte) {
	s.matches++
	if s.shown == maxSamples || len(s.samples) > dsstate.MaxBytes {
		return
	}
	if s.shown++; s.shown > 1 {
		s.samples = append(s.samples, ',')
	}
	s.samples = appendSample(s.samples, row, line)
}

func appendSample(dst []byte, row int64, line []byte) []byte {
	dst = append(dst, `{"row_index":`...)
	dst = strconv.AppendInt(dst, row, 10)
	dst = append(dst, `,"row":`...)
	dst = jsonx.AppendString(dst, line)
	return append(dst, '}')
}

func (s *scan) appendResult(dst []byte) []byte {
	dst = append(dst, `{"matches":`...)
	dst = strconv.AppendInt(dst, s.matches, 10)
	dst = append(dst, `,"sample_rows":[`...)
	dst = append(dst, s.samples...)
	return append(dst, `]}`...)
}

// lineReader reads lines of any length and keeps no more than scanLine bytes of one.
type lineReader struct {
	from *bufio.Reader
	long []byte // a line that is longer than the reader's buffer
}

// next returns the next line without its "\n", cut to scanLine bytes, valid until the next call. A "\r" before that belongs to the
// line (toolhost §11). After the last line it is io.EOF.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.from.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte{'\n'})
		if err == nil && len(l.long) == 0 {
			return part, nil
		}
		if err == nil || err == bufio.ErrBufferFull || err == io.EOF {
			l.long = append(l.long, part[:min(len(part), scanLine-len(l.long))]...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == nil, err == io.EOF && len(l.long) > 0:
			return l.long, nil
		default:
			return nil, err
		}
	}
}
