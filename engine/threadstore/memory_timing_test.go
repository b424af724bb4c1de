package threadstore

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"trunkline/engine/store"
	"trunkline/engine/store/rows"
)

// resident is the memory of the process in bytes, 0 where it is not known.
func resident() int64 {
	runtime.GC()
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/statm")
	if f := strings.Fields(string(text)); len(f) > 1 {
		n, _ := strconv.ParseInt(f[1], 10, 64)
		return n * int64(os.Getpagesize())
	}
	return 0
}

// TestMemoryOfHistory posts messages to threads, a tenth of them first, and compares the memory. It
// needs TRUNKLINE_THREADS_MESSAGES, how many; 10,000,000 take minutes.
func TestMemoryOfHistory(t *testing.T) {
	text := os.Getenv("TRUNKLINE_THREADS_MESSAGES")
	if text == "" {
		t.Skip("TRUNKLINE_THREADS_MESSAGES is not set")
	}
	total, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	db, err := rows.Open(rows.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	e := New(Config{KeyWindow: 24 * 3600_000})
	if err := e.SetRows(StoredRows(db)); err != nil {
		t.Fatal(err)
	}
	e.Join(store.New(store.Config{Machines: []store.Machine{e.Machine()}}))
	var ids [10_000][]byte
	for i := range ids {
		id, _, ref := e.Create(boss, &NewThread{Title: []byte("t"), Participants: [][]byte{[]byte("alice"), []byte("bob")}}, 1)
		if ref.Code != OK {
			t.Fatal(ref)
		}
		ids[i] = []byte(id)
	}
	p := &Post{Body: []byte(strings.Repeat("x", 200))}
	post := func(from, to int) {
		for i := from; i < to; i++ {
			p.Key = fmt.Append(p.Key[:0], "key-", i)
			if _, ref := e.Post(alice, ids[i%len(ids)], p, int64(i)); ref.Code != OK {
				t.Fatal(ref)
			}
			if i%10_000 == 0 {
				if err := e.storeUpTo(e.safe()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	post(0, total/10)
	first := resident()
	post(total/10, total)
	second := resident()
	t.Logf("%d messages: %d MB; %d messages: %d MB; ratio %.2f; rows %+v", total/10, first>>20, total, second>>20, float64(second)/float64(first), db.Stats())
	if float64(second) > 1.3*float64(first) {
		t.Errorf("memory grows with history")
	}
}
