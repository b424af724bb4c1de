//go:build linux

package load

import (
	"bytes"
	"fmt"
)

// splitAnswers counts the lines in b that begin with good. Lines that begin with greeted, if that
// is not empty, answer a Tape's Hello; any other line is an error. It does not allocate.
func splitAnswers(b []byte, good, greeted string) (used, lines int, err error) {
	for {
		end := bytes.IndexByte(b[used:], '\n')
		if end < 0 {
			return used, lines, nil
		}
		line := b[used : used+end]
		switch {
		case len(line) >= len(good) && string(line[:len(good)]) == good:
			lines++
		case greeted == "" || len(line) < len(greeted) || string(line[:len(greeted)]) != greeted:
			return used, lines, fmt.Errorf("cannot take %q: a reply begins with %s", line, good)
		}
		used += end + 1
	}
}

// SplitLines counts the lines of size bytes, line feed included, that b begins with. Where replies
// are known to be all of one length, a reply with another result is mostly of another length: it is
// an error, and so is a line feed within a reply. It does not allocate.
func SplitLines(b []byte, size int) (used, lines int, err error) {
	for ; len(b)-used >= size; lines++ {
		if end := bytes.IndexByte(b[used:used+size], '\n'); end != size-1 {
			return used, lines, fmt.Errorf("cannot take %q: a reply has %d bytes", b[used:used+size], size)
		}
		used += size
	}
	return used, lines, nil
}
