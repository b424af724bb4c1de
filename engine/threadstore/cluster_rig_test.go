package threadstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"trunkline/engine/journal"
	"trunkline/engine/journal/replicated"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
	"trunkline/fuzz/kit/memstream"
)

// fatal is what a test and a property have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// node is a node of a cluster in memory: its rows, a disk with copies of snapshots, and while it
// runs an engine over the journal that all share.
type node struct {
	t    fatal
	name string
	cfg  Config
	log  *memstream.Log
	seed uint64
	rows *memRows
	disk *memstore.Disk
	fail func() error // of the archive, before a chunk is put; may be nil
	show func([]byte) // a chunk that is read; may be nil

	*Engine
	client *memstream.Client
	shared *replicated.Store
	record *journal.Log
	st     *store.Store
	turn   chan struct{}
	ended  chan error // of the recovery; nil: the node does not run
	over   bool       // the recovery is
	stop   context.CancelFunc
	now    int64
}

// newNode returns a node without rows that does not run.
func newNode(t fatal, log *memstream.Log, name string, seed uint64, cfg Config) *node {
	n := &node{t: t, name: name, log: log, seed: seed << 16, cfg: cfg, now: 1_771_329_600_000}
	n.cfg.Now = func() int64 { return n.now }
	n.replace()
	return n
}

// replace gives the node empty disks.
func (n *node) replace() {
	n.seed++
	n.rows, n.disk = newMemRows(), memstore.New(memstore.Options{Seed: n.seed})
}

// followed is the journal of a node, which it follows until its turn.
type followed struct {
	*replicated.Store
	ctx  context.Context
	turn <-chan struct{}
}

func (f followed) Follow(from journal.Index, each func(first journal.Index, block []byte) error) error {
	return f.Tail(f.ctx, from, func() <-chan struct{} { return f.turn }, func() bool { return true }, func(uint64, time.Duration, bool) {}, each)
}

// watchedArchive is one whose chunks a test sees.
type watchedArchive struct {
	replicated.Archive
	n *node
}

func (a watchedArchive) Put(set string, n uint32, chunk []byte) error {
	if a.n.fail != nil {
		if err := a.n.fail(); err != nil {
			return err
		}
	}
	return a.Archive.Put(set, n, chunk)
}

func (a watchedArchive) Get(set string, n uint32, f func(chunk []byte) error) error {
	return a.Archive.Get(set, n, func(chunk []byte) error {
		if a.n.show != nil {
			a.n.show(chunk)
		}
		return f(chunk)
	})
}

// start has the node follow the journal.
func (n *node) start() {
	n.t.Helper()
	n.open()
	synctest.Wait()
	n.healthy()
}

// open starts the recovery of the node.
func (n *node) open() {
	n.t.Helper()
	n.seed++
	n.client = n.log.Client(n.seed, memstream.Faults{})
	local, err := n.disk.Open()
	if err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	n.shared, err = replicated.Open(ctx, replicated.Config{Stream: n.client, Chunks: n.client, Local: local})
	if err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	n.turn, n.ended = make(chan struct{}), make(chan error, 1)
	n.record, err = journal.Open(followed{n.shared, ctx, n.turn}, journal.Config{Mode: journal.Always})
	if err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	n.Engine = New(n.cfg)
	n.SetArchive(watchedArchive{n.shared.Archive(), n})
	if err := n.SetRows(n.rows); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
	n.st = store.New(store.Config{Machines: []store.Machine{n.Machine()}, Now: func() int64 { return n.now * 1e6 }})
	n.Join(n.st)
	go func(st *store.Store, log *journal.Log, ended chan<- error) {
		ended <- st.Recover(log, store.RecoverOptions{})
	}(n.st, n.record, n.ended)
}

// renew starts the node again without rows.
func (n *node) renew() {
	n.t.Helper()
	n.sync()
	n.die(all)
	n.replace()
	n.own()
}

// all keeps all rows in a crash.
func all(n int) int { return n }

// healthy checks that a node that follows has no error, and starts again one that has to.
func (n *node) healthy() {
	n.t.Helper()
	if n.ended == nil || n.over {
		return
	}
	select {
	case err := <-n.ended:
		n.over = true
		if !errors.Is(err, replicated.ErrRebuild) {
			n.t.Fatalf("%s has ended: %v", n.name, err)
		}
		n.die(all) // it was too slow: what is next of the journal is in a snapshot
		n.start()
	default:
	}
}

// own has the node take the journal over.
func (n *node) own() {
	n.t.Helper()
	if n.ended == nil {
		n.start()
	}
	synctest.Wait()
	n.healthy()
	close(n.turn)
	err := <-n.ended
	n.over = true
	if err != nil {
		n.t.Fatalf("%s cannot own: %v", n.name, err)
	}
}

// die ends the process of the node; keep chooses what is left of its rows.
func (n *node) die(keep func(n int) int) {
	if n.ended == nil {
		return
	}
	n.client.Kill()
	n.disk.Kill()
	n.stop()
	_ = n.shared.Close()
	if !n.over {
		<-n.ended
	}
	_ = n.record.Close()
	n.ended, n.over = nil, false
	n.rows.crash(keep)
}

// sync waits until everything is durable.
func (n *node) sync() {
	n.t.Helper()
	if err := n.st.Barrier(context.Background()); err != nil {
		n.t.Fatalf("%s: %v", n.name, err)
	}
}

// inCluster runs a property whose nodes live in a bubble.
func inCluster(t *testing.T, f func(rt *rapid.T)) {
	synctest.Test(t, func(t *testing.T) {
		// In a bubble a test has no deadline, which rapid would ask for.
		rapid.Check(struct{ testing.TB }{t}, f)
	})
}

// history is what clients know of a cluster: what was answered.
type history struct {
	t       fatal
	threads []*modelThread
	keys    map[string]keyed
	posts   int
}

// keyed is the answer to a post with a key.
type keyed struct {
	thread int
	body   string
	seq    uint64
	id     string
}

func (h *history) create(n *node) {
	id, _, ref := n.Create(boss, &NewThread{Title: []byte("title"), Participants: [][]byte{[]byte("alice"), []byte("bob")}}, n.now)
	if ref.Code != OK {
		h.t.Fatalf("create: %+v", ref)
	}
	h.threads = append(h.threads, &modelThread{id: []byte(id), cursors: map[string]int{}})
}

func (h *history) post(n *node, thread, size int, key bool) {
	h.t.Helper()
	h.posts++
	m, body, k := h.threads[thread], fmt.Sprintf("b%d%0*d", h.posts, size, 0), ""
	if key {
		k = fmt.Sprint("k", h.posts)
	}
	p, ref := n.Post(boss, m.id, textPost(body, k), n.now)
	if m.bodies = append(m.bodies, body); ref.Code != OK || p.Seq != uint64(len(m.bodies)) {
		h.t.Fatalf("post %d of %d: %+v %+v", len(m.bodies), thread, p, ref)
	}
	m.ids = append(m.ids, string(p.AppendID(nil)))
	if key {
		h.keys[k] = keyed{thread, body, p.Seq, m.ids[len(m.ids)-1]}
	}
}

// forget has nothing more expected of a thread.
func (h *history) forget(thread int) {
	h.threads = slices.Delete(h.threads, thread, thread+1)
	for k, v := range h.keys {
		if v.thread == thread {
			delete(h.keys, k)
		} else if v.thread > thread {
			v.thread--
			h.keys[k] = v
		}
	}
}

// check compares an owner with what was answered before.
func (h *history) check(n *node) {
	h.t.Helper()
	n.sync()
	for i, m := range h.threads {
		since := uint64(0)
		for more := true; more; {
			page, p, ref := n.Read(boss, m.id, since, 50, true, nil)
			if ref.Code != OK {
				h.t.Fatalf("%s, thread %d after %d: %+v", n.name, i, since, ref)
			}
			for ; since < p.Next; since++ {
				if int(since) >= len(m.bodies) {
					h.t.Fatalf("%s, thread %d has %d messages, want %d", n.name, i, p.Next, len(m.bodies))
				}
				if want := fmt.Sprintf(`{"message_id":%q,"schema_version":1,"seq":%d,"kind":"chat","body":%q`, m.ids[since], since+1, m.bodies[since]); len(page) < len(want) || string(page[:len(want)]) != want {
					h.t.Fatalf("%s, thread %d: %.200s, want %s", n.name, i, page, want)
				}
				page = page[nextMessage(page):]
			}
			more = p.More
		}
		if int(since) != len(m.bodies) {
			h.t.Fatalf("%s, thread %d has %d messages, want %d", n.name, i, since, len(m.bodies))
		}
	}
	for k, want := range h.keys {
		p, ref := n.Post(boss, h.threads[want.thread].id, textPost(want.body, k), n.now)
		if ref.Code != OK || !p.Replay || p.Seq != want.seq || string(p.AppendID(nil)) != want.id {
			h.t.Fatalf("%s, key %s again: %+v %+v, want message %d", n.name, k, p, ref, want.seq)
		}
		if _, ref := n.Post(boss, h.threads[want.thread].id, textPost("another", k), n.now); ref.Code != KeyReused {
			h.t.Fatalf("%s, key %s for another message: %+v", n.name, k, ref)
		}
	}
}

// nextMessage returns where the message behind the first one of a page begins.
func nextMessage(page []byte) int {
	for i := 1; i < len(page); i++ {
		if page[i] == '{' && string(page[i:min(len(page), i+13)]) == `{"message_id"` {
			return i
		}
	}
	return len(page)
}

// audit returns all that the audit log shows.
func (n *node) audit() (all []string) {
	n.t.Helper()
	n.sync()
	for after, more := uint64(0), true; more; {
		var err error
		after, more, err = n.Audit("w", after, 100, "", func(ev *AuditEvent) bool {
			all = append(all, fmt.Sprint(ev.Number, ev.Operation, ev.Resource, ev.Result))
			return true
		})
		if err != nil {
			n.t.Fatalf("%s: %v", n.name, err)
		}
	}
	return all
}

// listJobs returns all jobs of a thread.
func (n *node) listJobs(id []byte) (all []string) {
	n.t.Helper()
	n.sync()
	list, ref := n.Jobs(boss, id, 1000)
	if ref.Code != OK {
		n.t.Fatalf("%s: %+v", n.name, ref)
	}
	for _, j := range list {
		all = append(all, fmt.Sprint(j.ID, j.Status, j.Final))
	}
	return all
}

var errNoChunk = errors.New("the chunk is not stored")
