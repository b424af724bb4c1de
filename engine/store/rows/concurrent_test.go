package rows

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"trunkline/fuzz/rounds"
)

// TestManyUsers runs everything beside everything else: each writer's rows are seen by it at once,
// and by a scan without a hole.
func TestManyUsers(t *testing.T) {
	d := mustOpen(t, Config{Dir: t.TempDir(), MemTableBytes: 64 << 10})
	mustPut(t, d, 0, 1, 8)
	n := rounds.Of(30, 300)
	var busy atomic.Int64
	var writers, others sync.WaitGroup
	busy.Store(1)
	for w := range 3 {
		writers.Go(func() {
			b, dst := d.NewBatch(), []byte(nil)
			for i := range n {
				for j := range 10 {
					b.Set(fmt.Appendf(nil, "w%d-%06d", w, i*10+j), valueOf(i, 200))
				}
				if err := b.Commit(); err != nil {
					t.Error(err)
					return
				}
				v, ok, err := d.Get(dst[:0], fmt.Appendf(nil, "w%d-%06d", w, i*10+9))
				if dst = v; !ok || err != nil || !bytes.Equal(v, valueOf(i, 200)) {
					t.Error(w, i, ok, err)
					return
				}
			}
		})
	}
	for range 2 {
		others.Go(func() {
			for busy.Load() > 0 {
				next := map[byte]int{}
				err := d.Scan([]byte("w"), []byte("x"), false, func(k, _ []byte) bool {
					if want := fmt.Sprintf("w%c-%06d", k[1], next[k[1]]); string(k) != want {
						t.Errorf("row %s, want %s", k, want)
						return false
					}
					next[k[1]]++
					return true
				})
				if err != nil || slices.ContainsFunc([]byte("012"), func(w byte) bool { return next[w]%10 != 0 }) {
					t.Error("half a batch:", next, err)
				}
			}
		})
	}
	others.Go(func() {
		for i := uint64(1); busy.Load() > 0; i++ {
			if err := d.Flush(i); err != nil || d.Through() != i || d.Full() {
				t.Error(err, d.Through(), i)
			}
			_ = d.Stats()
		}
	})
	writers.Wait()
	busy.Store(0)
	others.Wait()
	mustClose(t, d)
}

// TestCloseBesideUsers: whatever runs when Close comes ends, as if it had come after Close or
// before.
func TestCloseBesideUsers(t *testing.T) {
	for range rounds.Of(5, 30) {
		d := mustOpen(t, Config{Memory: true, MemTableBytes: 64 << 10})
		mustPut(t, d, 0, 20, 1000)
		var users sync.WaitGroup
		begun := make(chan struct{}, 3)
		until := func(f func() error) {
			users.Go(func() {
				begun <- struct{}{}
				for f() == nil {
				}
			})
		}
		until(func() error {
			b := d.NewBatch()
			for i := range 20 {
				b.Set(keyOf(i), valueOf(i, 1000))
			}
			return b.Commit()
		})
		until(func() error { _, _, err := d.Get(nil, keyOf(1)); return err })
		until(func() error { return d.Flush(1) })
		for range 3 {
			<-begun
		}
		mustClose(t, d)
		users.Wait()
	}
}
