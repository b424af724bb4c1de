package keyindex

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mapRows is Rows in a map, with the state after each Put.
type mapRows struct {
	rows   map[string]string
	states []map[string]string
}

func (m *mapRows) Get(dst, key []byte) ([]byte, bool, error) {
	v, ok := m.rows[string(key)]
	return append(dst, v...), ok, nil
}

func (m *mapRows) Scan(lower, upper []byte, _ bool, f func(key, value []byte) bool) error {
	for _, k := range slices.Sorted(maps.Keys(m.rows)) {
		if k >= string(lower) && k < string(upper) && !f([]byte(k), []byte(m.rows[k])) {
			break
		}
	}
	return nil
}

func (m *mapRows) Put(rows ...[]byte) error {
	m.states = append(m.states, maps.Clone(m.rows))
	for i := 0; i < len(rows); i += 2 {
		if rows[i+1] == nil {
			delete(m.rows, string(rows[i]))
		} else {
			m.rows[string(rows[i])] = string(rows[i+1])
		}
	}
	return nil
}

func hashOf(n uint64) Hash {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, n))
	return Hash(sum[:])
}

// TestModel runs random changes, restarts and crashes against a map.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := &mapRows{rows: map[string]string{}}
		open := func() *Index {
			x := New('k')
			x.budget = rapid.SampledFrom([]int{0, 4096, 1 << 20}).Draw(rt, "budget")
			if err := x.Load(rows); err != nil {
				rt.Fatal(err)
			}
			return x
		}
		x := open()
		numbers, waiting := map[Hash]uint64{}, map[Hash]uint64{} // sealed, and pending
		next, now := uint64(0), int64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				for range rapid.IntRange(1, 400).Draw(rt, "n") {
					next++
					h := hashOf(rapid.Uint64Range(0, 500).Draw(rt, "key") * next % 3000)
					x.Add(&h, next, now)
					waiting[h] = next
				}
			},
			"seal": func(rt *rapid.T) {
				if err := x.Seal(); err != nil || x.Stats().Recent != 0 {
					rt.Fatal(err)
				}
				maps.Copy(numbers, waiting)
				clear(waiting)
			},
			"step": func(rt *rapid.T) {
				if _, err := x.Step(rapid.IntRange(1, 2000).Draw(rt, "budget")); err != nil {
					rt.Fatal(err)
				}
			},
			"expire": func(rt *rapid.T) {
				for more := true; more; { // what is merged is kept
					var err error
					if more, err = x.Step(1000); err != nil {
						rt.Fatal(err)
					}
				}
				if err := x.Expire(now); err != nil {
					rt.Fatal(err)
				}
				clear(numbers)
				now++
			},
			"restart": func(rt *rapid.T) {
				clear(waiting)
				x = open()
			},
			"crash": func(rt *rapid.T) { // loses batches that seal nothing
				if n := len(rows.states); n > 0 && bytes.Equal(liveOf(rows.rows), liveOf(rows.states[n-1])) {
					rows.rows, rows.states = rows.states[n-1], rows.states[:n-1]
					clear(waiting)
					x = open()
				}
			},
			"": func(rt *rapid.T) {
				for range 20 {
					h := hashOf(rapid.Uint64Range(0, 3000).Draw(rt, "find"))
					var got uint64
					if err := x.Find(&h, func(n uint64) bool { got = n; return false }); err != nil {
						rt.Fatal(err)
					}
					want := waiting[h]
					if want == 0 {
						want = numbers[h]
					}
					if got != want {
						rt.Fatalf("found %d, want %d", got, want)
					}
				}
				if s := x.Stats(); s.FilterBytes > x.budget || x.filters > x.budget || x.filters < s.FilterBytes {
					rt.Fatal(s, x.filters, x.budget)
				}
			},
		})
		// Without changes everything comes to an end, and only live runs are left.
		for more := true; more; {
			var err error
			if more, err = x.Step(1000); err != nil {
				rt.Fatal(err)
			}
		}
		levels := map[uint8]int{}
		ids := map[string]bool{}
		for _, r := range *x.runs.Load() {
			levels[r.level]++
			ids[string(binary.BigEndian.AppendUint64(nil, r.id))] = true
		}
		for level, n := range levels {
			if n >= fanOut {
				rt.Fatalf("%d runs of level %d", n, level)
			}
		}
		for k := range rows.rows {
			if !ids[k[2:10]] {
				rt.Fatalf("row %q is of no run", k)
			}
		}
	})
}

// liveOf returns the rows of runs that count.
func liveOf(rows map[string]string) (all []byte) {
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		if v := rows[k]; strings.HasPrefix(k, "kr") && v[0] == 1 {
			all = append(append(all, k...), v...)
		}
	}
	return all
}

// TestFilters: a filter has what was added, and of other hashes about one in a hundred.
func TestFilters(t *testing.T) {
	const n = 50_000
	f := newFilter(n)
	for i := range uint64(n) {
		h := hashOf(i)
		f.add(newEntry(&h, 0))
	}
	wrong := 0
	for i := range uint64(2 * n) {
		h := hashOf(i)
		switch got := f.has(newEntry(&h, 0)); {
		case i < n && !got:
			t.Fatal("missing", i)
		case i >= n && got:
			wrong++
		}
	}
	if wrong > n/150 {
		t.Errorf("%d of %d unknown hashes pass", wrong, n)
	}
}

// TestDamage: what is missing or damaged is an error.
func TestDamage(t *testing.T) {
	rows := &mapRows{rows: map[string]string{}}
	x := New('k')
	if err := x.Load(rows); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(1000) {
		h := hashOf(i)
		x.Add(&h, i+1, 0)
	}
	if err := x.Seal(); err != nil {
		t.Fatal(err)
	}
	find := func() (err error) {
		for i := range uint64(1000) {
			h := hashOf(i)
			if err = x.Find(&h, func(uint64) bool { return true }); err != nil {
				break
			}
		}
		return err
	}
	if err := find(); err != nil {
		t.Fatal(err)
	}
	for k, v := range rows.rows {
		if k[1] == rowPage {
			rows.rows[k] = v[1:]
		}
	}
	if err := find(); err == nil {
		t.Error("a damaged page is read")
	}
	for k := range rows.rows {
		if k[1] == rowPage {
			delete(rows.rows, k)
		}
	}
	if err := find(); err == nil {
		t.Error("a missing page is no error")
	}
	for k, v := range rows.rows {
		if k[1] == rowRun {
			rows.rows[k] = v + "x"
		}
	}
	if err := New('k').Load(rows); err == nil {
		t.Error("a damaged run is read")
	}
}

func BenchmarkIndex(b *testing.B) {
	x := New('k')
	rows := &mapRows{rows: map[string]string{}}
	_ = x.Load(rows)
	n := uint64(0)
	add := func() {
		n++
		var h Hash
		binary.BigEndian.PutUint64(h[:], n*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(h[8:], (n^n<<31)*0xbf58476d1ce4e5b9)
		x.Add(&h, n, 0)
	}
	for range 1_000_000 {
		if add(); x.Full() {
			_ = x.Seal()
			rows.states = nil
		}
	}
	for more := true; more; rows.states = nil {
		more, _ = x.Step(1 << 20)
	}
	b.Run("unknown", func(b *testing.B) {
		for i := range uint64(b.N) {
			var h Hash
			binary.BigEndian.PutUint64(h[:], i*0xc2b2ae3d27d4eb4f)
			binary.BigEndian.PutUint64(h[8:], ^i*0x94d049bb133111eb)
			_ = x.Find(&h, func(uint64) bool { return false })
		}
	})
}
