package threadstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/minio/minlz"
)

// A run is a row with several messages of a thread, one behind the other without a gap: the row of
// each behind its length as u32. Its key has the number of the last one, so that a scan from a
// number on begins with the run that has it. Its value begins with how it is kept. It is compressed
// here, once, and not in each merge of files.
const (
	runPlain      = 0
	runCompressed = 1
	// runCompress is how long a run is that is worth it.
	runCompress = 1 << 10
	// maxRun bounds a run.
	maxRun = 8 << 20

	// runMessages and runBytes bound a run; a message that is longer has its own.
	runMessages = 256
	runBytes    = 64 << 10
	runLength   = 4
)

// errBadRun means that a run cannot be read.
var errBadRun = errors.New("cannot parse a run of messages")

// appendRun appends the value of a run. buf is for it to use.
func appendRun(dst, run []byte, buf *[]byte) []byte {
	if len(run) >= runCompress && len(run) <= maxRun {
		if n := minlz.MaxEncodedLen(len(run)); cap(*buf) < n {
			*buf = make([]byte, n)
		}
		if small := minlz.TryEncode((*buf)[:cap(*buf)], run, minlz.LevelFastest); small != nil {
			return append(append(dst, runCompressed), small...)
		}
	}
	return append(append(dst, runPlain), run...)
}

// openRun returns the run of a value; buf is for it to use.
func openRun(value []byte, buf *[]byte) ([]byte, error) {
	switch {
	case len(value) == 0 || value[0] > runCompressed:
		return nil, errBadRun
	case value[0] == runPlain:
		return value[1:], nil
	}
	n, err := minlz.DecodedLen(value[1:])
	if err != nil || n > maxRun {
		return nil, errBadRun
	}
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	run, err := minlz.Decode((*buf)[:n], value[1:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBadRun, err)
	}
	return run, nil
}

// nextInRun returns the first message of a run and the rest of the run.
func nextInRun(run []byte) (row, rest []byte, err error) {
	if len(run) < runLength {
		return nil, nil, errBadRun
	}
	n := binary.BigEndian.Uint32(run)
	if run = run[runLength:]; uint64(n) > uint64(len(run)) {
		return nil, nil, errBadRun
	}
	return run[:n], run[n:], nil
}

// inRun returns how many messages a run has.
func inRun(run []byte) (n uint64, err error) {
	for len(run) > 0 && err == nil {
		_, run, err = nextInRun(run)
		n++
	}
	return n, err
}

// parseRun returns a run, how many messages it has, and the number of the last one.
func parseRun(key, value []byte, buf *[]byte) (last uint64, run []byte, n uint64, err error) {
	last = binary.BigEndian.Uint64(key[len(key)-8:])
	if run, err = openRun(value, buf); err == nil {
		n, err = inRun(run)
	}
	if err == nil && n > last {
		err = errBadRun
	}
	if err != nil {
		err = fmt.Errorf("%w, the one up to message %d", err, last)
	}
	return last, run, n, err
}

// runScan reads the messages of a thread from a number on.
type runScan struct {
	next uint64
	bad  error
	buf  *[]byte // of a run
	// f is called with each of them, until it returns false. Slices are lent.
	f func(seq uint64, row []byte) bool
}

// run takes a row of the scan and reports whether the scan goes on.
func (s *runScan) run(key, value []byte) bool {
	last, run, n, err := parseRun(key, value, s.buf)
	if s.bad = err; err != nil {
		return false
	}
	if last-n+1 > s.next {
		return false // there is a gap
	}
	for seq := last - n + 1; seq <= last; seq++ {
		var row []byte
		if row, run, s.bad = nextInRun(run); s.bad != nil {
			return false
		}
		if seq == s.next {
			if s.next++; !s.f(seq, row) {
				return false
			}
		}
	}
	return true
}

// scanStored calls f with the stored messages of thread number from first to last, until it returns
// false.
func (e *Engine) scanStored(number, first, last uint64, f func(seq uint64, row []byte) bool) error {
	on := true
	buf, _ := e.runs.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer e.runs.Put(buf)
	s := runScan{next: first, buf: buf, f: func(seq uint64, row []byte) bool {
		on = f(seq, row) && seq < last
		return on
	}}
	err := e.disk.Scan(appendMessageKey(nil, number, first), appendMessageKey(nil, number+1, 0), false, s.run)
	if err = errors.Join(err, s.bad); err == nil && on {
		err = errLostRow
	}
	return err
}

// cut adds to the rows what removes the stored messages of a thread from first on: those that are
// put next have the same numbers. There may be some after a start, if the journal was replayed or
// has lost its end.
func (w *storer) cut(number, first uint64) error {
	var bad error
	err := w.e.disk.Scan(appendMessageKey(nil, number, first), appendMessageKey(nil, number+1, 0), false, func(key, value []byte) bool {
		var last, n uint64
		var run []byte
		if last, run, n, bad = parseRun(key, value, &w.work); bad != nil {
			return false
		}
		w.rows = append(w.rows, append([]byte(nil), key...), nil)
		if start := last - n + 1; start < first {
			left := run
			for range first - start {
				_, left, _ = nextInRun(left)
			}
			w.rows = append(w.rows, appendMessageKey(nil, number, first-1), append([]byte{runPlain}, run[:len(run)-len(left)]...))
		}
		return true
	})
	return errors.Join(err, bad)
}
