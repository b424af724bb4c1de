//go:build linux

package load

import (
	"bytes"
	"fmt"
)

// splitAnswers counts the lines in b that begin with good, and those that begin with event, if that
// is not empty. Lines that begin with greeted, the same, answer a Tape's Hello; any other line is
// an error. It does not allocate.
func splitAnswers(b []byte, good, greeted, event string) (used, lines, events int, err error) {
	begins := func(line []byte, head string) bool { return len(line) >= len(head) && string(line[:len(head)]) == head }
	for {
		end := bytes.IndexByte(b[used:], '\n')
		if end < 0 {
			return used, lines, events, nil
		}
		line := b[used : used+end]
		switch {
		case begins(line, good):
			lines++
		case event != "" && begins(line, event):
			events++
		case greeted == "" || !begins(line, greeted):
			return used, lines, events, fmt.Errorf("cannot take %q: a reply begins with %s", line, good)
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
