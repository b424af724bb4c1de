package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
)

func TestParseRecord(t *testing.T) {
	change := kernel.AppendChange([]byte{kernelRecord}, &kernel.Change{Kind: kernel.ChangeRemove, PID: []byte("p")})
	drop := orchestration.AppendChange([]byte{orchestrationRecord}, &orchestration.Change{Kind: orchestration.ChangeSessionDrop, PID: []byte("p"), Seq: 1})
	f := func(rec []byte, kind string) {
		t.Helper()
		var r Record
		err := ParseRecord(rec, &r)
		if (err == nil) != (kind != "") || err == nil && r.Kind() != kind {
			t.Errorf("%q: %v, %s, want %s", rec, err, r.Kind(), kind)
		}
		if err != nil && !errors.Is(err, kernel.ErrBadChange) && !errors.Is(err, orchestration.ErrBadChange) {
			t.Errorf("%q: %v is of no class", rec, err)
		}
	}
	f(change, "kernel.remove")
	f(drop, "orchestration.session_drop")
	f(nil, "")
	f([]byte("x"), "")
	f([]byte{kernelRecord}, "")
	f([]byte{orchestrationRecord}, "")
	f(change[:len(change)-1], "")
	f(drop[:len(drop)-1], "")
	f(append(change[:len(change):len(change)], 0), "")
	f(append(drop[:len(drop):len(drop)], 0), "")
}

func TestCheckSnapshot(t *testing.T) {
	number := string(make([]byte, 8))
	rec := func(body string) string { return string(binary.AppendUvarint(nil, uint64(len(body)))) + body }
	long := string(binary.AppendUvarint(nil, maxSnapshotRecord+1)) + "k"
	f := func(name, text string, records uint64, good bool) {
		t.Helper()
		n, err := CheckSnapshot(strings.NewReader(text))
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
	head := append(binary.AppendUvarint(nil, maxSnapshotRecord), kernelRecord)
	end := append([]byte{9, endRecord}, make([]byte, 8)...)
	n, err := CheckSnapshot(io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, maxSnapshotRecord-1), bytes.NewReader(end)))
	if n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// FuzzParseRecord: whatever the bytes are, there is a change or an error.
func FuzzParseRecord(f *testing.F) {
	f.Add(kernel.AppendChange([]byte{kernelRecord}, &kernel.Change{Kind: kernel.ChangeUsage, PID: []byte("p")}))
	f.Add(orchestration.AppendChange([]byte{orchestrationRecord}, &orchestration.Change{Kind: orchestration.ChangeEnd, PID: []byte("p")}))
	f.Add([]byte("?"))
	f.Fuzz(func(t *testing.T, rec []byte) {
		var r Record
		if err := ParseRecord(rec, &r); err == nil && strings.HasSuffix(r.Kind(), "unknown") {
			t.Errorf("%q is a change of no kind", rec)
		}
	})
}
