package table

import (
	"fmt"
	"slices"
	"testing"
)

// evictEnded and evictAged are the policies of the session table and of the envelope store.
var (
	evictEnded = Policy{Ended: true}
	evictAged  = Policy{Ended: true, Live: true, LiveIdle: 100}
)

// harness is a table that writes down what it drops.
type harness struct {
	*Table[int]
	t       *testing.T
	dropped []string
}

func newHarness(t *testing.T, maxEntries int, maxBytes int64) *harness {
	h := &harness{t: t}
	h.Table = New(Config[int]{MaxEntries: maxEntries, MaxBytes: maxBytes, Shards: 4,
		OnEvict: func(key string, _ *int) { h.dropped = append(h.dropped, key) }})
	return h
}

func (h *harness) insert(key string, size int64, class Class, now int64, p Policy, want Outcome) {
	h.t.Helper()
	if got := h.Insert([]byte(key), new(int), size, class, now, p); got != want {
		h.t.Fatalf("Insert(%s, %d bytes, %v, at %d) = %v, want %v", key, size, class, now, got, want)
	}
}

func (h *harness) put(key string, size int64, class Class, now int64, p Policy, want Outcome) {
	h.t.Helper()
	if _, got := h.Put([]byte(key), new(int), size, class, now, p); got != want {
		h.t.Fatalf("Put(%s, %d bytes, %v, at %d) = %v, want %v", key, size, class, now, got, want)
	}
}

// holds checks what is in the table, what it weighs and what was dropped since the last call, in
// that order.
func (h *harness) holds(keys []string, bytes int64, dropped ...string) {
	h.t.Helper()
	var got []string
	h.Walk(func(e *Entry[int]) { got = append(got, e.Key()) })
	slices.Sort(got)
	if !slices.Equal(got, keys) || h.Len() != len(keys) || h.Bytes() != bytes {
		h.t.Fatalf("holds %v (Len %d, %d bytes), want %v (%d bytes)", got, h.Len(), h.Bytes(), keys, bytes)
	}
	if !slices.Equal(h.dropped, dropped) {
		h.t.Fatalf("dropped %v, want %v", h.dropped, dropped)
	}
	h.dropped = nil
}

func TestGetAndRemove(t *testing.T) {
	h := newHarness(t, 10, 100)
	one, two := new(int), new(int)
	if o := h.Insert([]byte("k"), one, 5, Live, 1, Policy{}); o != Inserted {
		t.Fatal(o)
	}
	h.insert("k", 7, Ended, 2, evictAged, Exists)
	if v, ok := h.Get([]byte("k")); !ok || v != one {
		t.Fatal("Get does not give what was inserted")
	}
	if old, o := h.Put([]byte("k"), two, 7, Ended, 2, Policy{}); o != Replaced || old != one {
		t.Fatalf("Put = %v", o)
	}
	h.Do([]byte("k"), func(e *Entry[int]) {
		if e.Key() != "k" || e.Value() != two || e.Size() != 7 || e.Class() != Ended || e.Touched() != 2 {
			t.Errorf("entry after Put: %+v", e)
		}
		e.SetValue(one)
	})
	if v, ok := h.Remove([]byte("k")); !ok || v != one {
		t.Fatal("Remove does not give the value")
	}
	if _, ok := h.Remove([]byte("k")); ok {
		t.Fatal("removed twice")
	}
	if _, ok := h.Get([]byte("k")); ok || h.Acquire([]byte("k")) != nil || h.Touch([]byte("k"), 9) || h.Do([]byte("k"), nil) {
		t.Fatal("still there after Remove")
	}
	h.holds(nil, 0)
}

func TestDefaults(t *testing.T) {
	f := func(shards, want int) {
		t.Helper()
		if got := len(New(Config[int]{Shards: shards}).shards); got != want {
			t.Fatalf("Shards %d: %d shards, want %d", shards, got, want)
		}
	}
	f(-1, defaultShards)
	f(0, defaultShards)
	f(1, 1)
	f(5, 8)
	f(maxShards+1, maxShards)
	if d := New(Config[int]{}); d.maxEntries != defaultMaxEntries || d.maxBytes != defaultMaxBytes {
		t.Fatalf("limits %d, %d", d.maxEntries, d.maxBytes)
	}
}

func TestEntryLimit(t *testing.T) {
	h := newHarness(t, 3, 1000)
	h.insert("a", 1, Live, 1, Policy{}, Inserted)
	h.insert("b", 1, Ended, 2, Policy{}, Inserted)
	h.insert("c", 1, Ended, 3, Policy{}, Inserted)
	h.insert("d", 1, Live, 4, Policy{}, Full)
	h.holds([]string{"a", "b", "c"}, 3)
	h.put("c", 5, Ended, 5, Policy{}, Replaced) // a replacement needs no place
	h.insert("d", 1, Live, 6, evictEnded, Inserted)
	h.holds([]string{"a", "c", "d"}, 7, "b")
	h.insert("e", 1, Live, 7, evictEnded, Inserted)
	h.insert("f", 1, Live, 8, evictEnded, Full) // only live ones are left
	h.holds([]string{"a", "d", "e"}, 3, "c")
}

// TestSetLimits: what is there stays, over lower limits too; an insertion then evicts until there
// is room, and takes no more than that.
func TestSetLimits(t *testing.T) {
	h := newHarness(t, 2, 20)
	h.SetLimits(1<<62, 1<<62)
	for i, key := range []string{"a", "b", "c", "d"} {
		h.insert(key, 10, Ended, int64(i), evictEnded, Inserted)
	}
	h.SetLimits(2, 20)
	h.holds([]string{"a", "b", "c", "d"}, 40)
	h.insert("e", 10, Live, 4, Policy{}, Full)
	h.insert("e", 10, Live, 4, evictEnded, Inserted)
	h.holds([]string{"d", "e"}, 20, "a", "b", "c")
	h.SetLimits(3, 30) // at the limit, and one more
	h.insert("f", 10, Live, 5, Policy{}, Inserted)
	h.insert("g", 0, Live, 6, Policy{}, Full)
	h.holds([]string{"d", "e", "f"}, 30)
}

func TestByteLimit(t *testing.T) {
	h := newHarness(t, 10, 100)
	h.insert("a", 101, Live, 1, evictAged, Full)
	h.insert("a", 100, Live, 1, Policy{}, Inserted)
	h.insert("b", 1, Live, 2, Policy{}, Full)
	h.insert("b", 0, Live, 2, Policy{}, Inserted)
	h.insert("c", -5, Live, 2, Policy{}, Inserted)
	h.holds([]string{"a", "b", "c"}, 100)
	e := h.Acquire([]byte("a"))
	if e.Resize(101) || e.Size() != 100 || !e.Resize(40) || !e.Resize(100) || e.Resize(1<<62) || !e.Resize(40) {
		t.Fatal("Resize does not keep to the limit")
	}
	e.Release()
	h.put("b", 61, Live, 3, Policy{}, Full)
	h.put("b", 60, Live, 3, Policy{}, Replaced)
	h.holds([]string{"a", "b", "c"}, 100)
}

func TestEvictionOrder(t *testing.T) {
	h := newHarness(t, 4, 1000)
	h.insert("live1", 1, Live, 10, Policy{}, Inserted)
	h.insert("live2", 1, Live, 20, Policy{}, Inserted)
	h.insert("end3", 1, Ended, 30, Policy{}, Inserted)
	h.insert("end4", 1, Live, 5, Policy{}, Inserted)
	e := h.Acquire([]byte("end4"))
	e.SetClass(Ended) // enters the list late, in front of end3
	e.SetClass(Ended)
	e.SetClass(numClasses)
	e.Release()
	h.Touch([]byte("live1"), 25)
	h.Touch([]byte("live1"), 15) // a clock that is behind

	h.insert("x1", 1, Live, 200, evictAged, Inserted) // ended ones go first, though live ones are older
	h.insert("x2", 1, Live, 200, evictAged, Inserted)
	h.insert("x3", 1, Live, 119, evictAged, Full) // live2 is idle for 99
	h.insert("x3", 1, Live, 120, evictAged, Inserted)
	h.insert("x4", 1, Live, 124, evictAged, Full)
	h.insert("x4", 1, Live, 125, evictAged, Inserted)
	h.holds([]string{"x1", "x2", "x3", "x4"}, 4, "end4", "end3", "live2", "live1")
}

func TestNoVainEviction(t *testing.T) {
	h := newHarness(t, 10, 100)
	h.insert("live", 50, Live, 1, Policy{}, Inserted)
	h.insert("end1", 20, Ended, 2, Policy{}, Inserted)
	h.insert("end2", 20, Ended, 3, Policy{}, Inserted)
	h.insert("big", 51, Live, 4, evictEnded, Full) // would not fit without all the ended ones either
	h.holds([]string{"end1", "end2", "live"}, 90)
	h.insert("big", 50, Live, 4, evictEnded, Inserted)
	h.holds([]string{"big", "live"}, 100, "end1", "end2")
}

func TestPutNeverEvictsItsKey(t *testing.T) {
	h := newHarness(t, 10, 100)
	h.insert("k", 40, Ended, 1, Policy{}, Inserted)
	h.insert("other", 40, Ended, 2, Policy{}, Inserted)
	h.insert("live", 20, Live, 3, Policy{}, Inserted)
	h.put("k", 81, Ended, 4, evictEnded, Full)
	if _, ok := h.Get([]byte("k")); !ok {
		t.Fatal("k is gone")
	}
	h.put("k", 80, Ended, 4, evictEnded, Replaced)
	h.holds([]string{"k", "live"}, 100, "other")
}

func TestMakeRoom(t *testing.T) {
	h := newHarness(t, 10, 100)
	h.insert("a", 50, Ended, 1, Policy{}, Inserted)
	h.insert("b", 50, Ended, 2, Policy{}, Inserted)
	f := func(key string, bytes int64, want bool) {
		t.Helper()
		if got := h.MakeRoom([]byte(key), bytes, 10, evictEnded); got != want {
			t.Fatalf("MakeRoom(%s, %d) = %v", key, bytes, got)
		}
	}
	f("a", 0, true)
	f("a", -1<<63, true)
	f("a", 1<<62, false)
	h.holds([]string{"a", "b"}, 100)
	f("a", 50, true) // a is older, but it is the one that wants to grow
	h.holds([]string{"a"}, 50, "b")
	f("a", 50, true)
	f("a", 51, false)
	h.holds([]string{"a"}, 50)
}

func TestSweep(t *testing.T) {
	h := newHarness(t, 100, 1000)
	for i := range 10 {
		h.insert(fmt.Sprint(i), 1, Class(i%2), int64(i), Policy{}, Inserted)
	}
	var seen []int64
	n := h.Sweep(5, func(_ *int, class Class, touched int64) bool {
		if class != Class(touched%2) {
			t.Errorf("entry of %d has class %v", touched, class)
		}
		seen = append(seen, touched)
		return touched != 2
	})
	slices.Sort(seen)
	if n != 5 || !slices.Equal(seen, []int64{0, 1, 2, 3, 4, 5}) {
		t.Fatalf("Sweep = %d, looked at %v", n, seen)
	}
	slices.Sort(h.dropped)
	h.holds([]string{"2", "6", "7", "8", "9"}, 5, "0", "1", "3", "4", "5")
}

func TestWalkMayChangeEntries(t *testing.T) {
	h := newHarness(t, 100, 1000)
	for i := range 20 {
		h.insert(fmt.Sprint(i), 1, Live, int64(i), Policy{}, Inserted)
	}
	seen := 0
	h.Walk(func(e *Entry[int]) {
		seen++
		switch e.Touched() % 4 {
		case 0:
			e.remove()
			e.remove()
			e.Touch(1000)
			e.SetClass(Ended)
			if e.Resize(3) {
				t.Error("a removed entry was resized")
			}
		case 1:
			e.SetClass(Ended)
			e.Resize(2)
		default:
			e.Touch(100 + e.Touched())
		}
	})
	if seen != 20 || h.Len() != 15 || h.Bytes() != 20 || h.ended.Load() != 10 {
		t.Fatalf("saw %d; left %d entries, %d bytes, %d of them ended", seen, h.Len(), h.Bytes(), h.ended.Load())
	}
}

func TestNames(t *testing.T) {
	if got := fmt.Sprint(Live, Ended, Full, Inserted, Replaced, Exists); got != "live ended full inserted replaced exists" {
		t.Fatal(got)
	}
}
