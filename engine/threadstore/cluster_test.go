package threadstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"trunkline/fuzz/kit/memstream"
)

// TestClusterModel: three nodes follow, own, die and are replaced while one of them works, and the
// journal forgets what is in snapshots. Every owner shows all that was answered by those before it:
// messages, keys, the audit log and jobs.
func TestClusterModel(t *testing.T) {
	restored, purged := 0, 0
	model := func(rt *rapid.T) {
		log := memstream.New()
		var nodes []*node
		for i := range 3 {
			n := newNode(rt, log, fmt.Sprint("n", i+1), uint64(i+1), Config{HotBytes: 1, segment: 700, setBytes: 2000, padBytes: 1})
			n.show = func([]byte) { restored++ }
			nodes = append(nodes, n)
		}
		keep := func(n int) int { return n * rapid.IntRange(0, 4).Draw(rt, "rows") / 4 }
		defer func() {
			for _, n := range nodes {
				n.die(all)
			}
		}()
		h := &history{t: rt, keys: map[string]keyed{}}
		owner := nodes[0]
		owner.own()
		other := func() *node {
			n := nodes[rapid.IntRange(0, len(nodes)-1).Draw(rt, "node")]
			if n == owner {
				rt.Skip("it owns")
			}
			return n
		}
		thread := func() int {
			if len(h.threads) == 0 {
				rt.Skip("no thread")
			}
			return rapid.IntRange(0, len(h.threads)-1).Draw(rt, "thread")
		}
		takeOver := func(n *node) {
			owner.sync()
			digest, audit := owner.Digest(), owner.audit()
			var jobs [][]string
			for _, m := range h.threads {
				jobs = append(jobs, owner.listJobs(m.id))
			}
			owner.die(keep)
			owner = n
			owner.own()
			if got := owner.Digest(); got != digest {
				rt.Fatalf("%s: digest %x, want %x", owner.name, got, digest)
			}
			if got := owner.audit(); !slices.Equal(got, audit) {
				rt.Fatalf("%s: audit log %v, want %v", owner.name, got, audit)
			}
			for i, m := range h.threads {
				if got := owner.listJobs(m.id); !slices.Equal(got, jobs[i]) {
					rt.Fatalf("%s: jobs %v, want %v", owner.name, got, jobs[i])
				}
			}
			h.check(owner)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(*rapid.T) {
				if len(h.threads) < 4 {
					h.create(owner)
				}
			},
			"post": func(rt *rapid.T) {
				i := thread()
				for range rapid.IntRange(1, 20).Draw(rt, "posts") {
					h.post(owner, i, rapid.IntRange(1, 300).Draw(rt, "size"), rapid.Bool().Draw(rt, "key"))
				}
			},
			"ack": func(*rapid.T) {
				m := h.threads[thread()]
				owner.sync()
				owner.Ack(alice, m.id, uint64(len(m.bodies)), owner.now)
			},
			"reject": func(*rapid.T) { owner.Rejected(boss, "mcp.create_thread", "req", "FORBIDDEN", owner.now) },
			"job": func(rt *rapid.T) {
				tr := &Trigger{Target: "alice", Reason: "r", Prompt: "go", Key: rapid.SampledFrom([]string{"", "j"}).Draw(rt, "key")}
				if _, _, ref := owner.Trigger(boss, h.threads[thread()].id, tr, owner.now); ref.Code != OK && ref.Code != KeyReused {
					rt.Fatalf("trigger: %+v", ref)
				}
			},
			"finish": func(rt *rapid.T) {
				list, err := owner.Claim(context.Background(), 2, 2, owner.now)
				if err != nil {
					rt.Fatalf("claim: %v", err)
				}
				for _, a := range list {
					owner.Finish(a.ID, "", owner.now)
				}
			},
			"store": func(*rapid.T) { owner.sync(); _ = owner.storeUpTo(owner.safe()) },
			"snapshot": func(rt *rapid.T) {
				before := log.Len()
				if err := owner.st.Snapshot(); err != nil {
					rt.Fatalf("snapshot: %v", err)
				}
				if log.Len() < before {
					purged++
				}
				synctest.Wait()
				for _, n := range nodes {
					n.healthy()
				}
			},
			"busy snapshot": func(rt *rapid.T) {
				i, posts := thread(), 1
				more := func() {
					if posts--; posts >= 0 {
						h.post(owner, i, 5, true)
					}
				}
				owner.fail = func() error { more(); return nil } // behind what is archived
				owner.rows.during = func() { posts++; more() }   // and behind what is in the rows
				if err := owner.st.Snapshot(); err != nil {
					rt.Fatalf("snapshot: %v", err)
				}
				owner.fail, owner.rows.during = nil, nil
			},
			"failed snapshot": func(rt *rapid.T) {
				left := rapid.IntRange(0, 2).Draw(rt, "chunks")
				owner.fail = func() error {
					if left--; left < 0 {
						return errNoChunk
					}
					return nil
				}
				_ = owner.st.Snapshot() // where nothing is to be archived it succeeds
				owner.fail = nil
			},
			"erase": func(*rapid.T) {
				i := thread()
				if _, ref := owner.EraseThread(h.threads[i].id, "r", owner.now); ref.Code != OK {
					rt.Fatalf("erase: %+v", ref)
				}
				h.forget(i)
			},
			"erase agent": func(*rapid.T) {
				if _, ref := owner.EraseAgent("w", "alice", "r", owner.now); ref.Code != OK { // who has posted nothing
					rt.Fatalf("erase: %+v", ref)
				}
			},
			"purge": func(*rapid.T) {
				if err := owner.purge(owner.now); err != nil {
					rt.Fatalf("purge: %v", err)
				}
				for _, n := range nodes {
					n.healthy()
				}
			},
			"time": func(rt *rapid.T) { owner.now += int64(rapid.IntRange(0, 5000).Draw(rt, "ms")) },
			"follow": func(*rapid.T) {
				if n := other(); n.ended == nil {
					n.start()
				}
			},
			"die":      func(*rapid.T) { other().die(keep) },
			"replace":  func(*rapid.T) { n := other(); n.die(keep); n.replace() },
			"restart":  func(*rapid.T) { takeOver(owner) },
			"takeover": func(*rapid.T) { n := other(); n.now = max(n.now, owner.now); takeOver(n) },
		})
		for range nodes {
			i := slices.Index(nodes, owner)
			takeOver(nodes[(i+1)%len(nodes)])
		}
	}
	for range 10 { // a few short histories may have none of what is counted
		if inCluster(t, model); restored > 0 && purged > 0 {
			break
		}
	}
	if restored == 0 || purged == 0 {
		t.Errorf("%d chunks were read again, the journal was purged %d times: it tests nothing", restored, purged)
	}
}

// TestClusterWakes: what an owner had begun when it died is decided by the next one. A delivery is
// made again, with the same identifier and one attempt more; a command is not run again.
func TestClusterWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memstream.New()
		a, b := newNode(t, log, "a", 1, Config{}), newNode(t, log, "b", 2, Config{})
		defer a.die(all)
		defer b.die(all)
		a.own()
		b.start()
		h := &history{t: t, keys: map[string]keyed{}}
		h.create(a)
		beat := live
		beat.Runtime = []byte("tmux:agents_x:w.0")
		if _, ref := a.Heartbeat(alice, &beat, a.now); ref.Code != OK {
			t.Fatal(ref)
		}
		a.writeSessions()
		claim := func(n *node) *Attempt {
			t.Helper()
			list, err := n.Claim(context.Background(), 1, 1, n.now)
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			return &list[0]
		}
		job := func(n *node) Job {
			t.Helper()
			n.sync()
			list, ref := n.Jobs(boss, h.threads[0].id, 1)
			if ref.Code != OK || len(list) != 1 {
				t.Fatal(list, ref)
			}
			return list[0]
		}
		tr := &Trigger{Target: "alice", Reason: "r", Prompt: "go", Key: "k"}
		first, _, ref := a.Trigger(boss, h.threads[0].id, tr, a.now)
		if ref.Code != OK || claim(a).ID != first.ID {
			t.Fatal(ref)
		}
		a.die(all)
		b.own()
		b.Sweep(b.now)
		again := claim(b)
		if again.ID != first.ID || again.Attempt != Triggering || again.Attempts != 1 {
			t.Errorf("%+v, want a second attempt of %s", again, first.ID)
		}
		if known, r, ref := b.Trigger(boss, h.threads[0].id, tr, b.now); ref.Code != OK || !r.Replay || known.ID != first.ID {
			t.Errorf("the key again: %+v %+v %+v", known, r, ref)
		}
		b.Finish(first.ID, "", b.now)
		if got := job(b); got.Status != Delivered {
			t.Errorf("%+v", got)
		}

		second, _, ref := b.Trigger(boss, h.threads[0].id, &Trigger{Target: "bob", Reason: "r", Prompt: "go"}, b.now)
		if ref.Code != OK || claim(b).Attempt != FallbackSpawn {
			t.Fatal(ref)
		}
		a.start()
		b.die(all)
		a.own()
		a.Sweep(a.now)
		if got := job(a); got.ID != second.ID || got.Status != JobFailed || got.Code != codeInterrupted {
			t.Errorf("%+v, want one that was interrupted", got)
		}
	})
}
