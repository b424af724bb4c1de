package table

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// row is an entry of the model, which is a plain map.
type row struct {
	value   *int
	size    int64
	touched int64
	class   Class
}

type model struct {
	rows       map[string]*row
	maxEntries int
	maxBytes   int64
}

// bytes sums the sizes of the rows of the classes given.
func (m *model) bytes(classes ...Class) (n int64) {
	for _, r := range m.rows {
		for _, c := range classes {
			if r.class == c {
				n += r.size
			}
		}
	}
	return n
}

// fits reports whether key with size fits beside the others.
func (m *model) fits(key string, size int64) bool {
	entries, bytes := len(m.rows)+1, m.bytes(Live, Ended)+size
	if r := m.rows[key]; r != nil {
		entries, bytes = entries-1, bytes-r.size
		if size <= r.size {
			return true
		}
	}
	return entries <= m.maxEntries && bytes <= m.maxBytes
}

// victim returns the class and reading that must be evicted next for key, if any may be.
func (m *model) victim(key string, now int64, p Policy) (class Class, reading int64, ok bool) {
	for _, class := range []Class{Ended, Live} {
		allowed, idle := p.of(class)
		reading, ok := int64(none), false
		for k, r := range m.rows {
			if k != key && r.class == class && r.touched < reading {
				reading, ok = r.touched, true
			}
		}
		if allowed && ok && now-reading >= idle {
			return class, reading, true
		}
	}
	return 0, 0, false
}

// hopeless reports whether key with size could not fit even if everything that p names were gone.
func (m *model) hopeless(key string, size int64, p Policy) bool {
	left := m.bytes(Live, Ended)
	if p.Ended {
		left -= m.bytes(Ended)
	}
	if p.Live {
		left -= m.bytes(Live)
	}
	if r := m.rows[key]; r != nil {
		size -= r.size
	}
	return left+size > m.maxBytes
}

// insert follows the table, which dropped the keys given for it, and returns the outcome that this
// must have led to.
func (m *model) insert(t *rapid.T, key string, n row, p Policy, replace bool, dropped []string) Outcome {
	before := m.rows[key]
	if before != nil && !replace {
		return Exists
	}
	for _, k := range dropped {
		class, reading, ok := m.victim(key, n.touched, p)
		gone := m.rows[k]
		if m.fits(key, n.size) || !ok || gone == nil || gone.class != class || gone.touched != reading || k == key {
			t.Fatalf("dropped %s (%+v) for %s of %d bytes; expected %v of %d", k, gone, key, n.size, class, reading)
		}
		delete(m.rows, k)
	}
	if !m.fits(key, n.size) {
		if _, _, ok := m.victim(key, n.touched, p); ok && !m.hopeless(key, n.size, p) {
			t.Fatalf("nothing more was dropped for %s of %d bytes", key, n.size)
		}
		return Full
	}
	m.rows[key] = &n
	if before != nil {
		n.touched = max(n.touched, before.touched)
		return Replaced
	}
	return Inserted
}

// machine runs the table and the model side by side; its methods are the steps.
type machine struct {
	h       *Table[int]
	m       *model
	dropped []string
}

var (
	someKey   = rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
	someSize  = rapid.Int64Range(-1, 20)
	someClass = rapid.SampledFrom([]Class{Live, Ended})
	someTime  = rapid.Int64Range(0, 300)
	someIdle  = rapid.Int64Range(0, 50)
)

// TestModel compares the table with a plain map under random sequences of all operations.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := &machine{m: &model{
			rows:       map[string]*row{},
			maxEntries: rapid.IntRange(1, 6).Draw(t, "entries"),
			maxBytes:   rapid.Int64Range(1, 40).Draw(t, "bytes"),
		}}
		x.h = New(Config[int]{
			MaxEntries: x.m.maxEntries,
			MaxBytes:   x.m.maxBytes,
			Shards:     1 << rapid.IntRange(0, 3).Draw(t, "shards"),
			OnEvict:    func(key string, _ *int) { x.dropped = append(x.dropped, key) },
		})
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) { x.insert(t, false) },
			"put":    func(t *rapid.T) { x.insert(t, true) },
			"touch":  x.touch,
			"resize": x.resize,
			"class":  x.setClass,
			"remove": x.remove,
			"sweep":  x.sweep,
			"":       func(t *rapid.T) { compare(t, x.h, x.m) },
		})
	})
}

func (x *machine) insert(t *rapid.T, replace bool) {
	x.dropped = x.dropped[:0]
	k, bytes, v := someKey.Draw(t, "key"), someSize.Draw(t, "size"), new(int)
	n := row{v, max(bytes, 0), someTime.Draw(t, "now"), someClass.Draw(t, "class")}
	p := Policy{
		Ended: rapid.Bool().Draw(t, "ended"), EndedIdle: someIdle.Draw(t, "ended idle"),
		Live: rapid.Bool().Draw(t, "live"), LiveIdle: someIdle.Draw(t, "live idle"),
	}
	var old *int
	var o Outcome
	was := x.m.rows[k]
	if replace {
		old, o = x.h.Put([]byte(k), v, bytes, n.class, n.touched, p)
	} else {
		o = x.h.Insert([]byte(k), v, bytes, n.class, n.touched, p)
	}
	if want := x.m.insert(t, k, n, p, replace, x.dropped); o != want {
		t.Fatalf("insertion of %s: %v, want %v", k, o, want)
	}
	if o == Replaced && old != was.value {
		t.Fatal("Put does not return the old value")
	}
}

func (x *machine) touch(t *rapid.T) {
	k, at := someKey.Draw(t, "key"), someTime.Draw(t, "now")
	r := x.m.rows[k]
	if x.h.Touch([]byte(k), at) != (r != nil) {
		t.Fatal("Touch")
	}
	if r != nil {
		r.touched = max(r.touched, at)
	}
}

func (x *machine) resize(t *rapid.T) {
	k, bytes := someKey.Draw(t, "key"), max(someSize.Draw(t, "size"), 0)
	x.h.Do([]byte(k), func(e *Entry[int]) {
		want := x.m.fits(k, bytes)
		if e.Resize(bytes) != want {
			t.Fatalf("Resize(%d) = %v", bytes, !want)
		}
		if want {
			x.m.rows[k].size = bytes
		}
	})
}

func (x *machine) setClass(t *rapid.T) {
	k, c := someKey.Draw(t, "key"), someClass.Draw(t, "class")
	if x.h.Do([]byte(k), func(e *Entry[int]) { e.SetClass(c) }) {
		x.m.rows[k].class = c
	}
}

func (x *machine) remove(t *rapid.T) {
	k := someKey.Draw(t, "key")
	if _, ok := x.h.Remove([]byte(k)); ok != (x.m.rows[k] != nil) {
		t.Fatal("Remove")
	}
	delete(x.m.rows, k)
}

func (x *machine) sweep(t *rapid.T) {
	cutoff, c := someTime.Draw(t, "cutoff"), someClass.Draw(t, "class")
	want := 0
	for k, r := range x.m.rows {
		if r.touched <= cutoff && r.class == c {
			delete(x.m.rows, k)
			want++
		}
	}
	if got := x.h.Sweep(cutoff, func(_ *int, class Class, _ int64) bool { return class == c }); got != want {
		t.Fatalf("Sweep = %d, want %d", got, want)
	}
}

// compare checks the table's content, its counters and its lists.
func compare(t *rapid.T, h *Table[int], m *model) {
	if h.Len() != len(m.rows) || h.Bytes() != m.bytes(Live, Ended) || h.ended.Load() != m.bytes(Ended) {
		t.Fatalf("%d entries, %d bytes, %d ended; model %d, %d, %d", h.Len(), h.Bytes(), h.ended.Load(),
			len(m.rows), m.bytes(Live, Ended), m.bytes(Ended))
	}
	h.Walk(func(e *Entry[int]) {
		got := row{e.Value(), e.Size(), e.Touched(), e.Class()}
		if r := m.rows[e.Key()]; r == nil || got != *r {
			t.Fatalf("%s: %+v, model %+v", e.Key(), got, r)
		}
	})
	if err := checkLists(h); err != nil {
		t.Fatal(err)
	}
}

// checkLists verifies that the lists hold all entries, in order, linked both ways, with the right
// reading at their heads.
func checkLists[V any](h *Table[V]) error {
	for i := range h.shards {
		s, n := &h.shards[i], 0
		for class := range numClasses {
			first, last := int64(none), (*Entry[V])(nil)
			for e := s.lists[class].head; e != nil; e = e.next {
				first = min(first, e.touched)
				if e.prev != last || e.class != class || last != nil && last.touched > e.touched {
					return fmt.Errorf("list of %v is broken at %s", class, e.key)
				}
				last = e
				n++
			}
			if s.lists[class].tail != last || s.oldest(class) != first {
				return fmt.Errorf("list of %v: wrong tail or first reading %d, want %d", class, s.oldest(class), first)
			}
		}
		if n != len(s.entries) {
			return fmt.Errorf("%d entries in lists, %d in the map", n, len(s.entries))
		}
	}
	return nil
}
