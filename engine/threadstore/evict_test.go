package threadstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"trunkline/fuzz/rounds"
)

// TestEvictionBesideReaders posts while rows are stored, memory is dropped, keys are sealed and
// snapshots are written: pages have no gap, keys find their messages, and replies theirs.
func TestEvictionBesideReaders(t *testing.T) {
	r := newRig(t, Config{HotBytes: 1, segment: 600})
	id := r.create()
	total := rounds.Of(300, 1500)
	posted := make([]Posted, total)
	var count atomic.Int64 // of those that are durable
	var running sync.WaitGroup
	ended := make(chan struct{})
	beside := func(f func(n int)) {
		running.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					if n := int(count.Load()); n > 0 {
						f(n)
					}
				}
			}
		})
	}
	body := func(i int) string { return fmt.Sprint("body", i) }
	for range 2 {
		beside(func(n int) {
			since := rand.IntN(n)
			page, p, ref := r.Read(bob, id, uint64(since), 20, true, nil)
			want := since
			for _, m := range strings.Split(string(page), `"body":"`)[1:] {
				if want++; !strings.HasPrefix(m, body(want)+`"`) {
					t.Errorf("%.20s at %d", m, want)
				}
			}
			if ref.Code != OK || int(p.Next) != want || want < min(n, since+20) {
				t.Errorf("page behind %d of %d ends at %d (%d, %+v)", since, n, want, p.Next, ref)
			}
		})
	}
	beside(func(n int) {
		i := 1 + rand.IntN(n)
		if p, ref := r.Post(alice, id, textPost(body(i), fmt.Sprint("k", i)), r.now); ref.Code != OK || !p.Replay || p.Seq != uint64(i) || p.id != posted[i-1].id {
			t.Errorf("key %d again: %+v %+v", i, p, ref)
		}
	})
	beside(func(n int) {
		if w, ref := r.window(bob, id, 30); ref.Code != OK || len(w.messages) != min(30, int(w.latest)) || int(w.latest) < n || w.messages[len(w.messages)-1].Seq != w.latest {
			t.Errorf("window of %d messages up to %d, %d are there: %+v", len(w.messages), w.latest, n, ref)
		}
	})
	beside(func(int) {
		if err := r.storeAll(r.safe()); err != nil {
			t.Error(err)
		}
	})
	beside(func(int) {
		if err := r.st.Snapshot(); err != nil {
			t.Error(err)
		}
	})
	for i := range total {
		p := textPost(body(i+1), fmt.Sprint("k", i+1))
		if i > 0 {
			p.InReplyTo = posted[rand.IntN(i)].AppendID(nil)
		}
		var ref Refusal
		if posted[i], ref = r.Post(alice, id, p, r.now); ref.Code != OK || posted[i].Seq != uint64(i+1) {
			t.Fatal(i, posted[i], ref)
		}
		if i%3 == 0 {
			r.sync()
			count.Store(int64(i + 1))
		}
	}
	close(ended)
	running.Wait()
	r.restart()
	if got := r.bodies(id); len(got) != total {
		t.Errorf("%d of %d messages after a start", len(got), total)
	}
}
