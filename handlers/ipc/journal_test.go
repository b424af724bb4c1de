package ipc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/fuzz/kit/memstore"
)

// gate is a store whose writes wait until they are let through.
type gate struct {
	journal.Store
	pass chan struct{}
}

func (g *gate) WriteBlock(first journal.Index, block []byte) error {
	<-g.pass
	return g.Store.WriteBlock(first, block)
}

// journaledRig is a rig whose service writes to a disk.
type journaledRig struct {
	*rig
	log *journal.Log
}

// newJournaledRig opens a service on a disk, recovering what is there.
func newJournaledRig(t *testing.T, disk *memstore.Disk, wrap func(journal.Store) journal.Store) *journaledRig {
	t.Helper()
	return newLimitedRig(t, nil, journal.Config{}, disk, wrap)
}

// newLimitedRig is newJournaledRig with limits of its own.
func newLimitedRig(
	t *testing.T,
	set limits,
	cfg journal.Config,
	disk *memstore.Disk,
	wrap func(journal.Store) journal.Store,
) *journaledRig {
	t.Helper()
	return newRecoveredRig(t, set, cfg, store.RecoverOptions{}, disk, wrap)
}

// newRecoveredRig is newLimitedRig with options of the recovery.
func newRecoveredRig(
	t *testing.T,
	set limits,
	cfg journal.Config,
	o store.RecoverOptions,
	disk *memstore.Disk,
	wrap func(journal.Store) journal.Store,
) *journaledRig {
	t.Helper()
	r := newRig(t, set, func(_ *Config, r *runtime.Config) { r.Journaled = true })
	kept, err := disk.Open()
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		kept = wrap(kept)
	}
	cfg.OnDurable = r.svc.rt.Durable
	log, err := journal.Open(kept, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.svc.rt.CloseRows() })
	if err := r.svc.rt.Recover(log, o); err != nil {
		t.Fatal(err)
	}
	return &journaledRig{r, log}
}

// newGatedRig is a journaled rig whose first n writes pass; the first one is the claim.
func newGatedRig(t *testing.T, g *gate, n int) *journaledRig {
	t.Helper()
	for range n {
		g.pass <- struct{}{}
	}
	return newJournaledRig(t, memstore.New(memstore.Options{}), func(s journal.Store) journal.Store { g.Store = s; return g })
}

// settled waits until everything appended is durable, and pumps.
func (r *journaledRig) settled(p *peer) {
	r.t.Helper()
	if err := r.log.Barrier(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	p.pump()
}

// TestRepliesWaitForTheJournal: the reply of a change, of a reader of it and of whatever comes
// behind them on the connection leave when the change is safe, in order; what reports nothing of
// kept state does not wait on another connection.
func TestRepliesWaitForTheJournal(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 16)}
	r := newGatedRig(t, g, 1)
	defer func() { close(g.pass); r.log.Close() }()
	p, q, free := r.connect(), r.connect(), r.connect()
	p.send(append(request("1", "kernel", "CreateProcess", `{"pid":"p"}`), request("2", "commbus", "Publish", `{"event_type":"x"}`)...))
	q.send(request("3", "kernel", "GetProcess", `{"pid":"p"}`))
	free.send(request("4", "commbus", "Publish", `{"event_type":"x"}`))
	if len(p.out) > 0 || len(q.out) > 0 || len(free.out) == 0 {
		t.Fatalf("left before they were safe: %q %q, or held for nothing: %q", p.out, q.out, free.out)
	}
	if !p.s.Load().Busy || p.s.Load().Done {
		t.Errorf("%+v", p.s.Load())
	}
	g.pass <- struct{}{}
	g.pass <- struct{}{}
	r.settled(p)
	q.pump()
	for _, want := range []struct {
		p  *peer
		id string
	}{{p, "1"}, {p, "2"}, {q, "3"}} {
		if got := want.p.next(); !strings.HasPrefix(got, "02 ") || !strings.Contains(got, `"`+want.id+`"`) {
			t.Errorf("reply %s: %s", want.id, got)
		}
	}
	if p.s.Load().Busy {
		t.Error("still busy")
	}
}

// TestReadersWaitForTheirRow: what others change does not hold up the reader of a process that is
// safe; a reader of many, one that finds nothing, and one whose process has a session that may be
// changing wait for all.
func TestReadersWaitForTheirRow(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 64)}
	r := newGatedRig(t, g, 3)
	defer func() { close(g.pass); r.log.Close() }()
	p, writer := r.connect(), r.connect()
	for _, pid := range []string{"quiet", "busy"} {
		p.send(request("c", "kernel", "CreateProcess", `{"pid":"`+pid+`"}`))
		r.settled(p)
		p.next()
	}
	f := func(left bool, service, method, body string) {
		t.Helper()
		q := r.connect()
		if q.send(request("r", service, method, body)); (len(q.out) > 0) != left {
			t.Errorf("%s %s: %q left", method, body, q.out)
		}
	}
	writer.send(request("w", "kernel", "RecordUsage", `{"pid":"busy","llm_calls":1}`))
	for _, method := range []string{"GetProcess", "CheckQuota"} {
		f(true, "kernel", method, `{"pid":"quiet"}`)
		f(false, "kernel", method, `{"pid":"busy"}`)
		f(false, "kernel", method, `{"pid":"nobody"}`)
	}
	f(false, "kernel", "GetProcessCounts", `{}`)
	f(true, "kernel", "CheckRateLimit", `{"user_id":"u"}`)
	writer.send(request("w", "orchestration", "InitializeSession", `{"process_id":"quiet","envelope":{"envelope_id":"e"},`+
		`"pipeline_config":{"name":"n","agents":[{"name":"a","default_next":"a"}],"max_iterations":9,"max_llm_calls":9,"max_agent_hops":9}}`))
	f(false, "kernel", "GetProcess", `{"pid":"quiet"}`)
	f(true, "kernel", "CheckQuota", `{"pid":"quiet"}`)
	for range 8 {
		g.pass <- struct{}{}
	}
	r.settled(writer)
	f(true, "kernel", "GetProcess", `{"pid":"quiet"}`)
	f(true, "kernel", "GetProcess", `{"pid":"busy"}`)
}

// TestHeldRepliesAreBounded: a connection with too much held is not read until the journal has
// caught up.
func TestHeldRepliesAreBounded(t *testing.T) {
	g := &gate{pass: make(chan struct{}, 64)}
	r := newGatedRig(t, g, 1)
	defer func() { close(g.pass); r.log.Close() }()
	r.svc.cfg.UnsentBytes = 1000
	p := r.connect()
	sent := 0
	for v := connection.More; v != connection.Blocked; sent++ {
		if sent > 100 {
			t.Fatal("the session takes ever more")
		}
		used, out, verdict := p.s.Feed(request("i", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d"}`, sent)), nil, r.now)
		if v = verdict; len(out) > 0 || v == connection.Blocked && used > 0 {
			t.Fatalf("%d bytes left, %d taken, verdict %v", len(out), used, v)
		}
	}
	for range 8 {
		g.pass <- struct{}{}
	}
	r.settled(p)
	if n := strings.Count(string(p.out), `current_stage`); n != sent-1 {
		t.Errorf("%d replies, want %d", n, sent-1)
	}
	if used, _, v := p.s.Feed(request("i", "kernel", "GetProcess", `{"pid":"p0"}`), nil, r.now); used == 0 || v != connection.More {
		t.Errorf("not read again: %v", v)
	}
}

// TestChangesOfOneRoundShareAGroup: the changes of many connections of a loop are written together
// at the end of its round, also when the connection that was first is gone by then.
func TestChangesOfOneRoundShareAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
		defer r.log.Close()
		owner := &loopOwner{connection.NewLoop(func() {})}
		round := func(end func(first *peer)) {
			t.Helper()
			before, peers := r.log.Stats(), make([]*peer, 20)
			owner.loop.BeginRound()
			for i := range peers {
				p := r.connect()
				p.port.SetOwner(owner)
				peers[i] = p
				_, p.out, _ = p.s.Feed(request("i", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"%d.%d","user_id":"u%d"}`, before.Groups, i, i)), p.out, r.now)
			}
			end(peers[0])
			if synctest.Wait(); r.log.Stats().Groups != before.Groups {
				t.Error("written before the round was over")
			}
			owner.loop.EndRound()
			synctest.Wait()
			if after := r.log.Stats(); after.Groups != before.Groups+1 || after.QueueRecords != 0 {
				t.Errorf("%d groups, %d records wait", after.Groups-before.Groups, after.QueueRecords)
			}
			for i, p := range peers[1:] {
				p.pump()
				if got := p.next(); !strings.HasPrefix(got, "02 ") {
					t.Errorf("reply %d: %q", i+1, got)
				}
			}
		}
		round(func(*peer) {})
		round(func(p *peer) { p.s.Closed() })
	})
}

// loopOwner owns connections of one loop.
type loopOwner struct{ loop *connection.Loop }

func (*loopOwner) Wake(*connection.Port)    {}
func (o *loopOwner) Loop() *connection.Loop { return o.loop }

// TestLazyChangesAreWrittenSoon: no one waits for a place in a rate window; it is written all the
// same.
func TestLazyChangesAreWrittenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newJournaledRig(t, memstore.New(memstore.Options{}), nil)
		defer r.log.Close()
		r.svc.rt.Start()
		defer r.svc.rt.Close()
		p := r.connect()
		if got := p.call("i", "kernel", "CheckRateLimit", `{"user_id":"u"}`); !strings.Contains(got, `"allowed":true`) {
			t.Fatalf("no reply at once: %s", got)
		}
		if synctest.Wait(); r.log.Durable() == r.log.Appended() {
			t.Error("written at once, in a group of its own")
		}
		time.Sleep(store.LazyFlush)
		if synctest.Wait(); r.log.Durable() != r.log.Appended() {
			t.Error("not written")
		}
	})
}

// TestALongTailIsShortened: what a start had to replay counts for the next snapshot, or a server
// that dies often would replay ever more.
func TestALongTailIsShortened(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	for i := range 200 {
		p.send(request("c", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u%d"}`, i, i)))
	}
	r.settled(p)
	disk.CrashHard()
	f := func(threshold int64, want uint64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			back := newLimitedRig(
				t,
				func(c *Config, r *runtime.Config) { r.SnapshotBytes = threshold },
				journal.Config{},
				disk,
				nil,
			)
			defer back.log.Close()
			back.svc.rt.Start()
			defer back.svc.rt.Close()
			time.Sleep(10 * store.SnapshotCheck)
			if synctest.Wait(); back.log.Stats().Snapshots != want {
				t.Errorf("%d snapshots, want %d", back.log.Stats().Snapshots, want)
			}
		})
		disk.CrashHard()
	}
	f(1<<20, 0)
	f(10<<10, 1)
	f(10<<10, 0) // nothing has come since
}

// TestRecovery: a service that comes back holds what was answered, wherever the power failed.
func TestRecovery(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	call := func(service, method, body string) string {
		t.Helper()
		r.now.Mono, r.now.Wall = r.now.Mono+1e6, r.now.Wall+1
		p.send(request("i", service, method, body))
		r.settled(p)
		return p.next()
	}
	const pipeline = `{"name":"n","agents":[{"name":"s1","agent":"a1","default_next":"s2"},{"name":"s2","agent":"a2","default_next":"s1"}],` +
		`"max_iterations":100,"max_llm_calls":100,"max_agent_hops":100}`
	for i := range 20 {
		call("kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u","priority":"high"}`, i))
		call("kernel", "CheckRateLimit", `{"user_id":"u"}`)
		call("orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":"p%d","pipeline_config":%s,"envelope":{"envelope_id":"e%d"}}`, i, pipeline, i))
		call("orchestration", "ReportAgentResult", fmt.Sprintf(`{"process_id":"p%d","agent_name":"a1","output":{"v":%d},"metrics":{"llm_calls":1}}`, i, i))
		call("engine", "CreateEnvelope", `{"raw_input":"hi"}`)
	}
	call("kernel", "GetNextRunnable", `{"start":true}`)
	call("kernel", "GetNextRunnable", `{}`)
	call("kernel", "RecordUsage", `{"pid":"p3","llm_calls":2}`)
	call("kernel", "SetQuotaDefaults", `{"quota":{"max_llm_calls":7}}`)
	call("kernel", "TerminateProcess", `{"pid":"p4","reason":"over"}`)
	call("kernel", "TransitionState", `{"pid":"p0","new_state":"WAITING"}`)
	state := call("orchestration", "GetSessionState", `{"process_id":"p7"}`)
	digest := r.svc.rt.Store.Digest()
	disk.CrashHard()
	back := newJournaledRig(t, disk, nil)
	defer back.log.Close()
	if got := back.svc.rt.Store.Digest(); got != digest {
		t.Errorf("digest %x, want %x", got, digest)
	}
	q := back.connect()
	for _, ask := range [][3]string{{"orchestration", "GetSessionState", `{"process_id":"p7"}`}} {
		q.send(request("i", ask[0], ask[1], ask[2]))
		back.settled(q)
		if got := q.next(); got != state {
			t.Errorf("%s, want %s", got, state)
		}
	}
	q.send(request("i", "orchestration", "GetNextInstruction", `{"process_id":"p4"}`))
	back.settled(q)
	if got := q.next(); !strings.Contains(got, "USER_CANCELLED") {
		t.Errorf("a terminated process goes on: %s", got)
	}
}

// TestSnapshotAndReplay: a service that comes back from a snapshot that was taken while requests
// went on, and from the journal since, holds the same.
func TestSnapshotAndReplay(t *testing.T) {
	disk := memstore.New(memstore.Options{})
	r := newJournaledRig(t, disk, nil)
	p := r.connect()
	n := 0
	some := func() {
		for range 40 {
			n++
			p.send(request("i", "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d","user_id":"u%d"}`, n, n%3)))
			p.send(request("i", "kernel", "CheckRateLimit", fmt.Sprintf(`{"user_id":"u%d"}`, n%3)))
			p.send(request("i", "kernel", "RecordUsage", fmt.Sprintf(`{"pid":"p%d","llm_calls":1}`, n/2+1)))
			p.send(request("i", "kernel", "GetNextRunnable", `{"start":true}`))
			p.send(request("i", "kernel", "TransitionState", fmt.Sprintf(`{"pid":"p%d","new_state":"TERMINATED"}`, n/3+1)))
			p.send(request("i", "orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":"s%d","envelope":{"envelope_id":"e"},"pipeline_config":`+
				`{"name":"n","agents":[{"name":"a","default_next":"a"}],"max_iterations":9,"max_llm_calls":9,"max_agent_hops":9}}`, n%7)))
			p.send(request("i", "orchestration", "ReportAgentResult", fmt.Sprintf(`{"process_id":"s%d","agent_name":"a","output":{"n":%d}}`, n%7, n)))
			p.send(request("i", "engine", "CreateEnvelope", `{"raw_input":"hi"}`))
		}
		for len(p.in) > 0 { // held up
			r.settled(p)
			p.send(nil)
		}
		r.settled(p)
		if bad := strings.Count(string(p.out), "INTERNAL"); bad > 0 || len(p.out) == 0 {
			t.Fatalf("%d requests failed, %d bytes", bad, len(p.out))
		}
		p.out = p.out[:0]
	}
	for range 3 {
		some()
		r.now.Mono, r.now.Wall = r.now.Mono+1e9, r.now.Wall+1000
		if err := r.svc.rt.Store.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { done <- r.svc.rt.Store.Snapshot() }() // and one while requests go on
	some()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	some()
	digest := r.svc.rt.Store.Digest()
	if err := r.log.Barrier(context.Background()); err != nil {
		t.Fatal(err)
	}
	disk.CrashHard()
	back := newJournaledRig(t, disk, nil)
	defer back.log.Close()
	if got := back.svc.rt.Store.Digest(); got != digest {
		t.Errorf("digest %x, want %x", got, digest)
	}
	if first := disk.Firsts()[0]; first < 100 || back.log.Appended() < 300 {
		t.Errorf("the journal begins at %d and ends at %d", first, back.log.Appended())
	}
}

// TestStorageThatTakesNothing: the refusal states whether the disk is full or its files cannot be
// written for another reason.
func TestStorageThatTakesNothing(t *testing.T) {
	r, log, broken := newRig(
		t,
		func(c *Config, r *runtime.Config) { r.Journaled = true },
	), opened(
		t,
		memstore.New(memstore.Options{}),
	), false
	defer log.Close()
	o := store.RecoverOptions{Full: func() bool { return true }, Broken: func() bool { return broken }}
	t.Cleanup(func() { _ = r.svc.rt.CloseRows() })
	if err := r.svc.rt.Recover(log, o); err != nil {
		t.Fatal(err)
	}
	p := r.connect()
	for _, want := range []string{"Storage is full; try again", "Storage cannot be written; try again"} {
		if got := p.call("1", "kernel", "CreateProcess", `{"pid":"p"}`); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		broken = true
	}
}
