package rows

import "testing"

// TestSteadyStateAllocatesNothing: while nothing is flushed, what is put is copied into memory that
// is there, and what is read into the caller's.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if raceOn {
		t.Skip("the race detector allocates")
	}
	d := mustOpen(t, Config{Dir: t.TempDir(), MemTableBytes: 64 << 20})
	defer mustClose(t, d)
	mustPut(t, d, 0, 100, 250)
	mustFlush(t, d, 1)
	b, dst := d.NewBatch(), make([]byte, 0, 1000)
	keys, value, missing := make([][]byte, 128), valueOf(1, 250), []byte("k000050x")
	for i := range keys {
		keys[i] = keyOf(i)
	}
	f := func(what string, do func() error) {
		t.Helper()
		var err error
		n := testing.AllocsPerRun(200, func() {
			if e := do(); e != nil {
				err = e
			}
		})
		if n != 0 || err != nil {
			t.Errorf("%s: %v allocations (%v)", what, n, err)
		}
	}
	f("commit", func() error {
		for _, k := range keys {
			b.Set(k, value)
		}
		return b.Commit()
	})
	mustFlush(t, d, 2)
	f("get", func() error { _, _, err := d.Get(dst, keys[5]); return err })
	f("get of nothing", func() error { _, _, err := d.Get(dst, missing); return err })
}
