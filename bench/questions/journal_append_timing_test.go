package questions

// Question: what does a record of 300 bytes cost until it is durable, in reads of 64 that share a
// wait: the journal alone, over a store in memory, and over the embedded one with a file system in
// memory, which syncs every block or leaves that for later?

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/fuzz/kit/memstore"
)

func BenchmarkJournalAppend(b *testing.B) { measure(b, journalAppends()) }

func journalAppends() []question {
	appends := func(name string, mode journal.Mode, open func() (journal.Store, error)) question {
		return question{name: name, prepare: func(tb testing.TB) work {
			store, err := open()
			if err != nil {
				tb.Fatal(err)
			}
			return appendWork(tb, store, mode)
		}}
	}
	embeddedIn := func(mode journal.Mode) func() (journal.Store, error) {
		return func() (journal.Store, error) {
			// A disk of its own in memory: what a real one adds is its sync, which bench/storage
			// measures.
			free := func() (uint64, error) { return 1 << 40, nil }
			return embedded.Open(embedded.Config{Dir: "journal", Mode: mode, FS: vfs.NewMem(), FreeBytes: free, SnapshotRate: -1})
		}
	}
	return []question{
		appends("store=none", journal.Always, func() (journal.Store, error) { return nowhere{}, nil }),
		appends("store=memory", journal.Always, func() (journal.Store, error) { return memstore.New(memstore.Options{}).Open() }),
		appends("store=embedded/sync=always", journal.Always, embeddedIn(journal.Always)),
		appends("store=embedded/sync=interval", journal.Interval, embeddedIn(journal.Interval)),
	}
}

// appendWork appends 64 records and waits for the last one. The log is cut by a snapshot now and
// then, so that it does not grow.
func appendWork(tb testing.TB, store journal.Store, mode journal.Mode) work {
	const records = 64
	l := openLog(tb, store, mode)
	rec := make([]byte, 300)
	var last journal.Index
	run := func() {
		for range records {
			last = l.Append(rec)
		}
		if err := l.Barrier(context.Background()); err != nil {
			tb.Fatal(err)
		}
	}
	run()
	if l.Durable() != last {
		tb.Fatalf("durable up to %d of %d", l.Durable(), last)
	}
	w := work{run: run, ops: records, bytes: len(rec)}
	if store != (nowhere{}) {
		w.every, w.again = 500, func() { cutLog(tb, l) }
	}
	return w
}

func openLog(tb testing.TB, store journal.Store, mode journal.Mode) *journal.Log {
	tb.Helper()
	l, err := journal.Open(store, journal.Config{Mode: mode})
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.Replay(0, nil); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := l.Close(); err != nil {
			tb.Error(err)
		}
	})
	return l
}
