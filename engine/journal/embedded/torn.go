package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// endedAt finds where the replay of a log ended. Pebble reports it in its log only.
var endedAt = regexp.MustCompile(`stopped reading at offset: \((?:.*[/\\])?(\d+)\.log: (\d+)\)`)

// tornTail learns from pebble's log where the last log file ends, and checks whether it ends in a
// part of a record. It is the logger of a database that is opened for reading.
type tornTail struct {
	name   string // of the file, "" where nothing is torn
	number uint64
	offset int64
}

// Infof implements pebble.Logger.
func (t *tornTail) Infof(format string, args ...any) {
	m := endedAt.FindStringSubmatch(fmt.Sprintf(format, args...))
	if m == nil {
		return
	}
	number, err := strconv.ParseUint(m[1], 10, 64)
	offset, also := strconv.ParseInt(m[2], 10, 64)
	if errors.Join(err, also) == nil && number >= t.number {
		t.name, t.number, t.offset = m[1]+".log", number, offset
	}
}

// Errorf implements pebble.Logger.
func (t *tornTail) Errorf(string, ...any) {}

// Fatalf implements pebble.Logger. It cannot be reached without a write.
func (t *tornTail) Fatalf(string, ...any) {}

// The parts of a record's header that all formats of pebble's log share, and the chunk types with a
// log number.
const (
	chunkHeader    = 11 // checksum:4 length:2 type:1 log number:4, little endian
	longestHeader  = 19
	logPage        = 32 << 10
	firstTypedLog  = 5
	lastTypedLog   = 12
	chunkType      = 6
	chunkLogNumber = 7
)

// look keeps the place only for a part of a record. Zeros are space laid out ahead. A chunk with
// another log number is from the file's former life, or the mark of an orderly end.
func (t *tornTail) look(fsys vfs.FS, dir string) error {
	if t.name == "" {
		return nil
	}
	f, err := fsys.Open(fsys.PathJoin(dir, t.name))
	if errors.Is(err, os.ErrNotExist) {
		t.name = ""
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	defer f.Close()
	at := t.offset
	if rest := logPage - at%logPage; rest < longestHeader {
		at += rest // no chunk fits there
	}
	var b [chunkHeader]byte
	n, err := f.ReadAt(b[:], at)
	if err != nil && err != io.EOF {
		return fmt.Errorf("cannot read journal %s: %w", dir, err)
	}
	if !t.begun(b[:n]) {
		t.name = ""
	}
	return nil
}

// begun reports whether b, where the next chunk would be, is a part of one of this log.
func (t *tornTail) begun(b []byte) bool {
	if allZero(b) {
		return false
	}
	if len(b) < chunkHeader {
		return true
	}
	known := b[chunkType] >= firstTypedLog && b[chunkType] <= lastTypedLog
	return !known || binary.LittleEndian.Uint32(b[chunkLogNumber:]) == uint32(t.number)
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
