package threadstore

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memstream"
)

// archivedRecord is a record in a set.
type archivedRecord struct {
	index journal.Index
	rec   string
}

// writeSet returns the chunks of records. A block ends behind each that is in ends.
func writeSet(t fatal, recs []archivedRecord, ends func(i int) bool) (chunks [][]byte) {
	w := blockWriter{put: func(n uint32, chunk []byte) error {
		if int(n) != len(chunks) || len(chunk) > journal.MaxChunkBytes {
			t.Fatalf("chunk %d of %d bytes behind %d", n, len(chunk), len(chunks))
		}
		chunks = append(chunks, bytes.Clone(chunk))
		return nil
	}}
	for i, r := range recs {
		err := w.add(r.index, []byte(r.rec))
		if err == nil && ends(i) {
			err = w.flush()
		}
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := w.flush(); err != nil {
		t.Fatalf("%v", err)
	}
	return chunks
}

func readSet(chunks [][]byte, after journal.Index) (recs []archivedRecord, err error) {
	r := blockReader{after: after, f: func(i journal.Index, rec []byte) error {
		recs = append(recs, archivedRecord{i, string(rec)})
		return nil
	}}
	for _, c := range chunks {
		if err := r.take(c); err != nil {
			return recs, err
		}
	}
	return recs, r.end()
}

// TestArchiveSets: what is written is read, from any index on; chunks that are damaged, missing or
// in another order are refused.
func TestArchiveSets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var recs []archivedRecord
		index := journal.Index(0)
		for range rapid.IntRange(1, 30).Draw(rt, "records") {
			index += rapid.Uint64Range(1, 100).Draw(rt, "apart")
			size := rapid.SampledFrom([]int{1, 20, 3000, 300_000}).Draw(rt, "size")
			text := rapid.StringN(1, -1, 60).Draw(rt, "text")
			recs = append(recs, archivedRecord{index, string(bytes.Repeat([]byte(text), size/len(text)+1))})
		}
		chunks := writeSet(rt, recs, func(int) bool { return rapid.IntRange(0, 4).Draw(rt, "end") == 0 })
		after := rapid.Uint64Range(0, index+1).Draw(rt, "after")
		want := recs
		for len(want) > 0 && want[0].index <= after {
			want = want[1:]
		}
		if got, err := readSet(chunks, after); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("%d records, want %d: %v", len(got), len(want), err)
		}
		at := rapid.IntRange(0, len(chunks)-1).Draw(rt, "chunk")
		bit := rapid.IntRange(0, len(chunks[at])*8-1).Draw(rt, "bit")
		chunks[at][bit/8] ^= 1 << (bit % 8)
		if _, err := readSet(chunks, 0); !errors.Is(err, errBadArchive) {
			rt.Fatalf("chunk %d with bit %d flipped: %v", at, bit, err)
		}
		chunks[at][bit/8] ^= 1 << (bit % 8)
		if _, err := readSet(append(chunks[:at:at], chunks[at+1:]...), 0); err == nil && at < len(chunks)-1 {
			rt.Fatalf("without chunk %d of %d", at, len(chunks))
		}
	})
}

// FuzzArchive reads any bytes as a chunk of a set.
func FuzzArchive(f *testing.F) {
	recs := []archivedRecord{{3, "tabc"}, {4, string(make([]byte, 2000))}, {900, "m"}}
	for _, c := range writeSet(f, recs, func(i int) bool { return i == 1 }) {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, chunk []byte) {
		got, err := readSet([][]byte{chunk}, 0)
		if err != nil {
			return
		}
		again, err := readSet(writeSet(t, got, func(int) bool { return false }), 0)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(again) {
			t.Fatalf("%v, then %v: %v", got, again, err)
		}
	})
}

// alone runs a node that owns the journal of a cluster, with some rows.
func alone(t *testing.T, f func(n *node, h *history)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, memstream.New(), "n", 1, Config{setBytes: 1000})
		defer n.die(all)
		n.own()
		h := &history{t: t, keys: map[string]keyed{}}
		h.create(n)
		h.post(n, 0, 100, true)
		f(n, h)
	})
}

func (n *node) snapshot(t *testing.T) {
	t.Helper()
	if err := n.st.Snapshot(); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveIsBounded: at the limit of sets one more is taken; beyond it there is no snapshot, and
// the journal keeps what is not in one.
func TestArchiveIsBounded(t *testing.T) {
	alone(t, func(n *node, h *history) {
		n.archive.has.Sets = make([]archivedSet, maxArchiveSets-1)
		n.snapshot(t)
		if got := len(n.archive.has.Sets); got != maxArchiveSets {
			t.Fatalf("%d sets", got)
		}
		for n.archive.open.bytes < n.cfg.setBytes { // it grows further
			h.post(n, 0, 200, false)
			n.snapshot(t)
		}
		h.post(n, 0, 200, false)
		if err := n.st.Snapshot(); !errors.Is(err, errArchiveFull) {
			t.Errorf("a snapshot with %d sets: %v", maxArchiveSets, err)
		}
	})
}

// TestASetGrows: a set takes what comes until it is long enough, also in the middle of an attempt,
// and what an attempt left that came to no end is dropped.
func TestASetGrows(t *testing.T) {
	alone(t, func(n *node, h *history) {
		n.snapshot(t)
		h.post(n, 0, 10, true)
		n.snapshot(t)
		if s := n.archive.has.Sets; len(s) != 1 || s[0].Chunks != 2 || s[0].UpTo != n.archive.has.UpTo {
			t.Fatalf("sets %+v", s)
		}
		h.post(n, 0, 10, true)
		n.fail = func() error { return errNoChunk }
		if err := n.st.Snapshot(); !errors.Is(err, errNoChunk) {
			t.Fatal(err)
		}
		left := 1
		n.fail = func() error {
			if left--; left < 0 {
				return errNoChunk
			}
			return nil
		}
		for i := range 40 { // more than a block
			h.post(n, 0, 10_000+i, false)
		}
		if err := n.st.Snapshot(); !errors.Is(err, errNoChunk) {
			t.Fatal(err)
		}
		n.fail, n.Engine.cfg.setBytes = nil, 100 // one block
		n.snapshot(t)
		sets, err := n.client.Sets(t.Context())
		kept := 0
		for _, set := range sets {
			if len(set) > 8 && set[:8] == "archive-" {
				kept++
			}
		}
		if err != nil || kept != len(n.archive.has.Sets) || kept != 3 {
			t.Errorf("%d sets are kept, %d count: %v", kept, len(n.archive.has.Sets), err)
		}
		n.renew()
		h.check(n)
	})
}

// TestADamagedArchive: a node without rows does not start from a set that is damaged.
func TestADamagedArchive(t *testing.T) {
	alone(t, func(n *node, h *history) {
		n.snapshot(t)
		n.sync()
		n.die(all)
		n.replace()
		n.show = func(chunk []byte) { chunk[len(chunk)/2] ^= 4 }
		n.open()
		err := <-n.ended
		n.over = true
		if damage := (*journal.DamageError)(nil); !errors.As(err, &damage) {
			t.Errorf("a damaged chunk: %v", err)
		}
		n.die(all)
		n.show = nil
		n.own()
		h.check(n)
	})
}

// TestRowsOfAnotherArchive: rows that belong to another journal are removed.
func TestRowsOfAnotherArchive(t *testing.T) {
	alone(t, func(n *node, h *history) {
		n.snapshot(t)
		n.sync()
		other := newNode(t, memstream.New(), "other", 9, n.cfg)
		other.own()
		g := &history{t: t, keys: map[string]keyed{}}
		for i := range 3 {
			g.create(other)
			g.post(other, i, 50, true)
		}
		other.snapshot(t)
		other.die(all)
		audit := n.audit()
		n.die(all)
		n.rows = other.rows
		n.own()
		h.check(n)
		if got := n.audit(); fmt.Sprint(got) != fmt.Sprint(audit) {
			t.Errorf("audit log %v, want %v", got, audit)
		}
	})
}

// TestNothingToArchive: a journal without rows gets no set, and is not read for one.
func TestNothingToArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, memstream.New(), "n", 1, Config{})
		defer n.die(all)
		n.own()
		n.snapshot(t)
		n.snapshot(t)
		if len(n.archive.has.Sets) != 0 || n.archive.has.UpTo == 0 {
			t.Errorf("%+v", n.archive.has)
		}
		n.renew()
	})
}

// TestAMarkIsLowered: rows that are ahead of the snapshot are not counted on.
func TestAMarkIsLowered(t *testing.T) {
	alone(t, func(n *node, h *history) {
		n.snapshot(t)
		upTo := n.archive.has.UpTo
		h.post(n, 0, 10, true)
		n.store(t)
		if err := n.setMark(upTo + 5); err != nil {
			t.Fatal(err)
		}
		n.die(all)
		n.own()
		if mark, known, err := n.mark(n.archive.has.Lineage); mark != upTo || !known || err != nil || n.rows.mark != upTo {
			t.Errorf("the mark is %d, %d on the disk, want %d: %t %v", mark, n.rows.mark, upTo, known, err)
		}
		h.check(n)
	})
}

// store stores what is durable.
func (n *node) store(t *testing.T) {
	t.Helper()
	n.sync()
	if err := n.storeUpTo(n.safe()); err != nil {
		t.Fatal(err)
	}
}
