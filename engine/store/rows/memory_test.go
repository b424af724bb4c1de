package rows

import (
	"testing"

	"trunkline/fuzz/rounds"
)

// TestMemoryIsBounded: ten times the history takes no more memory.
func TestMemoryIsBounded(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), CacheBytes: 1 << 20, MemTableBytes: 256 << 10}
	d := mustOpen(t, cfg)
	defer mustClose(t, d)
	n := rounds.Pick(4000, rounds.Of(4000, 20000))
	most := func(from, to int) (most Stats) {
		for ; from < to; from += n / 10 {
			mustPut(t, d, from, from+n/10, 250)
			for i := 0; i < from; i += 97 { // fills the cache
				if _, ok, err := d.Get(nil, keyOf(i)); !ok || err != nil {
					t.Fatal(i, ok, err)
				}
			}
			s := d.Stats()
			most.CacheBytes, most.MemTableBytes = max(most.CacheBytes, s.CacheBytes), max(most.MemTableBytes, s.MemTableBytes)
			most.OpenFileBytes, most.DiskBytes = max(most.OpenFileBytes, s.OpenFileBytes), s.DiskBytes
		}
		return most
	}
	one := most(0, n)
	ten := most(n, 10*n)
	t.Logf("%+v", one)
	t.Logf("%+v", ten)
	if ten.DiskBytes < 5*one.DiskBytes {
		t.Errorf("%d bytes on the disk, and %d of a tenth", ten.DiskBytes, one.DiskBytes)
	}
	waiting := (memTables + 1) * cfg.MemTableBytes // one more that was written and is read
	switch {
	case ten.CacheBytes > uint64(cfg.CacheBytes)+waiting:
		t.Errorf("%d bytes in the cache", ten.CacheBytes)
	case ten.MemTableBytes > waiting:
		t.Errorf("%d bytes in memtables", ten.MemTableBytes)
	case ten.OpenFileBytes > maxOpenFiles<<10:
		t.Errorf("%d bytes for open files", ten.OpenFileBytes)
	}
}
