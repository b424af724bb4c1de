package threadstore

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// ranges notes what a watcher is notified of.
type ranges struct {
	mu   sync.Mutex
	next map[string]uint64 // the number that has to come next
	bad  string
	wake chan struct{}
}

func newRanges() *ranges { return &ranges{next: map[string]uint64{}, wake: make(chan struct{}, 1)} }

func (w *ranges) Changed(thread string, from, to uint64) {
	w.mu.Lock()
	if next := w.next[thread]; from <= to {
		if next != 0 && next != from {
			w.bad = fmt.Sprintf("%d to %d of %s, want them from %d on", from, to, thread, next)
		}
		w.next[thread] = to + 1
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// reaches waits until all messages of a thread up to one were notified of.
func (w *ranges) reaches(t *testing.T, thread string, seq uint64) {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		w.mu.Lock()
		next, bad := w.next[thread], w.bad
		w.mu.Unlock()
		if bad != "" {
			t.Fatal(bad)
		}
		if next > seq {
			return
		}
		select {
		case <-w.wake:
		case <-deadline:
			t.Fatalf("notified up to %d of %s, want %d", next-1, thread, seq)
		}
	}
}

// TestWatchersSeeEachMessageOnce: under concurrent posts, watchers of a thread and of a workspace
// are notified of every durable message in ranges without gap or overlap.
func TestWatchersSeeEachMessageOnce(t *testing.T) {
	r := newRig(t, Config{})
	r.Start()
	defer r.Engine.Close()
	one, two := r.create(), r.create()
	single, all, other := newRanges(), newRanges(), newRanges()
	var ws [3]Watch
	for i, w := range []struct {
		a  *Actor
		id []byte
		to Watcher
	}{{alice, one, single}, {boss, nil, all}, {eve, nil, other}} {
		if _, ref := r.Watch(w.a, w.id, w.to, &ws[i]); ref.Code != OK {
			t.Fatal(ref)
		}
	}
	const posts = 300
	var done sync.WaitGroup
	for _, id := range [][]byte{one, two} {
		for range 2 {
			done.Go(func() {
				for range posts {
					if _, ref := r.Post(boss, id, textPost("x", ""), r.now); ref.Code != OK {
						t.Error(ref)
					}
				}
			})
		}
	}
	done.Wait()
	r.sync()
	single.reaches(t, string(one), 2*posts)
	all.reaches(t, string(one), 2*posts)
	all.reaches(t, string(two), 2*posts)
	if len(single.next) != 1 || len(other.next) != 0 {
		t.Errorf("watchers are notified of threads of others: %v, %v", single.next, other.next)
	}
	for i := range ws {
		r.Unwatch(&ws[i])
		r.Unwatch(&ws[i])
	}
	if n := r.watches.anyOf.Load(); n != 0 || len(r.watches.workspaces) != 0 {
		t.Errorf("%d registrations of workspaces are left, %d workspaces", n, len(r.watches.workspaces))
	}
	var w Watch
	if _, ref := r.Watch(eve, one, single, &w); ref.Code != OtherWorkspace {
		t.Errorf("another workspace watches: %+v", ref)
	}
	if _, ref := r.Watch(&Actor{Workspace: "w", Agent: "stranger"}, one, single, &w); ref.Code != NotMember {
		t.Errorf("a stranger watches: %+v", ref)
	}
}

// TestWatchNotifiesOfWhatWasNotDurable: a message that is appended and not durable when a watcher
// registers is notified of; one that is durable is part of what Watch returns.
func TestWatchNotifiesOfWhatWasNotDurable(t *testing.T) {
	r := newRig(t, Config{})
	id := r.create()
	r.post(boss, id, "first", "")
	r.sync()
	r.Start()
	defer r.Engine.Close()
	w := newRanges()
	var reg Watch
	r.post(boss, id, "second", "")
	durable, ref := r.Watch(boss, id, w, &reg)
	if ref.Code != OK || durable < 1 {
		t.Fatal(durable, ref)
	}
	r.sync()
	if durable < 2 {
		w.reaches(t, string(id), 2)
	}
}

// TestSince: a stream of all threads goes on with what is at most the overlap older than a message,
// and behind it in its own thread.
func TestSince(t *testing.T) {
	r := newRig(t, Config{HotBytes: 1, segment: 200})
	one, two, old := r.create(), r.create(), r.create()
	r.post(boss, old, "long ago", "")
	r.now += 10_000
	for range 3 {
		r.post(boss, one, "x", "")
		r.post(boss, two, "x", "")
		r.now += 1000
	}
	r.sync()
	r.store()
	got := map[string][2]uint64{}
	if ref := r.Since(boss, one, 2, 1500, func(id string, next, end uint64) { got[id] = [2]uint64{next, end} }); ref.Code != OK {
		t.Fatal(ref)
	}
	want := map[string][2]uint64{string(one): {2, 3}, string(two): {0, 3}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if ref := r.Since(eve, one, 2, 0, nil); ref.Code != OtherWorkspace {
		t.Error(ref)
	}
}
