package mpack

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"trunkline/codec/wire"
)

// kinds are values of every class, each in its encoding.
func kinds() []string {
	return []string{
		"\x00", "\x7f", "\xff", "\xe0", "\xc0", "\xc2", "\xc3", "\xcc\xff", "\xcd\xff\xff", "\xce\xff\xff\xff\xff",
		"\xcf\x7f\xff\xff\xff\xff\xff\xff\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xd0\x80", "\xd1\x80\x00", "\xd2\x80\x00\x00\x00",
		"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", "\xca\x3f\x80\x00\x00", "\xca\x7f\x80\x00\x00", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",
		"\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", "\xa0", "\xa1x", "\xbf" + strings.Repeat("y", 31), "\xd9\x01x", "\xda\x00\x01x",
		"\xdb\x00\x00\x00\x01x", "\x90", "\x92\x01\xa1x", "\xdc\x00\x01\x90", "\xdd\x00\x00\x00\x02\xc0\x91\xc0", "\x80", "\x81\xa1k\x81\xa1l\x05",
		"\xde\x00\x01\xd9\x01k\x00", "\xdf\x00\x00\x00\x01\xa1k\x93\x01\x02\x03",
	}
}

func TestNext(t *testing.T) {
	for _, v := range kinds() {
		b := []byte("??" + v + "!!")
		if next := Next(b, 2); next != 2+len(v) {
			t.Errorf("%x ends at %d, want %d", v, next-2, len(v))
		}
		for end := 2; end < len(b)-2; end++ {
			if next := Next(b[:end], 2); next != end {
				t.Errorf("%x cut to %x ends at %d, want the end", v, b[2:end], next)
			}
		}
	}
	f := func(b string, i, want int) {
		t.Helper()
		if next := Next([]byte(b), i); next != want {
			t.Errorf("Next(%x, %d) = %d, want %d", b, i, next, want)
		}
	}
	f("", 0, 0)
	f("\x01", 1, 1)
	f("\x01", 5, 1)
	f("\x01", -1, 1)
	f("\xc1\x01", 0, 2)
	f("\xc4\x00\x01", 0, 3)
	f("\x92\x01\xd4\x00\x00\x01", 0, 6)
	f("\xdf\xff\xff\xff\xff\x01", 0, 6)
	f("\xdb\xff\xff\xff\xffx", 0, 6)
	f(strings.Repeat("\x91", wire.MaxMsgpackDepth-1)+"\x90\x01", 0, wire.MaxMsgpackDepth)
	f(strings.Repeat("\xdf\xff\xff\xff\xff", 1000), 0, 5000)
}

// TestLevels: the deepest branch counts, wherever it stands, also one that ends in an empty
// container, and each value for itself.
func TestLevels(t *testing.T) {
	var sc Scanner
	fields := Fields("v", "w")
	f := func(v string, want int64) {
		t.Helper()
		var got [2]Value
		for _, b := range []string{"\x82\xa1v" + v + "\xa1w\x90", "\x83\xa1x\x91\x91\x91\x91\x91\x91\x90\xa1w\x90\xa1v" + v} {
			if _, p := sc.ParseFields([]byte(b), 0, fields, got[:]); p != NoProblem || got[0].Int != want || got[1].Int != 1 {
				t.Errorf("%x: %s, %d levels and %d, want %d and 1", b, p.Text(), got[0].Int, got[1].Int, want)
			}
		}
	}
	f("\x90", 1)
	f("\x80", 1)
	f("\x91\x01", 1)
	f("\x91\x90", 2)
	f("\x93\x91\x91\x90\x91\x01\x01", 4)
	f("\x93\x01\x91\x01\x91\x91\xdc\x00\x01\x05", 4)
	f("\x82\xa1k\x81\xa1l\x80\xa1m\x05", 3)
	f(strings.Repeat("\x91", wire.MaxMsgpackDepth-bodyDepth-1)+"\x90", wire.MaxMsgpackDepth-bodyDepth)
	f(strings.Repeat("\x91", wire.MaxMsgpackDepth-bodyDepth-1)+"\x91\x01", wire.MaxMsgpackDepth-bodyDepth)
}

func TestReadValue(t *testing.T) {
	var sc Scanner
	fields := Fields("v")
	for _, v := range kinds() {
		b := []byte("\x81\xa1v" + v)
		var want [1]Value
		if _, p := sc.ParseFields(b, 0, fields, want[:]); p != NoProblem {
			t.Fatalf("%x: %s", v, p.Text())
		}
		if want[0].Kind == Array || want[0].Kind == Map {
			want[0].Int = 0 // a walk counts no levels
		}
		got := ReadValue(append([]byte(v), "more"...))
		if got.Kind != want[0].Kind || got.Int != want[0].Int || !bytes.Equal(got.Data, want[0].Data) {
			t.Errorf("ReadValue(%x) = %+v, ParseFields gives %+v", v, got, want[0])
		}
		if kind := KindOf([]byte(v)); kind != want[0].Kind {
			t.Errorf("KindOf(%x) = %d, want %d", v, kind, want[0].Kind)
		}
	}
	f := func(b string) {
		t.Helper()
		if v := ReadValue([]byte(b)); v.Kind != Absent || KindOf([]byte(b)) != Absent {
			t.Errorf("ReadValue(%x) = %+v, want none", b, v)
		}
	}
	f("")
	f("\xc1")
	f("\xc4\x01x")
	f("\xcd\x00")
	f("\xcb\x00\x00\x00\x00\x00\x00\x00")
	f("\xa2x")
	f("\xd9")
	f("\xda\x00\x02x")
}

// spell writes what an iteration over an encoded map or array gives.
func spell(b string) string {
	var out []string
	m, l := OpenMap([]byte(b)), OpenList([]byte(b))
	out = append(out, fmt.Sprint(m.Len(), l.Len()))
	for rawKey, key, raw, ok := m.Next(); ok; rawKey, key, raw, ok = m.Next() {
		out = append(out, fmt.Sprintf("%x(%s)%x", rawKey, key, raw))
	}
	for raw, ok := l.Next(); ok; raw, ok = l.Next() {
		out = append(out, fmt.Sprintf("%x", raw))
	}
	return strings.Join(out, " ")
}

func TestMapAndList(t *testing.T) {
	f := func(b, want string) {
		t.Helper()
		if got := spell(b); got != want {
			t.Errorf("members of %x: %q, want %q", b, got, want)
		}
	}
	f("\x80", "0 0")
	f("\x90", "0 0")
	f("\x05", "0 0")
	f("", "0 0")
	f("\x82\xa1a\x01\xd9\x01b\x92\x01\x02", "2 0 a161(a)01 d90162(b)920102")
	f("\xde\x00\x02\xa1a\xc0\xa1a\x81\xa0\x00", "2 0 a161(a)c0 a161(a)81a000")
	f("\xdf\x00\x00\x00\x01\xa0\xa0!!", "1 0 a0()a0")
	f("\x93\x01\xa1x\x91\xc0", "0 3 01 a178 91c0")
	f("\xdc\x00\x01\x90", "0 1 90")
	f("\xdd\x00\x00\x00\x02\x80\xcb\x00\x00\x00\x00\x00\x00\x00\x00!!", "0 2 80 cb0000000000000000")
	// Unsound: more announced than there can be, a key that is no string, a value cut off.
	f("\x82\xa1a", "0 0")
	f("\xdf\xff\xff\xff\xff\xa1a\x01", "0 0")
	f("\xdd\xff\xff\xff\xff\x01", "0 0")
	f("\xde\x00", "0 0")
	f("\x82\xa1a\x01\x05\x06\x07", "2 0 a161(a)01")
	f("\x82\xa1a\xa1b\xa1c", "2 0 a161(a)a162")
	f("\x81\xa3abc", "1 0")
	f("\x82\xa1a\xa9bcd", "2 0 a161(a)a9626364")
	f("\x93\xa2\x01\x02", "0 3 a20102")
}

func TestIterationEndsForEver(t *testing.T) {
	m, l := OpenMap([]byte("\x81\xa1a\x01!")), OpenList([]byte("\x91\x01!"))
	m.Next()
	l.Next()
	for range 3 {
		if _, _, _, ok := m.Next(); ok {
			t.Error("the map goes on behind its end")
		}
		if _, ok := l.Next(); ok {
			t.Error("the array goes on behind its end")
		}
	}
	if m.Len() != 1 || l.Len() != 1 {
		t.Errorf("Len at the end = %d, %d, want 1, 1", m.Len(), l.Len())
	}
}

func TestCopyForksIteration(t *testing.T) {
	m := OpenMap([]byte("\x82\xa1a\x01\xa1b\x02"))
	fork := m
	m.Next()
	if _, key, _, _ := fork.Next(); string(key) != "a" {
		t.Errorf("the copy stands at %q, want the first pair", key)
	}
}

func TestNarrow(t *testing.T) {
	f := func(b, want string) {
		t.Helper()
		if got := Narrow([]byte(b)); string(got) != want {
			t.Errorf("Narrow(%.40x) = %.40x, want %.40x", b, got, want)
		}
	}
	f("", "")
	f("\x01", "\x01")
	f("\xdf\x00\x00\x00\x00", "\x80")
	f("\xdd\x00\x00\x00\x01\xde\x00\x01\xa1k\xdc\x00\x02\x01\xd9\x01x", "\x91\x81\xa1k\x92\x01\xd9\x01x")
	f("\x92\xa5\xdd\x00\x00\x00\x01\xdd\x00\x00\x00\x00", "\x92\xa5\xdd\x00\x00\x00\x01\x90")
	for _, n := range []int{0, 1, 15, 16, math.MaxUint16, math.MaxUint16 + 1} {
		elements := strings.Repeat("\xc3", n)
		wide := string([]byte{0xdd, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + elements
		f(wide+"\xa1!", string(AppendArray(nil, n))+elements+"\xa1!")
		wide = string([]byte{0xdf, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + elements + elements
		f(wide, string(AppendMap(nil, n))+elements+elements)
	}
	// Unsound bytes stay what they are.
	f("\xdd\x00\x00", "\xdd\x00\x00")
	f("\xa5ab", "\xa5ab")
	f("\xdc\x00\x01\xc1\xdc\x00\x01", "\x91\xc1\xdc\x00\x01")
}

// compareTree steps into every container of b, one sound value, and holds every step to the Scanner
// and to the reference library.
func compareTree(t *testing.T, sc *Scanner, b []byte) {
	t.Helper()
	end, p := sc.skip(b, 0, 0)
	if next := Next(b, 0); p != NoProblem || next != end || next != len(b) {
		t.Fatalf("%x ends at %d, the Scanner says %d %q", b, next, end, p.Text())
	}
	m, l := OpenMap(b), OpenList(b)
	n, total := 0, 0
	for rawKey, key, raw, ok := m.Next(); ok; rawKey, key, raw, ok = m.Next() {
		want, rest, err := msgp.ReadStringZC(rawKey)
		if err != nil || len(rest) != 0 || !bytes.Equal(want, key) {
			t.Fatalf("key %x of %x is %q, reference: %q, %v", rawKey, b, key, want, err)
		}
		n, total = n+1, total+len(rawKey)+len(raw)
		compareTree(t, sc, raw)
	}
	for raw, ok := l.Next(); ok; raw, ok = l.Next() {
		n, total = n+1, total+len(raw)
		compareTree(t, sc, raw)
	}
	wantN, header := uint32(0), 0
	switch msgp.NextType(b) {
	case msgp.MapType:
		size, rest, _ := msgp.ReadMapHeaderBytes(b)
		wantN, header = size, len(b)-len(rest)
	case msgp.ArrayType:
		size, rest, _ := msgp.ReadArrayHeaderBytes(b)
		wantN, header = size, len(b)-len(rest)
	default:
		header = len(b)
	}
	if n != int(wantN) || header+total != len(b) || m.Len()+l.Len() != n {
		t.Fatalf("%x: %d members in %d bytes, reference: %d", b, n, header+total, wantN)
	}
}

// FuzzWalk holds the unchecked steps to the Scanner on sound values, and to ending without a panic
// on all others.
func FuzzWalk(f *testing.F) {
	for _, v := range kinds() {
		f.Add([]byte(v))
	}
	f.Add([]byte("\x83\xa1a\xdd\x00\x00\x00\x01\x90\xa1a\xc0\xd9\x02bc\xdf\x00\x00\x00\x01\xa0\x92\x01\xcd\x01\x02"))
	f.Add([]byte("\xdf\xff\xff\xff\xff\xdd\xff\xff\xff\xff"))
	f.Add([]byte(strings.Repeat("\x91", 64) + "\xc1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var sc Scanner
		if end, p := sc.skip(b, 0, 0); p == NoProblem {
			compareTree(t, &sc, b[:end])
			compareNarrow(t, &sc, b[:end])
			return
		}
		walkUnchecked(t, b)
	})
}

func walkUnchecked(t *testing.T, b []byte) {
	t.Helper()
	m, l, n := OpenMap(b), OpenList(b), 0
	if m.Len() > len(b) || l.Len() > len(b) {
		t.Fatalf("%x: announces %d and %d members", b, m.Len(), l.Len())
	}
	for _, _, raw, ok := m.Next(); ok; _, _, raw, ok = m.Next() {
		ReadValue(raw)
		n++
	}
	for raw, ok := l.Next(); ok; raw, ok = l.Next() {
		KindOf(raw)
		n++
	}
	for i := range b {
		if next := Next(b, i); next <= i || next > len(b) {
			t.Fatalf("Next(%x, %d) = %d", b, i, next)
		}
	}
	if got := Narrow(bytes.Clone(b)); n > len(b) || len(got) > len(b) {
		t.Fatalf("%x: %d members, %d bytes narrowed", b, n, len(got))
	}
}

// compareNarrow checks that narrowing keeps a sound value's meaning and is done after the first
// time.
func compareNarrow(t *testing.T, sc *Scanner, b []byte) {
	t.Helper()
	got := Narrow(bytes.Clone(b))
	if end, p := sc.skip(got, 0, 0); p != NoProblem || end != len(got) {
		t.Fatalf("%x narrowed to %x, which is %q", b, got, p.Text())
	}
	if again := Narrow(bytes.Clone(got)); !bytes.Equal(again, got) {
		t.Fatalf("%x narrowed to %x and then to %x", b, got, again)
	}
	want, _, err1 := msgp.ReadIntfBytes(b)
	have, _, err2 := msgp.ReadIntfBytes(got)
	if fmt.Sprint(want, err1) != fmt.Sprint(have, err2) {
		t.Fatalf("%x means %v, narrowed %v", b, want, have)
	}
}

func TestAppendValue(t *testing.T) {
	f := func(raw, want string) {
		t.Helper()
		if got := AppendValue([]byte(">"), []byte(raw)); string(got) != ">"+want {
			t.Errorf("%x: got %x, want %x", raw, got[1:], want)
		}
	}
	f("", "\xc0")
	f("\xc0", "\xc0")
	f("\xc3", "\xc3")
	f("\xd3\x00\x00\x00\x00\x00\x00\x00\x07", "\x07")
	f("\xd1\xff\xff", "\xff")
	f("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff")
	f("\xca\x3f\xc0\x00\x00", "\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00")
	f("\xca\x7f\xc0\x00\x00", "\xc0")
	f("\xcb\xff\xf0\x00\x00\x00\x00\x00\x00", "\xc0")
	f("\xcb\x40\x08\x00\x00\x00\x00\x00\x00", "\xcb\x40\x08\x00\x00\x00\x00\x00\x00")
	f("\xda\x00\x01x", "\xa1x")
	f("\xdd\x00\x00\x00\x02\x01\xde\x00\x01\xd9\x01k\xcc\x05", "\x92\x01\x81\xa1k\x05")
	// Values that did not pass the Scanner must not panic.
	for _, bad := range []string{"\xdd", "\x92\x01", "\xa5x", "\xca\x00", "\xc1", "\xc4\x00"} {
		AppendValue(nil, []byte(bad))
	}
}
