package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// make1 makes a block of records.
func make1(h header, recs ...string) []byte {
	buf := make([]byte, headerBytes)
	for _, r := range recs {
		buf = appendRecord(buf, []byte(r))
	}
	h.count = uint32(len(recs))
	b, _ := seal(buf, &h)
	return b
}

// resum puts the right checksum on a block that was changed.
func resum(b []byte) []byte {
	end := len(b) - trailerBytes
	binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli()))
	return b
}

func records(t interface{ Fatalf(string, ...any) }, d *block, after Index) (out []string) {
	want := max(d.first, after+1)
	if err := d.each(after, func(i Index, rec []byte) error {
		if i != want {
			t.Fatalf("record %d, want %d", i, want)
		}
		want++
		out = append(out, string(rec))
		return nil
	}); err != nil {
		t.Fatalf("each: %v", err)
	}
	return out
}

// TestLayout holds the format to the picture in doc.go, byte for byte.
func TestLayout(t *testing.T) {
	h := header{mode: Interval, partition: 0x04030201, epoch: 0x0605, first: 0x0807, time: 0x0a09, prev: 0x0c0b}
	got := make1(h, "ab", "")
	want := []byte{
		1, 0, 1, 0,
		1, 2, 3, 4,
		5, 6, 0, 0, 0, 0, 0, 0,
		7, 8, 0, 0, 0, 0, 0, 0,
		2, 0, 0, 0,
		4, 0, 0, 0,
		9, 10, 0, 0, 0, 0, 0, 0,
		11, 12, 0, 0, 0, 0, 0, 0,
		2, 'a', 'b', 0,
		0, 0, 0, 0,
	}
	if want = resum(want); !bytes.Equal(got, want) {
		t.Fatalf("block is\n%x, want\n%x", got, want)
	}
}

func TestBlockRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := rapid.SliceOfN(rapid.StringN(0, 300, -1), 1, 20).Draw(t, "records")
		h := header{
			mode:      Mode(rapid.IntRange(0, 1).Draw(t, "mode")),
			partition: rapid.Uint32().Draw(t, "partition"),
			epoch:     rapid.Uint64Min(1).Draw(t, "epoch"),
			first:     rapid.Uint64Range(1, math.MaxUint64-20).Draw(t, "first"),
			time:      rapid.Int64().Draw(t, "time"),
			prev:      rapid.Uint64().Draw(t, "prev"),
		}
		b := make1(h, recs...)
		d, err := decodeBlock(b)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		h.count, h.body = uint32(len(recs)), uint32(len(b)-frameBytes)
		if d.header != h || d.last() != h.first+uint64(len(recs))-1 {
			t.Fatalf("header %+v, want %+v", d.header, h)
		}
		skip := rapid.IntRange(0, len(recs)).Draw(t, "skip")
		if got := records(t, &d, h.first-1+uint64(skip)); !slices.Equal(got, recs[skip:]) {
			t.Fatalf("records %q, want %q", got, recs[skip:])
		}
		flip := rapid.IntRange(0, len(b)*8-1).Draw(t, "flip")
		b[flip/8] ^= 1 << (flip % 8)
		if _, err := decodeBlock(b); err == nil {
			t.Fatalf("a block with bit %d flipped was accepted", flip)
		}
	})
}

// TestDecodeIsStrict: with a right checksum, only what seal makes is accepted.
func TestDecodeIsStrict(t *testing.T) {
	good := func() []byte { return make1(header{epoch: 1, first: 1}, "abc", "") }
	f := func(why string, want error, change func(b []byte) []byte) {
		t.Helper()
		if _, err := decodeBlock(change(good())); !errors.Is(err, want) || err == nil {
			t.Errorf("%s: %v, want %v", why, err, want)
		}
	}
	put := func(at int, v byte) func([]byte) []byte {
		return func(b []byte) []byte { b[at] = v; return resum(b) }
	}
	f("empty", errShort, func(b []byte) []byte { return nil })
	f("one byte less than a frame", errShort, func(b []byte) []byte { return b[:frameBytes-1] })
	f("one byte less", errShort, func(b []byte) []byte { return b[:len(b)-1] })
	f("one byte more", errLayout, func(b []byte) []byte { return append(b, 0) })
	f("sum", errSum, func(b []byte) []byte { b[9] ^= 1; return b })
	f("kind", errLayout, put(1, 2))
	f("claim with records", errLayout, put(1, byte(kindClaim)))
	f("mode memory", errLayout, put(2, byte(Memory)))
	f("reserved", errLayout, put(3, 1))
	f("epoch 0", errLayout, put(8, 0))
	f("first 0", errLayout, put(16, 0))
	f("count too small", errLayout, put(24, 1))
	f("count too large", errLayout, put(24, 3))
	f("count 0", errLayout, put(24, 0))
	f("count beyond the body", errLayout, put(27, 1))
	f("body beyond the limit", errLayout, put(31, 0xff))
	f("record beyond the body", errLayout, put(headerBytes, 9))
	f("record cut by the end", errLayout, put(headerBytes+4, 0x80))
	f("last index beyond the range", errLayout, func(b []byte) []byte {
		binary.LittleEndian.PutUint64(b[16:], math.MaxUint64-1)
		return resum(b)
	})
	f("length in two bytes", errLayout, func(b []byte) []byte {
		b[headerBytes], b[headerBytes+1], b[headerBytes+2], b[headerBytes+3] = 0x82, 0, 'x', 'y'
		return resum(b)
	})
	if _, err := decodeBlock(put(0, 2)(good())); err == nil {
		t.Error("version 2 was accepted")
	}
	if _, err := decodeBlock(good()); err != nil {
		t.Errorf("an unchanged block: %v", err)
	}
}

func TestRecordBytes(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 16383, 16384, 1 << 20, MaxRecordBytes} {
		if got := recordBytes(n); got != len(appendRecord(nil, make([]byte, n))) {
			t.Errorf("a record of %d bytes takes %d", n, got)
		}
	}
	const lengthBytes = 4 // the longest length in front of a record of MaxRecordBytes
	if recordBytes(MaxRecordBytes) != MaxRecordBytes+lengthBytes || MaxRecordBytes+lengthBytes+frameBytes > MaxStoredBlock {
		t.Error("the longest record does not fit into the longest block")
	}
}

// TestChainTellsBlocksApart: everything that makes a block another one moves its chain value.
func TestChainTellsBlocksApart(t *testing.T) {
	base := header{kind: kindRecords, epoch: 1, first: 1, count: 1, body: 2, time: 1, prev: 1}
	seen := map[uint64]string{chainValue(&base, 1): "base"}
	f := func(name string, sum uint32, change func(h *header)) {
		h := base
		change(&h)
		v := chainValue(&h, sum)
		if other, ok := seen[v]; ok {
			t.Errorf("%s has the chain value of %s", name, other)
		}
		seen[v] = name
	}
	f("epoch", 1, func(h *header) { h.epoch++ })
	f("first", 1, func(h *header) { h.first++ })
	f("body", 1, func(h *header) { h.body++ })
	f("time", 1, func(h *header) { h.time++ })
	f("prev", 1, func(h *header) { h.prev++ })
	f("sum", 2, func(h *header) {})
}

func FuzzBlock(f *testing.F) {
	f.Add(make1(header{epoch: 1, first: 1}, "abc", "", "defg"))
	f.Add(make1(header{kind: kindClaim, epoch: 2, first: 9, prev: 7}, ""))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if b = bytes.Clone(b); len(b) >= frameBytes {
			resum(b)
		}
		d, err := decodeBlock(b)
		if err != nil {
			return
		}
		recs := records(t, &d, 0)
		buf := make([]byte, headerBytes)
		for _, r := range recs {
			buf = appendRecord(buf, []byte(r))
		}
		h := d.header
		if again, chain := seal(buf, &h); !bytes.Equal(again, b) || chain != d.chain {
			t.Fatalf("accepted\n%x, which is made as\n%x", b, again)
		}
	})
}
