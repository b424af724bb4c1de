package tools

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"trunkline/codec/jsonx"
)

// documents reads what the query may find: of the files of the stream, newest first, the entries of
// the last maxBytes, newest first.
func (q *query) documents(ctx context.Context, e *Env) (docs []*document, err error) {
	d, err := memoryDir(e, false)
	if d == nil {
		return nil, err
	}
	defer d.close()
	r := reading{query: q, left: q.maxBytes}
	if err := r.stream(ctx, d); err != nil {
		return nil, errOpenFailed
	}
	return r.docs, nil
}

type reading struct {
	query *query
	left  int64 // bytes that may still be read
	docs  []*document
}

// stream reads the stream's file and then rotated ones. The file is open before the others are
// listed: if it is rotated in between, it is passed over among them, and nothing is missed.
func (r *reading) stream(ctx context.Context, d *dir) error {
	name, files := r.query.stream+".jsonl", r.query.maxFiles
	current, err := d.open(name, os.O_RDONLY, 0)
	switch {
	case err == nil:
		defer current.Close()
		if err = r.file(ctx, current); err != nil {
			return err
		}
		files--
	case !isMissing(err):
		return err
	}
	if files == 0 {
		return nil
	}
	times, err := rotations(ctx, d, name, files+1)
	if err != nil {
		return err
	}
	for _, at := range times {
		if files == 0 || r.full() {
			break
		}
		read, err := r.rotated(ctx, d, rotatedName(name, at), current)
		if err != nil {
			return err
		}
		if read {
			files--
		}
	}
	return nil
}

// rotated reads the rotated file name, unless it is current or was removed.
func (r *reading) rotated(ctx context.Context, d *dir, name string, current *os.File) (read bool, err error) {
	if current != nil && isEntryOf(d, name, current) {
		return false, nil
	}
	f, err := d.open(name, os.O_RDONLY, 0)
	if isMissing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return true, r.file(ctx, f)
}

func (r *reading) full() bool { return r.left <= 0 || len(r.docs) >= r.query.maxEntries }

func (r *reading) file(ctx context.Context, f *os.File) error {
	lines, err := tailOf(ctx, f, r.left)
	if err != nil {
		return err
	}
	for !r.full() {
		if err = ctx.Err(); err != nil {
			return err
		}
		line, ok, err := lines.next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if doc := r.query.document(line); doc != nil {
			doc.file = f.Name()
			r.docs = append(r.docs, doc)
		}
	}
	r.left -= lines.size - lines.start
	return nil
}

// document returns the entry that line is, nil if it is none or belongs to another stream: the
// names of two streams may differ only in characters that the name of a file does not have.
func (q *query) document(line []byte) *document {
	if !isObject(line, jsonx.MaxDepth) {
		return nil
	}
	a := pick(line, "stream", "ts_ms", "text", "event")
	if given, ok := a.text("stream"); ok {
		if clean, ok := cleanStream(given, memorySpecial); !ok || clean != q.stream {
			return nil
		}
	}
	d := &document{ts: timeOf(a)}
	if text, ok := a.text("text"); ok {
		d.text = []byte(text)
	} else if event := a.value("event"); event.Kind != jsonx.End && event.Kind != jsonx.Null {
		d.text = jsonx.Compact(bytes.Clone(event.Raw))
	} else {
		d.text = bytes.Clone(line)
	}
	if q.debug {
		d.raw = bytes.Clone(line)
	}
	return d
}

// timeOf returns the Unix milliseconds ts_ms; a fraction is cut off. It is 0 if that is no number
// or one that int64 does not hold.
func timeOf(a args) int64 {
	if n := a.integer("ts_ms", 0); n != 0 {
		return n
	}
	if x := math.Trunc(a.number("ts_ms", 0)); math.Abs(x) < 1<<63 {
		return int64(x)
	}
	return 0
}

func rotatedName(name string, at int64) string {
	return name + "." + strconv.FormatInt(at, 10) + rotatedSuffix
}

// rotations returns the times of the rotated files of the file name, newest first, at most n.
func rotations(ctx context.Context, d *dir, name string, n int) (times []int64, err error) {
	err = d.names(func(entry string) bool {
		if at, ok := rotationOf(entry, name); ok {
			i, _ := slices.BinarySearchFunc(times, at, func(a, b int64) int { return cmp.Compare(b, a) })
			if i < n {
				times = slices.Insert(times, i, at)
				times = times[:min(n, len(times))]
			}
		}
		return ctx.Err() == nil
	})
	if err == nil {
		err = ctx.Err()
	}
	return times, err
}

func rotationOf(entry, name string) (at int64, ok bool) {
	rest, _ := strings.CutPrefix(entry, name+".")
	at, err := strconv.ParseInt(strings.TrimSuffix(rest, rotatedSuffix), 10, 64)
	return at, err == nil && at >= 0 && rotatedName(name, at) == entry
}
