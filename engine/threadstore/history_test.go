package threadstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// TestRowsAhead: rows that a lost end of the journal left behind are not shown, and their keys are
// not known.
func TestRowsAhead(t *testing.T) {
	lost := newRig(t, Config{})
	id := lost.create()
	for i := range 300 {
		lost.post(alice, id, fmt.Sprint("lost", i), fmt.Sprint("k", i))
		if i == 3 || i == 150 {
			lost.sync()
			lost.store()
		}
	}
	lost.sync()
	if err := lost.storeAll(lost.safe()); err != nil {
		t.Fatal(err)
	}
	r := newRigOver(t, lost.rows, Config{HotBytes: 1, segment: 700})
	id = r.create()
	var want []string
	for i := range 320 {
		if p := r.post(alice, id, fmt.Sprint("new", i), fmt.Sprint("k", i)); p.Replay {
			t.Fatal(i, p)
		}
		if want = append(want, fmt.Sprint("new", i)); i%70 == 1 {
			r.sync()
			r.store()
			if got := r.bodies(id); strings.Join(got, " ") != strings.Join(want, " ") {
				t.Fatal(got)
			}
		}
	}
	r.sync()
	r.store()
	for i := range 320 {
		if p := r.post(alice, id, want[i], fmt.Sprint("k", i)); !p.Replay || p.Seq != uint64(i+1) {
			t.Fatal(i, p)
		}
	}
}

// TestCut removes a run, and the end of the one that is cut.
func TestCut(t *testing.T) {
	for first := range uint64(12) {
		r := newRig(t, Config{})
		var runs [][]byte
		for _, seqs := range [][2]uint64{{1, 4}, {5, 9}, {10, 10}} {
			var run []byte
			for seq := seqs[0]; seq <= seqs[1]; seq++ {
				row := fmt.Appendf(nil, "row %d of a run that is long enough to be compressed %0300d", seq, 0)
				run = append(binary.BigEndian.AppendUint32(run, uint32(len(row))), row...)
			}
			runs = append(runs, appendMessageKey(nil, 7, seqs[1]), appendRun(nil, run, new([]byte)))
		}
		if err := r.rows.Put(runs...); err != nil {
			t.Fatal(err)
		}
		if err := r.storer.cut(7, first+1); err != nil {
			t.Fatal(err)
		}
		if err := r.rows.Put(r.storer.rows...); err != nil {
			t.Fatal(err)
		}
		left := uint64(0)
		if err := r.scanStored(7, 1, 100, func(seq uint64, row []byte) bool {
			left++
			return seq == left && bytes.HasPrefix(row, fmt.Appendf(nil, "row %d ", seq))
		}); err == nil {
			t.Error("a message that is not there is no error")
		}
		if left != min(first, 10) {
			t.Errorf("cut at %d leaves %d", first+1, left)
		}
	}
}

// FuzzRun reads any row as a run of messages.
func FuzzRun(f *testing.F) {
	row := bytes.Repeat([]byte("row"), 600)
	run := append(binary.BigEndian.AppendUint32(nil, uint32(len(row))), row...)
	f.Add(uint64(1), appendRun(nil, run, new([]byte)))
	f.Add(uint64(2), appendRun(nil, append(run, run...), new([]byte)))
	f.Add(uint64(9), []byte{runPlain, 0, 0, 0, 1, 'x'})
	f.Add(uint64(1), []byte{runCompressed, 0, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, last uint64, value []byte) {
		var buf []byte
		got, run, n, err := parseRun(appendMessageKey(nil, 1, last), value, &buf)
		if err != nil {
			return
		}
		if got != last || n > last || len(run) > maxRun && value[0] != runPlain {
			t.Fatal(got, n, len(run))
		}
		again := append([]byte(nil), run...)
		_, back, m, err := parseRun(appendMessageKey(nil, 1, last), appendRun(nil, again, new([]byte)), &buf)
		if err != nil || m != n || !bytes.Equal(back, again) {
			t.Fatal(m, err)
		}
	})
}
