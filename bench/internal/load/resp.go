//go:build linux

package load

import (
	"bytes"
	"fmt"
	"strconv"
)

// AppendCommand appends a redis command to dst.
func AppendCommand(dst []byte, args ...string) []byte {
	dst = fmt.Appendf(dst, "*%d\r\n", len(args))
	for _, a := range args {
		dst = fmt.Appendf(dst, "$%d\r\n%s\r\n", len(a), a)
	}
	return dst
}

var crlf = []byte("\r\n")

// parseRESP returns the size of the simple or bulk reply b begins with; ok is false with a nil
// error when more bytes are needed. An error reply, a nil bulk and any other type are errors: none
// of them answers a command the benchmark sends.
func parseRESP(b []byte) (size int, ok bool, err error) {
	line := bytes.Index(b, crlf)
	if line < 0 {
		return 0, false, nil
	}
	switch b[0] {
	case '+':
		return line + 2, true, nil
	case '$':
		n, err := bulkLength(b[1:line])
		if err != nil {
			return 0, false, err
		}
		size = line + 2 + n + 2
		return size, len(b) >= size, nil
	}
	return 0, false, fmt.Errorf("cannot take reply %q", b[:line])
}

// bulkLength parses the short digits without a string on the hot path.
func bulkLength(digits []byte) (int, error) {
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' || n > maxFrame {
			return 0, fmt.Errorf("cannot take a bulk reply of length %s", strconv.Quote(string(digits)))
		}
		n = n*10 + int(c-'0')
	}
	if len(digits) == 0 {
		return 0, fmt.Errorf("cannot take a bulk reply without length")
	}
	return n, nil
}
