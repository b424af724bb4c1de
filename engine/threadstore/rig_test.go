package threadstore

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"trunkline/engine/journal"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// memRows is Rows in a map. Rows that were not flushed are lost in a crash, from some commit on.
type memRows struct {
	mu      sync.Mutex
	rows    map[string]string
	flushed map[string]string
	commits [][][]byte // since the flush
	mark    uint64
	during  func() // called by Flush
}

func newMemRows() *memRows { return &memRows{rows: map[string]string{}, flushed: map[string]string{}} }

func (m *memRows) Get(dst, key []byte) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.rows[string(key)]
	return append(dst, v...), ok, nil
}

func (m *memRows) Scan(lower, upper []byte, reverse bool, f func(key, value []byte) bool) error {
	m.mu.Lock()
	found := map[string]string{}
	for k, v := range m.rows {
		if k >= string(lower) && (upper == nil || k < string(upper)) {
			found[k] = v
		}
	}
	m.mu.Unlock()
	keys := slices.Sorted(maps.Keys(found))
	if reverse {
		slices.Reverse(keys)
	}
	for _, k := range keys {
		if !f([]byte(k), []byte(found[k])) {
			break
		}
	}
	return nil
}

func (m *memRows) Put(rows ...[]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	commit := make([][]byte, len(rows))
	for i, b := range rows {
		if commit[i] = bytes.Clone(b); b != nil && commit[i] == nil {
			commit[i] = []byte{}
		}
	}
	apply(m.rows, commit)
	m.commits = append(m.commits, commit)
	return nil
}

func apply(rows map[string]string, commit [][]byte) {
	for i := 0; i < len(commit); i += 2 {
		if commit[i+1] == nil {
			delete(rows, string(commit[i]))
		} else {
			rows[string(commit[i])] = string(commit[i+1])
		}
	}
}

func (m *memRows) Flush(mark uint64) ([]byte, error) {
	if m.during != nil {
		m.during()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushed, m.commits, m.mark = maps.Clone(m.rows), nil, mark
	return []byte("m"), nil
}

func (m *memRows) Fits(_ []byte, mark uint64) error {
	if mark > m.mark {
		return errLostRow
	}
	return nil
}

// crash keeps the flushed rows and some commits behind them.
func (m *memRows) crash(keep func(n int) int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = maps.Clone(m.flushed)
	for _, c := range m.commits[:keep(len(m.commits))] {
		apply(m.rows, c)
	}
	m.flushed, m.commits = maps.Clone(m.rows), nil
}

// rig is an engine over a journal on a disk in memory.
type rig struct {
	t    testing.TB
	cfg  Config
	rows *memRows
	disk *memstore.Disk
	log  *journal.Log
	st   *store.Store
	*Engine
	now  int64
	full func() bool // the disk; nil: it never is
}

func newRig(t testing.TB, cfg Config) *rig { return newRigOver(t, newMemRows(), cfg) }

func newRigOver(t testing.TB, rows *memRows, cfg Config) *rig {
	r := &rig{t: t, cfg: cfg, rows: rows, disk: memstore.New(memstore.Options{}), now: 1_771_329_600_000}
	r.open()
	t.Cleanup(func() { _ = r.log.Close() })
	return r
}

func (r *rig) open() {
	r.t.Helper()
	r.Engine = New(r.cfg)
	if err := r.SetRows(r.rows); err != nil {
		r.t.Fatal(err)
	}
	r.st = store.New(store.Config{Machines: []store.Machine{r.Machine()}, Now: func() int64 { return r.now * 1e6 }})
	r.Join(r.st)
	s, err := r.disk.Open()
	if err == nil {
		r.log, err = journal.Open(s, journal.Config{Mode: journal.Always, OnDurable: func(uint64) { r.Engine.Durable() }})
	}
	if err == nil {
		err = r.st.Recover(r.log, store.RecoverOptions{Full: func() bool { return r.full != nil && r.full() }})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// sync waits until everything is durable.
func (r *rig) sync() {
	r.t.Helper()
	if err := r.st.Barrier(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// crash ends the process and starts another one; keep chooses what is left of the rows.
func (r *rig) crash(keep func(n int) int) {
	r.t.Helper()
	r.disk.Crash()
	_ = r.log.Close()
	r.rows.crash(keep)
	r.open()
}

// store stores what is durable.
func (r *rig) store() {
	r.t.Helper()
	if err := r.storeUpTo(r.safe()); err != nil {
		r.t.Fatal(err)
	}
}

var (
	boss  = &Actor{Workspace: "w", Agent: "boss", Session: "s0", Rank: Coordinator, Role: "coordinator", Request: "req_1"}
	alice = &Actor{Workspace: "w", Agent: "alice", Session: "s1", Rank: Participant, Role: "participant"}
	bob   = &Actor{Workspace: "w", Agent: "bob", Session: "s2", Rank: Participant, Role: "participant"}
	eve   = &Actor{Workspace: "other", Agent: "alice", Session: "s1", Rank: Participant, Role: "participant"}
)

func (r *rig) create() []byte {
	r.t.Helper()
	id, _, ref := r.Create(boss, &NewThread{Title: []byte("title"), Participants: [][]byte{[]byte("alice"), []byte("bob")}}, r.now)
	if ref.Code != OK {
		r.t.Fatal(ref)
	}
	return []byte(id)
}

func (r *rig) post(a *Actor, id []byte, body, key string) Posted {
	r.t.Helper()
	p, ref := r.Post(a, id, textPost(body, key), r.now)
	if ref.Code != OK {
		r.t.Fatal(ref)
	}
	return p
}

// textPost is a post whose digest stands for its body.
func textPost(body, key string) *Post {
	p := &Post{Body: []byte(body), Key: []byte(key)}
	copy(p.Digest[:], body)
	return p
}

// bodies returns the bodies of all messages that a reader sees.
func (r *rig) bodies(id []byte) (all []string) {
	r.t.Helper()
	for since := uint64(0); ; {
		page, p, ref := r.Read(boss, id, since, 7, true, nil)
		if ref.Code != OK {
			r.t.Fatal(ref)
		}
		for _, m := range strings.Split(string(page), `{"message_id"`)[1:] {
			var seq int
			_, rest, _ := strings.Cut(m, `"seq":`)
			_, _ = fmt.Sscan(rest[:strings.IndexByte(rest, ',')], &seq)
			if since++; seq != int(since) {
				r.t.Fatalf("message %d at %d", seq, since)
			}
			_, body, _ := strings.Cut(m, `"body":"`)
			all = append(all, body[:strings.IndexByte(body, '"')])
		}
		if p.Next != since || p.More != (p.Next < uint64(len(all))) && !p.More {
			r.t.Fatalf("page ends at %d, more %t, after %d", p.Next, p.More, since)
		}
		if !p.More {
			return all
		}
	}
}
