package idem

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"trunkline/codec/mpack"
)

// changes is one of every kind, with the extremes of the fields.
func changes() []Change {
	full := Stored{Status: 255, Output: []byte(`{"a":"ä"}`), Error: "e", Dispatch: []byte("{}"), Token: in("t"), HasToken: true}
	return []Change{
		{Kind: ChangeStarted, At: math.MaxInt64, Key: k("a"), Attempt: maxAttempt, Input: in("i")},
		{Kind: ChangeStarted, At: 1, Key: k("a"), Attempt: 2, Repeatable: true, Input: in("i")},
		{Kind: ChangeStarted, Key: Key{}, Attempt: 1},
		{Kind: ChangeFinished, At: 1, Key: k("a"), Attempt: 1, Input: in("i"), Result: full},
		{Kind: ChangeFinished, At: 1, Key: k("a"), Attempt: 2, Result: Stored{Output: []byte{}}},
		{Kind: ChangeFinished, Key: k("a"), Attempt: 2, Result: Stored{Output: []byte(strings.Repeat("x", 70000)), HasToken: true}},
		{Kind: ChangeReleased, At: 1, Key: k("a"), Attempt: 7},
		{Kind: ChangeDropped, At: 1, Key: k("a")},
	}
}

func TestChangeRoundTrip(t *testing.T) {
	for _, want := range changes() {
		rec := AppendChange([]byte("before"), &want)[len("before"):]
		var got Change
		if err := ParseChange(rec, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: %v, got %+v", want, err, got)
		}
		for i := range rec[:min(len(rec), 200)] {
			if ParseChange(rec[:i], &got) == nil {
				t.Fatalf("%s: %d bytes of %d are enough", want.Kind, i, len(rec))
			}
		}
		if ParseChange(append(rec[:len(rec):len(rec)], 0), &got) == nil {
			t.Fatalf("%s: a byte too much", want.Kind)
		}
	}
}

// record makes a list of numbers, of bytes that are encoded already, and of nil.
func record(values ...any) []byte {
	b := mpack.AppendArray(nil, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case int:
			b = mpack.AppendInt(b, int64(v))
		case string:
			b = mpack.AppendStr(b, v)
		case []byte:
			b = append(b, v...)
		default:
			b = mpack.AppendNil(b)
		}
	}
	return b
}

func TestParseChangeRefuses(t *testing.T) {
	f := func(why string, values ...any) {
		t.Helper()
		if err := ParseChange(record(values...), &Change{}); err == nil || !strings.HasPrefix(err.Error(), "cannot parse change") {
			t.Errorf("%s: %v", why, err)
		}
	}
	token := record(1, 2, 3, 4)
	f("nothing")
	f("version", 2, 4, 0, 1, 2, 3, 4)
	f("no version", nil, 4, 0, 1, 2, 3, 4)
	f("kind 0", 1, 0, 0, 1, 2, 3, 4)
	f("kind 5", 1, 5, 0, 1, 2, 3, 4)
	f("negative time", 1, 4, -1, 1, 2, 3, 4)
	f("negative word", 1, 4, 0, 1, -2, 3, 4)
	f("word of text", 1, 4, 0, 1, "2", 3, 4)
	f("short key", 1, 4, 0, 1, 2, 3)
	f("one more", 1, 4, 0, 1, 2, 3, 4, 5)
	f("attempt 0", 1, 3, 0, 1, 2, 3, 4, 0)
	f("attempt too large", 1, 3, 0, 1, 2, 3, 4, 1<<32)
	f("status 256", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 256, "", "", nil, nil)
	f("output", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, nil, "", nil, nil)
	f("error", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, "", 1, nil, nil)
	f("dispatch", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, "", "", 1, nil)
	f("token", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, "", "", nil, 1)
	f("short token", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, "", "", nil, record(1, 2, 3))
	f("long token", 1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, "", "", nil, record(1, 2, 3, 4, 5))
	if err := ParseChange(record(1, 2, 0, 1, 2, 3, 4, 1, 1, 2, 3, 4, 0, "", "", nil, token), &Change{}); err != nil {
		t.Error(err)
	}
}

func TestLoadRecordRefuses(t *testing.T) {
	good := AppendChange(nil, &changes()[0])
	f := func(why string, values ...any) {
		t.Helper()
		h := New(Config{})
		if err := h.LoadRecord(record(values...)); err == nil || h.Len() != 0 {
			t.Errorf("%s: %v", why, err)
		}
	}
	f("nothing")
	f("version alone", 1)
	f("version", 2, 0)
	f("negative index", 1, -1)
	f("index of text", 1, "1")
	f("negative use", 1, -1, good)
	f("use without successors", 1, maxUse+1, good)
	f("no change", 1, 1, 1)
	f("released", 1, 1, AppendChange(nil, &Change{Kind: ChangeReleased, Attempt: 1}))
	f("dropped", 1, 1, AppendChange(nil, &Change{Kind: ChangeDropped}))
	f("one more", 1, 1, good, 1)
	if err := New(Config{}).LoadRecord(record(1, maxUse, good)); err != nil {
		t.Error(err)
	}
}

// seeds are the changes that are small enough to be varied quickly.
func seeds() (list [][]byte) {
	for _, c := range changes() {
		if rec := AppendChange(nil, &c); len(rec) < 1000 {
			list = append(list, rec)
		}
	}
	return list
}

// FuzzParseChange holds what it accepts to its own encoding, and applies it.
func FuzzParseChange(f *testing.F) {
	for _, rec := range seeds() {
		f.Add(rec)
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		var c, again Change
		if ParseChange(rec, &c) != nil {
			return
		}
		canonical := AppendChange(nil, &c)
		if err := ParseChange(canonical, &again); err != nil || !bytes.Equal(AppendChange(nil, &again), canonical) {
			t.Fatalf("%+v is not what it was: %v", c, err)
		}
		h := New(Config{MaxEntries: 1, MaxBytes: 100})
		for range 2 {
			if err := h.Apply(&c, 0); err != nil {
				t.Fatal(err)
			}
		}
		exercise(t, h)
	})
}

// FuzzLoadRecord loads whatever is accepted, and uses the table.
func FuzzLoadRecord(f *testing.F) {
	for _, rec := range seeds() {
		f.Add(record(1, 77, rec))
	}
	f.Add(record(1, 77))
	f.Fuzz(func(t *testing.T, rec []byte) {
		h := New(Config{MaxEntries: 1, MaxBytes: 100, Now: func() int64 { return 1 << 40 }})
		if h.LoadRecord(rec) != nil && h.Len() != 0 {
			t.Fatal("refused and kept")
		}
		exercise(t, h)
	})
}

// exercise recovers h and uses it.
func exercise(t *testing.T, h *Table) {
	h.Recovered()
	if o, _ := h.Begin(h.Now(), k("fresh"), in(""), nil); o != Started || h.Finish(k("fresh"), sized(100)) == nil {
		t.Fatal(o)
	}
	if err := checkQuiet(h); err != nil {
		t.Fatal(err)
	}
}
