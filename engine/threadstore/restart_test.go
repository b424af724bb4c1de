package threadstore

import (
	"fmt"
	"testing"
)

// restart writes a snapshot and starts again from it: nothing of the journal is replayed.
func (r *rig) restart() {
	r.t.Helper()
	r.sync()
	if err := r.st.Snapshot(); err != nil {
		r.t.Fatal(err)
	}
	r.crash(func(n int) int { return n })
}

// TestJobsOfEarlierStarts: a job does not take the place of a final one that only rows have.
func TestJobsOfEarlierStarts(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	var ids []string
	for i := range 3 {
		key := fmt.Sprint("k", i)
		j, _, ref := r.trigger(id, key, key)
		if ref.Code != OK {
			t.Fatal(ref)
		}
		ids = append(ids, j.ID)
		r.Finish(r.claimOne().ID, "", r.now)
		r.restart()
	}
	for i, want := range ids {
		key := fmt.Sprint("k", i)
		if j, rec, ref := r.trigger(id, key, key); ref.Code != OK || !rec.Replay || j.ID != want {
			t.Errorf("%s again: %+v %+v, want %s", key, j, ref, want)
		}
	}
	list, _ := r.Jobs(boss, id, 10)
	if len(list) != len(ids) {
		t.Errorf("%d jobs of %d", len(list), len(ids))
	}
	for i := range list {
		if list[i].ID != ids[len(ids)-1-i] {
			t.Errorf("job %d is not the newest of the rest", i)
		}
	}
}

// TestKeyOfTwoThreads: after a start, too, a key that was free again names the later thread.
func TestKeyOfTwoThreads(t *testing.T) {
	for range 8 { // a snapshot has threads in any order
		r := newRig(t, Config{KeyWindow: 1000})
		create := func() (string, Receipt) {
			t.Helper()
			id, rec, ref := r.Create(boss, &NewThread{Title: []byte("t"), Key: []byte("k")}, r.now)
			if ref.Code != OK {
				t.Fatal(ref)
			}
			return id, rec
		}
		first, _ := create()
		r.now += 1000
		second, rec := create()
		if second == first || rec.Replay {
			t.Fatal("a key whose time is over is known")
		}
		r.restart()
		if again, rec := create(); again != second || !rec.Replay {
			t.Fatalf("%s, want %s", again, second)
		}
	}
}

// TestSessionsAlone: a registry without a thread is in a snapshot.
func TestSessionsAlone(t *testing.T) {
	r := newRig(t, Config{})
	r.beat(alice, live)
	before := r.Digest()
	r.restart()
	if r.Session("w", "alice") == nil || r.Digest() != before {
		t.Error("the session is gone")
	}
}
