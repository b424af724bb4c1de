package store

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
)

func TestCheckSnapshot(t *testing.T) {
	number := string(make([]byte, 8))
	rec := func(body string) string { return string(binary.AppendUvarint(nil, uint64(len(body)))) + body }
	long := string(binary.AppendUvarint(nil, maxSnapshotRecord+1)) + "k"
	f := func(name, text string, records uint64, good bool) {
		t.Helper()
		n, err := CheckSnapshot(strings.NewReader(text), "ko", func(byte, []byte) {})
		if n != records || (err == nil) != good {
			t.Errorf("%s: %d, %v, want %d, %v", name, n, err, records, good)
		}
	}
	whole := rec("t"+number) + rec("kabc") + rec("o") + rec("e"+number)
	f("whole", whole, 4, true)
	f("empty", "", 0, false)
	f("without an end", rec("kabc"), 1, false)
	f("more behind the end", whole+rec("k"), 4, false)
	f("cut in a record", whole[:len(whole)-3], 3, false)
	f("cut in a length", "\x80", 0, false)
	f("an empty record", "\x00", 0, false)
	f("a number of another size", rec("t1"), 0, false)
	f("another tag", rec("?"), 0, false)
	f("too long", long, 0, false)
}

// TestCheckSnapshotTakesTheLongest: at the limit a record is read, in bounded memory.
func TestCheckSnapshotTakesTheLongest(t *testing.T) {
	head := append(binary.AppendUvarint(nil, maxSnapshotRecord), 'k')
	end := append([]byte{9, endTag}, make([]byte, 8)...)
	n, err := CheckSnapshot(io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, maxSnapshotRecord-1), bytes.NewReader(end)), "k", func(byte, []byte) {})
	if n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
