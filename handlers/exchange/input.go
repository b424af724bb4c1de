package exchange

import (
	"errors"
	"io"
	"math"
)

const (
	firstBuffer  = 8 << 10 // holds nearly every envelope (envelope §10)
	maxIdleReads = 100     // reads in a row that bring neither a byte nor an error
	trust        = 16      // an announced size is believed once this part of it has come
)

// errTooLarge means that there is at least one byte beyond the limit.
var errTooLarge = errors.New("more bytes than the limit")

// readAll reads r to its end into buf's memory, which grows as bytes come. announced is the size in
// bytes from the sender (0 or less: none); it costs nothing until a part of the bytes is there. One
// byte beyond limit is errTooLarge. The bytes read so far come with every error.
func readAll(r io.Reader, buf []byte, limit int, announced int64) ([]byte, error) {
	limit = min(limit, math.MaxInt-1)
	buf = buf[:0]
	for idle := 0; idle < maxIdleReads; idle++ {
		if len(buf) == cap(buf) {
			buf = enlarge(buf, limit, announced)
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return buf, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case n > 0:
			idle = 0
		}
	}
	return buf, io.ErrNoProgress
}

// enlarge returns a copy of buf with more room, but for at most limit and one byte more.
func enlarge(buf []byte, limit int, announced int64) []byte {
	size := max(2*cap(buf), firstBuffer)
	if announced > int64(size) && announced/trust <= int64(len(buf)) {
		size = int(min(announced, int64(limit))) + 1 // one more byte, or the end is seen only after another copy
	}
	return append(make([]byte, 0, min(size, limit+1)), buf...)
}
