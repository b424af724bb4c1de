package frame

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestSplitBounds(t *testing.T) {
	const limit = 16
	f := func(in string, wantN int) {
		t.Helper()
		if _, _, n := Split([]byte(in), limit); n != wantN {
			t.Errorf("Split(%x) took %d, want %d", in, n, wantN)
		}
	}
	f("", 0)
	f("\x00", 0)
	f("\x00\x00\x00", 0)
	f("\x00\x00\x00\x00", Malformed)          // length 0
	f("\x00\x00\x00\x01", 0)                  // type byte still missing
	f("\x00\x00\x00\x01\x02", 5)              // empty payload is a whole frame
	f("\x00\x00\x00\x10", 0)                  // at the limit
	f("\x00\x00\x00\x11", Malformed)          // limit + 1, judged before any payload
	f("\xff\xff\xff\xff", Malformed)          // never read as negative
	f("\x00\x00\x00\x02\x01a\x00\x00\x00", 6) // more than one frame: the first
}

func TestLen(t *testing.T) {
	f := func(in string, want int) {
		t.Helper()
		if got := Len([]byte(in)); got != want {
			t.Errorf("Len(%x) = %d, want %d", in, got, want)
		}
	}
	f("", 0)
	f("\x00\x00\x00", 0)
	f("\x00\x00\x00\x00", 4) // malformed, and still of a length
	f("\x00\x00\x00\x01", 5)
	f("\x00\x00\x00\x01\x02\x00", 5) // the first of several
	f("\x01\x02\x03\x04", 4+0x01020304)
	f("\xff\xff\xff\xff", 4+0xffffffff)
}

func TestSplitLendsWithoutCapacity(t *testing.T) {
	in := []byte("\x00\x00\x00\x02\x01a\x00\x00\x00\x01\x02")
	typ, payload, n := Split(in, 16)
	if typ != Request || string(payload) != "a" || n != 6 {
		t.Fatalf("got %x %q %d", typ, payload, n)
	}
	if &payload[0] != &in[5] || cap(payload) != 1 {
		t.Fatal("payload must be the input's own bytes and must not reach into the next frame")
	}
}

func TestBuildAndSplitAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := Type(rapid.Byte().Draw(t, "type"))
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "prefix")
		body := rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(t, "body")
		before := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "before")

		whole := Append(bytes.Clone(before), typ, prefix, body)
		built := append(append(Begin(bytes.Clone(before), typ), prefix...), body...)
		if size := Finish(built, len(before)); size != 1+len(prefix)+len(body) {
			t.Fatalf("Finish says %d", size)
		}
		if !bytes.Equal(whole, built) {
			t.Fatal("Append and Begin/Finish differ")
		}
		in := whole[len(before):]
		for cut := range in {
			if _, _, n := Split(in[:cut], 1<<20); n != 0 {
				t.Fatalf("%d of %d bytes are not a frame, got %d", cut, len(in), n)
			}
		}
		gotType, payload, n := Split(in, 1<<20)
		if gotType != typ || n != len(in) || Len(in) != n || !bytes.Equal(payload, append(bytes.Clone(prefix), body...)) {
			t.Fatalf("got %x %x %d", gotType, payload, n)
		}
	})
}

func TestNoAllocs(t *testing.T) {
	in := Append(nil, Request, []byte("ab"), []byte("cd"))
	dst := make([]byte, 0, 64)
	if got := testing.AllocsPerRun(100, func() {
		_, payload, _ := Split(in[:Len(in)], 1<<20)
		dst = append(Begin(dst[:0], Response), payload...)
		Finish(dst, 0)
	}); got != 0 {
		t.Fatalf("%v allocations per frame, want 0", got)
	}
}
