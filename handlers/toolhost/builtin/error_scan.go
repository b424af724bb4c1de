package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	// scanRows is after which line ERROR_SCAN stops if the caller gives no number.
	scanRows = 1_000_000
	// scanLine is how many bytes of a line it looks at: the rest is cut.
	scanLine = 1 << 20
	// maxSamples is how many of the lines found it shows, and how many REPORT_SUMMARY prints.
	maxSamples = 5
)

func errorScan(ctx context.Context, e *Env, c *tool.Call) ([]byte, error) {
	in := pick(c.Input, "input_path", "pattern", "max_rows")
	path, _ := in.text("input_path")
	pattern, _ := in.text("pattern")
	if path == "" || pattern == "" {
		return nil, errors.New("missing input_path/pattern")
	}
	f, _, err := e.openInput(path)
	if err == errOutside {
		return nil, inputError(path, err)
	}
	if err != nil {
		return nil, inputError(path, nil) // this tool has one text for all other reasons
	}
	defer f.Close()
	s := scan{pattern: []byte(pattern), maxRows: in.integer("max_rows", scanRows)}
	if err := s.run(ctx, f); err != nil {
		return nil, inputError(path, nil)
	}
	out := append(append(jsonx.Build(nil).Int("matches", s.matches).Name("sample_rows"), '['), s.samples...)
	out = append(out, `]}`...)
	c.State.Set(0, sessionstate.Artifact{
		Type: "table_summary", Provenance: "scan:" + pattern, Content: string(out), Size: s.matches,
	})
	return out, nil
}

// scan is one pass over the lines of a file. It keeps one line and the samples.
type scan struct {
	pattern []byte
	maxRows int64
	matches int64
	samples []byte // the elements of sample_rows
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

// found counts line and keeps it among the first. Samples beyond what a reply can carry are not
// added to: the count still is right, and the server refuses the output (toolhost §3.4).
func (s *scan) found(row int64, line []byte) {
	s.matches++
	if s.matches > maxSamples || len(s.samples) > sessionstate.MaxBytes {
		return
	}
	if s.matches > 1 {
		s.samples = append(s.samples, ',')
	}
	s.samples = jsonx.Build(s.samples).Int("row_index", row).Bytes("row", line).End()
}

// lineReader reads lines of any length and keeps no more than scanLine bytes of one.
type lineReader struct {
	from *bufio.Reader
	long []byte // a line that is longer than the reader's buffer
}

// next returns the next line without its "\n", cut to scanLine bytes, valid until the next call. A
// "\r" before that belongs to the line (toolhost §11). After the last line it is io.EOF.
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

// maxDepth is how deep JSON inside a document may nest (toolhost §2.4).
const maxDepth = 32

// reportSummary makes a text for people of any JSON object in DS0, as ERROR_SCAN leaves one.
func reportSummary(_ context.Context, _ *Env, c *tool.Call) ([]byte, error) {
	ds0, ok := c.State.Get(0)
	if !ok || !isObject([]byte(ds0.Content), maxDepth) {
		return nil, errors.New("missing DS0 (expected scan result)")
	}
	found := pick([]byte(ds0.Content), "matches", "sample_rows")
	matches := found.integer("matches", 0)
	out := jsonx.Build(nil).Text("title", "Error Scan Report").Int("matches", matches).
		Bytes("text", appendReport(nil, matches, found.value("sample_rows"))).End()
	c.State.Set(2, sessionstate.Artifact{Type: "report", Provenance: "report_summary", Content: string(out)})
	return out, nil
}

func isObject(text []byte, depth int) bool {
	return jsonx.Check(text, depth).OK() && jsonx.ValueOf(text).Kind == jsonx.ObjectStart
}

func appendReport(dst []byte, matches int64, samples jsonx.Value) []byte {
	dst = fmt.Appendf(dst, "Error Scan Report\nmatches: %d\nsamples:\n", matches)
	rows := jsonx.OpenArray(samples.Raw)
	for shown := 0; shown < maxSamples; {
		v, ok := rows.Next()
		if !ok {
			break
		}
		if v.Kind == jsonx.ObjectStart {
			sample := pick(v.Raw, "row_index", "row")
			row, _ := sample.text("row")
			dst = fmt.Appendf(dst, "- [%d] %s\n", sample.integer("row_index", 0), row)
			shown++
		}
	}
	return dst
}
