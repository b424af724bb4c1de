package threadstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstream"
)

const secret = "5ecretText"

// texts returns what the audit log and the jobs show of a thread.
func (r *rig) texts(id []byte) string {
	r.t.Helper()
	r.sync()
	var out strings.Builder
	if _, _, err := r.Audit("w", 0, 500, "", func(ev *AuditEvent) bool {
		fmt.Fprintln(&out, ev.Operation, ev.Resource, ev.Actor, string(ev.Payload))
		return true
	}); err != nil {
		r.t.Fatal(err)
	}
	list, _ := r.Jobs(boss, id, 50)
	for i := range list {
		fmt.Fprintln(&out, list[i].Target, list[i].Reason, list[i].Prompt, list[i].Status, list[i].Code)
	}
	return out.String()
}

// eraseFill has the secret in all that erasures are about: of alice in one thread, and of boss.
func (r *rig) eraseFill() (id []byte) {
	r.t.Helper()
	made, _, ref := r.Create(boss, &NewThread{Title: []byte(secret), Participants: [][]byte{[]byte("alice"), []byte("bob")}, Key: []byte(secret)}, r.now)
	if ref.Code != OK {
		r.t.Fatal(ref)
	}
	id = []byte(made)
	p := textPost(secret+"1", secret)
	p.Metadata = []byte(`{"m":"` + secret + `"}`)
	r.Post(alice, id, p, r.now)
	r.post(bob, id, secret+"2", "k")
	r.post(alice, id, secret+"3", "")
	r.beat(alice, live)
	r.beat(bob, live)
	r.sync()
	r.Ack(alice, id, 2, r.now)
	r.Ack(bob, id, 1, r.now)
	r.trigger(id, secret, secret)                                                                  // ends with success, and awaits a sign
	r.Finish(r.claimOne().ID, "", r.now)                                                           //
	r.Trigger(alice, id, &Trigger{Target: "bob", Reason: secret, Prompt: secret, Key: "j"}, r.now) // stays open
	r.SetStatus(alice, id, &Change{To: Blocked, Reason: secret, Metadata: []byte(`{"m":"` + secret + `"}`)}, r.now)
	return id
}

// TestErase: what is left of a thread, or of an agent, also after a start.
func TestErase(t *testing.T) {
	for _, how := range []string{"running", "crash", "crash without rows", "snapshot"} {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprint(how, whole), func(t *testing.T) {
				r := newRig(t, Config{})
				id := r.eraseFill()
				er, ref := r.EraseThread(id, "because", r.now)
				if !whole {
					r = newRig(t, Config{})
					id = r.eraseFill()
					er, ref = r.EraseAgent("w", "alice", "because", r.now)
				}
				if ref.Code != OK || er.State != "pending" || er.Number != 1 || er.Reason != "because" {
					t.Fatalf("%+v %+v", er, ref)
				}
				r.heard("w", "alice", r.now) // a sign records its job once more
				r.heard("w", "bob", r.now)
				r.sync()
				digest := r.Digest()
				switch how {
				case "crash":
					r.crash(all)
				case "crash without rows":
					r.crash(func(int) int { return 0 })
				case "snapshot":
					r.restart()
				}
				if r.Digest() != digest {
					t.Error("the state is another one")
				}
				r.checkErased(id, whole)
				if _, err := CheckRows(r.rows, func(err error) { t.Error(err) }); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func (r *rig) checkErased(id []byte, whole bool) {
	t := r.t
	t.Helper()
	messages, texts := fmt.Sprint(r.shown(id)), r.texts(id)
	v, _, _ := r.Get(boss, id)
	if whole {
		if want := "[1 alice [erased] true\n 2 bob [erased] true\n 3 alice [erased] true\n]"; messages != want {
			t.Errorf("%s, want %s", messages, want)
		}
		if v.Title != erasedText || v.Status != Closed || strings.Contains(texts, secret) || r.find(id).cursors["alice"] == nil {
			t.Errorf("%+v\n%s", v, texts)
		}
		if _, ref := r.Post(alice, id, textPost(secret+"1", secret), r.now); ref.Code != ThreadClosed {
			t.Errorf("a post with a key of before: %+v", ref)
		}
		again, rec, ref := r.Create(boss, &NewThread{Title: []byte("t"), Key: []byte(secret)}, r.now)
		if ref.Code != OK || rec.Replay || again == string(id) {
			t.Errorf("the key of the thread: %+v %+v", rec, ref)
		}
	} else {
		ghost := (&erasure{Workspace: "w", Agent: "alice"}).name("alice")
		if want := fmt.Sprintf("[1 %s [erased] true\n 2 bob %s2 false\n 3 %[1]s [erased] true\n]", ghost, secret); messages != want || len(ghost) != len("erased:01234567") {
			t.Errorf("%s, want %s", messages, want)
		}
		if v.Title != secret || v.Status != Blocked || strings.Contains(texts, secret) {
			t.Errorf("%+v\n%s", v, texts)
		}
		if r.Session("w", "alice") != nil || r.Session("w", "bob") == nil || r.find(id).cursors["alice"] != nil || r.find(id).cursors["bob"] == nil {
			t.Error("sessions or cursors")
		}
		if p := r.post(alice, id, "x", secret); p.Replay || p.Seq != 4 {
			t.Errorf("a key of before: %+v", p)
		}
	}
	if !strings.Contains(texts, "admin.erase_") || !strings.Contains(texts, `{"reason":"because","purged":false}`) || !strings.Contains(texts, codeCancelled) {
		t.Error(texts)
	}
	if s, ref := r.Summarize(boss, id, 10); ref.Code != OK || strings.Contains(s.Text, secret+"1") {
		t.Errorf("%+v %+v", s, ref)
	}
}

// TestEraseInMemory: a server that keeps nothing erases too.
func TestEraseInMemory(t *testing.T) {
	e, now := New(Config{}), int64(1_771_329_600_000)
	rows := newMemRows()
	if err := e.SetRows(rows); err != nil {
		t.Fatal(err)
	}
	e.Join(store.New(store.Config{Machines: []store.Machine{e.Machine()}}))
	id, _, _ := e.Create(boss, &NewThread{Title: []byte(secret), Participants: [][]byte{[]byte("alice")}}, now)
	for range 3 {
		e.Post(alice, []byte(id), textPost(secret, "k"), now)
		e.Post(boss, []byte(id), textPost("stays", ""), now)
	}
	if _, ref := e.EraseAgent("w", "alice", "r", now); ref.Code != OK {
		t.Fatal(ref)
	}
	e.Post(boss, []byte(id), textPost("stays", ""), now)
	if err := e.purge(now); err != nil {
		t.Fatal(err)
	}
	page, p, ref := e.Read(boss, []byte(id), 0, 10, true, nil)
	if ref.Code != OK || bytes.Contains(page, []byte(secret)) || bytes.Count(page, []byte("stays")) != 4 || p.Next != 5 {
		t.Errorf("%s %+v", page, ref)
	}
	if list, err := e.Erasures(); err != nil || len(list) != 1 || list[0].State != "purged" {
		t.Errorf("%+v %v", list, err)
	}
}

// TestErasuresAreBounded: at the limit one more takes the place of one that is purged, and where
// none is, it is refused.
func TestErasuresAreBounded(t *testing.T) {
	r := newRig(t, Config{})
	erase := func(want Code, number uint64) {
		t.Helper()
		er, ref := r.EraseAgent("w", "a", "r", r.now)
		if ref.Code != want || er.Number != number {
			t.Errorf("%+v %+v, want %d and number %d", er, ref, want, number)
		}
	}
	for n := range uint64(maxErasures) {
		erase(OK, n+1)
	}
	erase(TooMany, 0)
	if err := r.purge(r.now); err != nil {
		t.Fatal(err)
	}
	erase(OK, maxErasures+1)
	list, err := r.Erasures()
	if err != nil || len(list) != maxErasures || list[0].Number != 2 || list[0].State != "purged" || list[maxErasures-1].State != "pending" {
		t.Errorf("%d: %v", len(list), err)
	}
	r.full = func() bool { return true }
	erase(NotStored, 0)
	r.full = nil
	r.restart()
	if again, err := r.Erasures(); err != nil || !slices.Equal(again, list) {
		t.Errorf("%d after a start: %v", len(again), err)
	}
}

// TestErasePurgesJournal: two snapshots later neither the journal nor memory has the text.
func TestErasePurgesJournal(t *testing.T) {
	r := newRig(t, Config{})
	id := r.eraseFill()
	r.sync()
	if _, ref := r.EraseThread(id, "because", r.now); ref.Code != OK {
		t.Fatal(ref)
	}
	if !strings.Contains(r.raw(), secret) {
		t.Fatal("it tests nothing")
	}
	if err := r.purge(r.now); err != nil {
		t.Fatal(err)
	}
	if raw := r.raw(); strings.Contains(raw, secret) {
		t.Error("the journal or the rows have it")
	}
	for _, s := range r.hot.segments {
		if bytes.Contains(s.buf, []byte(secret)) {
			t.Error("memory has it")
		}
	}
	if list, _ := r.Erasures(); list[0].State != "purged" {
		t.Errorf("%+v", list)
	}
	r.crash(all)
	r.checkErased(id, true)
}

// raw returns what is in the journal, its snapshots and the rows.
func (r *rig) raw() string {
	var out strings.Builder
	for i := range r.disk.Firsts() {
		out.Write(r.disk.Block(i))
	}
	r.disk.Raw(func(chunk []byte) { out.Write(chunk) })
	return out.String() + r.rows.raw()
}

// eraseCluster runs f with an owner and two followers; what clients were answered is in h.
func eraseCluster(t *testing.T, cfg Config, f func(t *testing.T, h *history, owner, follower, dead *node)) {
	synctest.Test(t, func(t *testing.T) {
		log := memstream.New()
		cfg.HotBytes, cfg.segment, cfg.setBytes, cfg.padBytes = 1, 700, 2000, 1
		var nodes []*node
		for i := range 3 {
			n := newNode(t, log, fmt.Sprint("n", i+1), uint64(i+1), cfg)
			defer n.die(all)
			nodes = append(nodes, n)
		}
		nodes[0].own()
		nodes[1].start()
		nodes[2].start()
		h := &history{t: t, keys: map[string]keyed{}}
		h.create(nodes[0])
		h.create(nodes[0])
		for i := range 20 {
			p, ref := nodes[0].Post(alice, h.threads[0].id, textPost(fmt.Sprint(secret, i), fmt.Sprint("e", i)), nodes[0].now)
			if ref.Code != OK {
				t.Fatal(p, ref)
			}
			h.post(nodes[0], 1, 200, i%2 == 0)
			if i%5 == 0 {
				nodes[0].snapshot(t)
				synctest.Wait()
				nodes[1].healthy()
				nodes[2].healthy()
			}
		}
		_ = nodes[0].pad(1) // followers have all of it
		synctest.Wait()
		nodes[2].die(all) // its rows have the text
		f(t, h, nodes[0], nodes[1], nodes[2])
	})
}

// streamed returns all that the stream and the sets of a cluster have, decompressed.
func (n *node) streamed() string {
	n.t.Helper()
	var out strings.Builder
	ctx := context.Background()
	st, err := n.client.State(ctx)
	if err == nil {
		err = n.client.Read(ctx, st.First, st.Last, func(m *replicated.Message) error { out.Write(m.Data); return nil })
	}
	sets, bad := n.client.Sets(ctx)
	if err != nil || bad != nil {
		n.t.Fatalf("%v %v", err, bad)
	}
	for _, set := range sets {
		in := blockReader{f: func(_ journal.Index, rec []byte) error { out.Write(rec); return nil }}
		for k := uint32(1); n.client.Get(ctx, set, k, func(chunk []byte) error {
			if out.Write(chunk); strings.HasPrefix(set, "archive-") {
				_ = in.take(chunk)
			}
			return nil
		}) == nil; k++ {
			in.next, in.last = 0, 0
		}
	}
	n.disk.Raw(func(chunk []byte) { out.Write(chunk) })
	return out.String()
}

// rawRows returns the rows of a node, decompressed.
func (n *node) rawRows() string { return n.rows.raw() }

func (m *memRows) raw() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out strings.Builder
	for key, value := range m.rows {
		if fmt.Fprintf(&out, "%q %q\n", key, value); key[0] == rowMessage {
			_, run, _, _ := parseRun([]byte(key), []byte(value), new([]byte))
			out.Write(run)
		}
	}
	return out.String()
}

// TestClusterErase: an erased text is gone from streams, snapshots, the archive and the rows of all
// nodes, that of one that was down meanwhile once it is back. A node without rows starts from what
// is there, and any may own it.
func TestClusterErase(t *testing.T) {
	for _, agent := range []bool{false, true} {
		eraseCluster(t, Config{}, func(t *testing.T, h *history, owner, follower, dead *node) {
			if !strings.Contains(owner.streamed(), secret) || !strings.Contains(follower.rawRows(), secret) || !strings.Contains(dead.rawRows(), secret) {
				t.Fatal("it tests nothing", strings.Contains(owner.streamed(), secret), strings.Contains(follower.rawRows(), secret), strings.Contains(dead.rawRows(), secret))
			}
			erased := h.threads[0]
			var ref Refusal
			if agent {
				_, ref = owner.EraseAgent("w", "alice", "r", owner.now)
			} else {
				_, ref = owner.EraseThread(erased.id, "r", owner.now)
			}
			if ref.Code != OK {
				t.Fatal(ref)
			}
			h.post(owner, 1, 100, true)
			if err := owner.purge(owner.now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			follower.healthy()
			dead.start()
			synctest.Wait()
			if strings.Contains(owner.streamed(), secret) {
				t.Error("the streams have it")
			}
			state := func(n *node, want string) {
				t.Helper()
				if list, err := n.Erasures(); err != nil || len(list) != 1 || list[0].State != want {
					t.Errorf("%s: %+v %v", n.name, list, err)
				}
			}
			for _, n := range []*node{owner, follower, dead} {
				if strings.Contains(n.rawRows(), secret) {
					t.Errorf("the rows of %s have it", n.name)
				}
				state(n, "pending")
				n.now += purgeSettle
			}
			state(owner, "purged")
			state(follower, "purged")
			h.threads = h.threads[1:] // the other one is as it was
			for k, v := range h.keys {
				v.thread--
				h.keys[k] = v
			}
			h.check(owner)
			digest, audit := owner.Digest(), owner.audit()
			fresh := owner
			for i, n := range []*node{follower, dead, owner} {
				fresh.die(all)
				if i == 2 {
					n.replace() // it starts from the archive
				}
				n.own()
				if n.Digest() != digest || !slices.Equal(n.audit(), audit) {
					t.Errorf("%s has another state", n.name)
				}
				h.check(n)
				page, p, ref := n.Read(boss, erased.id, 0, 50, true, nil)
				if ref.Code != OK || p.Next != 20 || bytes.Count(page, []byte(erasedText)) != 20 || bytes.Contains(page, []byte(secret)) {
					t.Errorf("%s: %.300s %+v", n.name, page, ref)
				}
				fresh = n
			}
			state(owner, "pending") // its files are new, and it has not looked yet
			if err := owner.purge(owner.now); err != nil {
				t.Fatal(err)
			}
			state(owner, "purged")
		})
	}
}

// TestClusterEraseGoesOn: another owner completes what one has begun, at whatever chunk that died.
func TestClusterEraseGoesOn(t *testing.T) {
	for dies := 0; dies < 40; dies += 3 {
		eraseCluster(t, Config{}, func(t *testing.T, h *history, owner, follower, _ *node) {
			if _, ref := owner.EraseThread(h.threads[0].id, "r", owner.now); ref.Code != OK {
				t.Fatal(ref)
			}
			owner.sync()
			left := dies
			owner.fail = func() error {
				if left--; left < 0 {
					return errNoChunk
				}
				return nil
			}
			err := owner.purge(owner.now)
			synctest.Wait()
			owner.die(all)
			follower.own()
			if err := follower.purge(follower.now); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(follower.streamed(), secret) || strings.Contains(follower.rawRows(), secret) {
				t.Errorf("after %d chunks (%v) it is there", dies, err)
			}
			owner.fail = nil
			follower.die(all)
			owner.replace()
			owner.own()
			if v, ok := owner.Show(h.threads[0].id); !ok || v.Title != erasedText {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestClusterRetention: what was cut leaves the archive, and a node that starts from one which has
// it removes it.
func TestClusterRetention(t *testing.T) {
	eraseCluster(t, Config{Retention: day}, func(t *testing.T, h *history, owner, follower, dead *node) {
		owner.now += 2 * day
		h.post(owner, 1, 100, true)
		owner.store(t)
		owner.retention.last = owner.now
		if err := owner.retain(owner.now); err != nil {
			t.Fatal(err)
		}
		read := func(n *node) {
			t.Helper()
			n.sync()
			_, p, _ := n.Read(boss, h.threads[0].id, 0, 50, true, nil)
			page, q, ref := n.Read(boss, h.threads[1].id, 0, 50, true, nil)
			if ref.Code != OK || p.First != 21 || p.Next != 20 || q.First != 21 || q.Next != 21 || strings.Count(string(page), "message_id") != 1 {
				t.Errorf("%s: %+v %+v %+v", n.name, p, q, ref)
			}
			if strings.Contains(n.rawRows(), secret) {
				t.Errorf("the rows of %s have what was cut", n.name)
			}
		}
		read(owner)
		owner.snapshot(t)
		owner.snapshot(t)
		synctest.Wait()
		if !strings.Contains(owner.streamed(), secret) {
			t.Error("it tests nothing")
		}
		dead.replace()
		dead.start()
		if err := owner.purge(owner.now); err != nil {
			t.Fatal(err)
		}
		owner.Engine.cfg.setBytes = 1 // each snapshot begins a set, and looks for those that are not used
		for range 4 {
			owner.snapshot(t)
			h.post(owner, 1, 2000, false)
		}
		h.threads[1].bodies = h.threads[1].bodies[:21]
		if strings.Contains(owner.streamed(), secret) {
			t.Error("the archive has what was cut")
		}
		owner.die(all)
		follower.own()
		if _, p, _ := follower.Read(boss, h.threads[0].id, 0, 50, true, nil); p.First != 21 {
			t.Errorf("%+v", p)
		}
		follower.die(all)
		dead.own()
		if strings.Contains(dead.rawRows(), secret) {
			t.Error("the rows of a node that was made again have it")
		}
	})
}

// TestEraseWhilePosting: others post to the threads of an agent that is erased.
func TestEraseWhilePosting(t *testing.T) {
	r := newRig(t, Config{HotBytes: 1, segment: 700})
	id := r.create()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 400 {
			r.Post(boss, id, textPost(fmt.Sprint("stays", i), ""), r.now)
			r.Post(alice, id, textPost("x", ""), r.now)
			r.Ack(alice, id, 0, r.now)
		}
	}()
	for range 5 {
		time.Sleep(time.Millisecond)
		if _, ref := r.EraseAgent("w", "alice", "r", r.now); ref.Code != OK {
			t.Error(ref)
		}
		if err := r.st.Snapshot(); err != nil {
			t.Error(err)
		}
	}
	<-done
	r.sync()
	digest, before := r.Digest(), r.shown(id)
	r.crash(func(int) int { return 0 })
	if r.Digest() != digest || !slices.Equal(r.shown(id), before) || len(before) != 800 {
		t.Errorf("%d messages, another state after a start", len(before))
	}
}
