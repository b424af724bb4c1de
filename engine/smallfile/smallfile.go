// Package smallfile reads the files that settings and flags name: settings, tokens, keys,
// certificates.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"trunkline/codec/jsonx"
)

// maxBytes is the size of the largest file that Read takes.
const maxBytes = 1 << 20

// errNotRegular is the error for a directory, a device, a FIFO and the like.
var errNotRegular = errors.New("not a regular file")

// errTooLarge is wrapped by the error for a file with more bytes than are taken.
var errTooLarge = errors.New("too large")

// Read returns the content of a regular file, or of the target of a link, without a leading byte
// order mark. It never waits for the other end of a FIFO. Its errors are *fs.PathError.
func Read(name string) ([]byte, error) { return ReadUpTo(name, maxBytes) }

// ReadUpTo is Read of a file that may have as many bytes as given.
func ReadUpTo(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errNotRegular}
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: more than %d bytes", errTooLarge, most)}
	}
	return jsonx.TrimBOM(text), nil
}
