package rows

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// cutter loses the power of a disk at some of its operations: at each it keeps what the disk might
// then hold, and what had to be there.
type cutter struct {
	mem *memdisk.Disk

	mu       sync.Mutex
	rng      *rand.Rand
	every    int
	ops      int
	must     promise
	begun    int // batches
	cuts     []cut
	disabled bool
}

// promise is what a crash must keep: so many batches, and a mark that is no lower.
type promise struct {
	batches int
	mark    uint64
}

type cut struct {
	fs    *vfs.MemFS
	must  promise
	begun int
	what  string
}

// maxCuts bounds the openings of a run.
const maxCuts = 12

// String implements errorfs.Injector.
func (c *cutter) String() string { return "cutter" }

// MaybeError implements errorfs.Injector. It never gives an error.
func (c *cutter) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ops++; c.ops%c.every == 0 && len(c.cuts) < maxCuts && !c.disabled {
		c.take(fmt.Sprint("before operation ", op.Kind, " on ", op.Path))
	}
	return nil
}

// take cuts the power. Caller holds mu.
func (c *cutter) take(what string) {
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 30, 60, 100}[c.rng.IntN(4)], RNG: c.rng}
	c.cuts = append(c.cuts, cut{c.mem.CrashClone(cfg), c.must, c.begun, what})
}

func (c *cutter) note(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// life is the model: the rows after each batch.
type life struct {
	states []map[string]string
	marks  []promise // of every Flush that was begun
}

// TestCrashKeepsAPrefix cuts the power of busy rows. Everything before the last Flush is there, and
// of what came later a prefix in the order of the commits; the mark names no more than there is.
func TestCrashKeepsAPrefix(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); !rounds.Long() && f.Value.String() == f.DefValue {
		_ = f.Value.Set("30")
		defer func() { _ = f.Value.Set(f.DefValue) }()
	}
	between := 0
	rapid.Check(t, func(t *rapid.T) {
		c := &cutter{mem: memdisk.New(), rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), every: rapid.IntRange(1, 60).Draw(t, "every")}
		l := &life{states: []map[string]string{{}}}
		cfg := Config{Dir: "a/d", FS: errorfs.Wrap(c.mem, c), MemTableBytes: 16 << 10}
		d, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 20).Draw(t, "step") {
			case 0, 1:
				l.flush(t, c, d)
			case 2:
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
				if d, err = Open(cfg); err != nil {
					t.Fatal(err)
				}
				l.lost(t, c, d)
			default:
				l.batch(t, c, d)
			}
			l.same(t, d)
		}
		c.note(func() { c.take("at the end"); c.disabled = true })
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		for _, cut := range c.cuts {
			if l.reopen(t, cut) != cut.must.batches {
				between++
			}
		}
	})
	if between == 0 {
		t.Error("no crash kept more than the last flush")
	}
}

func (l *life) last() map[string]string { return l.states[len(l.states)-1] }

func (l *life) batch(t *rapid.T, c *cutter, d *DB) {
	state, b := maps.Clone(l.last()), d.NewBatch()
	for range rapid.IntRange(1, 12).Draw(t, "rows") {
		i := rapid.IntRange(0, 40).Draw(t, "key")
		if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			b.Delete(keyOf(i))
			delete(state, string(keyOf(i)))
			continue
		}
		v := valueOf(rapid.IntRange(0, 1<<30).Draw(t, "value"), rapid.IntRange(0, 3000).Draw(t, "size"))
		b.Set(keyOf(i), v)
		state[string(keyOf(i))] = string(v)
	}
	l.states = append(l.states, state)
	c.note(func() { c.begun = len(l.states) - 1 })
	if err := b.Commit(); err != nil {
		t.Fatal(err)
	}
}

func (l *life) flush(t *rapid.T, c *cutter, d *DB) {
	p := promise{len(l.states) - 1, uint64(len(l.marks) + 1)}
	l.marks = append(l.marks, p)
	if err := d.Flush(p.mark); err != nil {
		t.Fatal(err)
	}
	c.note(func() { c.must = p })
}

// lost finds out what an orderly end without a Flush has kept, and goes on from there.
func (l *life) lost(t *rapid.T, c *cutter, d *DB) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := l.find(t, d, cut{must: c.must, begun: len(l.states) - 1, what: "an orderly end"})
	l.states = append(l.states, l.states[n]) // as if a batch had undone the rest
	c.begun = len(l.states) - 1
	if c.must.batches <= n {
		return
	}
	t.Fatal("lost a flush")
}

func (l *life) same(t *rapid.T, d *DB) {
	got, err := contentOf(d)
	if err != nil || !maps.Equal(got, l.last()) {
		t.Fatalf("%d rows (%v), want %d", len(got), err, len(l.last()))
	}
	for i := range 41 {
		v, ok, err := d.Get(nil, keyOf(i))
		want, is := l.last()[string(keyOf(i))]
		if err != nil || ok != is || string(v) != want {
			t.Fatalf("key %d: %v %v, want %v", i, ok, err, is)
		}
	}
}

// reopen opens what a cut left and returns how many batches are there.
func (l *life) reopen(t *rapid.T, c cut) int {
	d, err := Open(Config{Dir: "a/d", FS: c.fs})
	if err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	n := l.find(t, d, c)
	b := d.NewBatch()
	b.Set([]byte("after"), nil)
	if err := errors.Join(b.Commit(), d.Flush(1000)); err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	if err := d.Close(); err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	return n
}

// find returns after which batch the rows were as they are now.
func (l *life) find(t *rapid.T, d *DB, c cut) int {
	got, err := contentOf(d)
	if err != nil {
		t.Fatalf("%s: %v", c.what, err)
	}
	least := c.must.batches
	if m := d.Through(); m < c.must.mark || m > uint64(len(l.marks)) {
		t.Fatalf("%s: the mark is %d, of %d, want %d", c.what, m, len(l.marks), c.must.mark)
	} else if m > 0 {
		least = max(least, l.marks[m-1].batches)
	}
	for n := c.begun; n >= least; n-- {
		if maps.Equal(got, l.states[n]) {
			return n
		}
	}
	t.Fatalf("%s: %d rows, which are those of no batch from %d to %d", c.what, len(got), least, c.begun)
	return 0
}
