//go:build linux

package load

import (
	"bytes"
	"fmt"
)

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
