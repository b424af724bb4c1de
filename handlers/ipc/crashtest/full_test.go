package crashtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/runtime"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/memdisk"
	"trunkline/fuzz/rounds"
)

// changes are requests of every method that changes something, on processes that alive has made.
func changes(n int) []question {
	return []question{
		{"kernel", "CreateProcess", fmt.Sprintf(`{"pid":"new%d"}`, n)},
		{"kernel", "ScheduleProcess", `{"pid":"idle"}`},
		{"kernel", "GetNextRunnable", `{}`},
		{"kernel", "TransitionState", `{"pid":"p","new_state":"RUNNING"}`},
		{"kernel", "TerminateProcess", `{"pid":"p"}`},
		{"kernel", "RecordUsage", `{"pid":"p","llm_calls":1}`},
		{"kernel", "CheckRateLimit", `{"user_id":"u"}`},
		{"kernel", "SetQuotaDefaults", `{"quota":{"max_llm_calls":77}}`},
		{"engine", "CreateEnvelope", `{"raw_input":"x"}`},
		{"engine", "UpdateEnvelope", `{"envelope":{"envelope_id":"e"}}`},
		{"engine", "CloneEnvelope", `{"envelope":{"envelope_id":"e"}}`},
		{"engine", "ExecutePipeline", fmt.Sprintf(`{"pipeline_config":%s,"envelope":{"envelope_id":"s%d"}}`, pipeline, n)},
		{"orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":"t%d","pipeline_config":%s,"envelope":{"envelope_id":"t"}}`, n, pipeline)},
		{"orchestration", "ReportAgentResult", `{"process_id":"s","agent_name":"a1"}`},
		{"orchestration", "GetNextInstruction", `{"process_id":"s"}`},
	}
}

// readings are requests that only read.
var readings = []question{
	{"kernel", "GetProcess", `{"pid":"p"}`},
	{"kernel", "CheckQuota", `{"pid":"p"}`},
	{"kernel", "ListProcesses", `{}`},
	{"kernel", "GetProcessCounts", `{}`},
	{"kernel", "GetQuotaDefaults", `{}`},
	{"kernel", "GetSystemStatus", `{}`},
	{"orchestration", "GetSessionState", `{"process_id":"s"}`},
	{"commbus", "Publish", `{"event_type":"x"}`},
}

// furnish makes what changes and readings ask for.
func furnish(t testing.TB, p *peer) {
	t.Helper()
	p.must(t, "kernel", "CreateProcess", `{"pid":"p","user_id":"u"}`)
	p.must(t, "kernel", "CreateProcess", `{"pid":"idle","schedule":false}`)
	p.must(t, "orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":"s","pipeline_config":%s,"envelope":{"envelope_id":"s"}}`, pipeline))
}

// TestFullDisk: while the disk has too little room, the one that would change something is
// informed, can come again and has changed nothing; who reads is served; and when there is room,
// everything goes on by itself.
func TestFullDisk(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			var free atomic.Uint64
			free.Store(1 << 40)
			o := options{store: embedded.Config{FreeBytes: func() (uint64, error) { return free.Load(), nil }}}
			s := mustBoot(t, vfs.NewMem(), "d", mode, o)
			defer mustStop(t, s)
			p := s.connect()
			furnish(t, p)
			free.Store(embedded.MinFreeBytes - 1)
			kit.Until(t, "a full disk", s.store.Full)
			s.settle(t)
			before, end := s.svc.Runtime().Store.Digest(), s.log.Appended()
			for _, q := range changes(1) {
				r := p.call(t, q.service, q.method, q.body)
				if r.ok || r.str("code") != "RESOURCE_EXHAUSTED" || r.str("message") != "Storage is full; try again" || r.body["retryable"] != true {
					t.Errorf("%s on a full disk: %v", q.method, r.body)
				}
				if s.svc.Runtime().Store.Digest() != before || s.log.Appended() != end {
					t.Errorf("%s was refused and has changed something", q.method)
				}
			}
			for _, q := range readings {
				p.must(t, q.service, q.method, q.body)
			}
			free.Store(2*embedded.MinFreeBytes - 1) // not at once again: it would come and go
			time.Sleep(300 * time.Millisecond)
			if !s.store.Full() {
				t.Error("not full any more, with less than twice the reserve")
			}
			free.Store(2 * embedded.MinFreeBytes)
			kit.Until(t, "room again", func() bool { return !s.store.Full() })
			for _, q := range changes(2) {
				if r := p.call(t, q.service, q.method, q.body); r.str("code") == "RESOURCE_EXHAUSTED" {
					t.Errorf("%s with room again: %v", q.method, r.body)
				}
			}
			if s.svc.Runtime().Store.Digest() == before {
				t.Error("nothing has changed with room again")
			}
		})
	}
}

// TestSnapshotsOnAFullDisk: snapshots that are due while no file can be made stop no one; they come
// when there is room.
func TestSnapshotsOnAFullDisk(t *testing.T) {
	t.Parallel()
	f := &fault{err: syscall.ENOSPC, many: -1, match: func(op errorfs.Op) bool { return takesSpace(op) && strings.HasSuffix(op.Path, ".sst") }}
	var full atomic.Bool
	free := func() (uint64, error) {
		f.active.Store(full.Load()) // what is low is gone a moment later
		if full.Load() {
			return 0, nil
		}
		return 1 << 40, nil
	}
	s := mustBoot(
		t,
		errorfs.Wrap(vfs.NewMem(), f),
		"d",
		journal.Always,
		options{
			start: true,
			state: runtime.Config{SnapshotInterval: time.Millisecond},
			store: embedded.Config{FreeBytes: free},
		},
	)
	p := s.connect()
	furnish(t, p)
	count := func() bool { return p.call(t, "kernel", "RecordUsage", `{"pid":"p","llm_calls":1}`).ok }
	full.Store(true)
	for count() { // a reason for a snapshot, until the disk is known to be full
	}
	select {
	case <-s.dead:
		t.Errorf("the server stopped, and reads with it: %v", s.why())
		_ = s.stop()
		return
	case <-time.After(500 * time.Millisecond): // some are due by then
	}
	defer mustStop(t, s)
	for _, q := range readings {
		p.must(t, q.service, q.method, q.body)
	}
	full.Store(false)
	taken := s.log.Stats().Snapshots
	kit.Until(t, "a change with room again", count)
	kit.Until(t, "a snapshot with room again", func() bool { return s.log.Stats().Snapshots > taken })
}

// fault gives an error at some operations of a file system: from the one that from counts, so many.
type fault struct {
	match  func(errorfs.Op) bool
	err    error
	from   int64
	many   int64 // -1: all
	seen   atomic.Int64
	given  atomic.Int64
	active atomic.Bool
	later  atomic.Int64 // operations that match, on logs, after the first error
}

// String implements errorfs.Injector.
func (*fault) String() string { return "fault" }

// MaybeError implements errorfs.Injector.
func (f *fault) MaybeError(op errorfs.Op) error {
	if !f.active.Load() || !f.match(op) {
		return nil
	}
	if f.given.Load() > 0 && strings.HasSuffix(op.Path, ".log") {
		f.later.Add(1)
	}
	if at := f.seen.Add(1) - 1; at < f.from || f.many >= 0 && at >= f.from+f.many {
		return nil
	}
	f.given.Add(1)
	return f.err
}

func takesSpace(op errorfs.Op) bool {
	switch op.Kind {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpMkdirAll,
		errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpFileSyncData:
		return true
	}
	return false
}

func syncsLog(op errorfs.Op) bool {
	return (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && strings.HasSuffix(op.Path, ".log")
}

// worked is what came of a server whose disk gave errors.
type worked struct {
	acked   int // increments of a counter whose replies left
	refused int
	sent    int
	after   int // replies to changes that left although they were asked for after the end
	dead    bool
	snapped error
}

// workUntil lets clients count on a server until the disk stops it, or they are through.
func workUntil(s *server, pause time.Duration) (w worked) {
	p := s.connect()
	rng := rand.New(rand.NewPCG(1, 1))
	for round := 0; round < 25; round++ {
		many := 1 + rng.IntN(6)
		for range many {
			p.ask("kernel", "RecordUsage", hotBody)
		}
		w.sent += many
		replies, err := p.flush()
		for _, r := range replies {
			switch {
			case r.ok:
				w.acked++
			case r.str("code") == "RESOURCE_EXHAUSTED" && r.body["retryable"] == true:
				w.refused++ // the log can be written, and what is in memory cannot be sorted; or the end is near
			}
		}
		if err != nil {
			break
		}
		time.Sleep(pause)
		if round == 12 {
			w.snapped = s.svc.Runtime().Store.Snapshot()
		}
	}
	if errors.Is(w.snapped, journal.ErrFailed) || s.log.Err() != nil {
		<-s.dead
	}
	select {
	case <-s.dead:
		w.dead = true
	default:
		return w
	}
	late := s.connect()
	for range 5 {
		late.ask("kernel", "RecordUsage", hotBody)
	}
	replies, _, _ := late.step()
	more, _ := late.pump()
	for _, r := range append(replies, more...) {
		if r.ok {
			w.after++
		}
	}
	return w
}

// counted reads the counter of workUntil from what is left.
func counted(t *testing.T, fs vfs.FS, mode journal.Mode) int {
	t.Helper()
	s := mustBoot(t, fs, "d", mode, options{})
	defer mustStop(t, s)
	r := s.connect().call(t, "kernel", "CheckQuota", `{"pid":"hot"}`)
	return int(max(r.number("tool_calls"), 0))
}

// testFaults lets a server work with a fault at one operation after the other. It stops for good,
// nothing is acknowledged afterwards, and the one that opens the directory again finds all that
// was.
func testFaults(t *testing.T, mode journal.Mode, step int64, make func() *fault, must bool) {
	died := 0
	for from := int64(0); ; from += step {
		mem, f := memdisk.New(), make()
		f.from = from
		s := mustBoot(t, errorfs.Wrap(mem, f), "d", mode, options{store: embedded.Config{SyncEvery: 2 * time.Millisecond, StallTimeout: 20 * time.Millisecond}})
		first := s.connect()
		furnish(t, first)
		first.must(t, "kernel", "CreateProcess", `{"pid":"hot","schedule":false}`)
		f.active.Store(true)
		pause := time.Duration(0)
		if mode == journal.Interval { // or the work is over before the log is synced
			pause = time.Millisecond
		}
		w := workUntil(s, pause)
		f.active.Store(false)
		var left vfs.FS = mem
		if mode == journal.Always { // what counts is on the disk
			left = mem.CrashClone(vfs.CrashCloneCfg{})
		}
		err := s.stop()
		if f.given.Load() == 0 {
			if err != nil || w.acked != w.sent {
				t.Fatalf("no fault, and %+v: %v", w, err)
			}
			break
		}
		switch {
		case w.dead && (s.why() == nil || !errors.Is(s.why(), f.err)):
			t.Fatalf("fault %d: stopped by another error: %v", from, s.why())
		case w.after > 0:
			t.Fatalf("fault %d: %d changes were acknowledged after the end", from, w.after)
		case !w.dead && w.acked+w.refused != w.sent:
			t.Fatalf("fault %d: alive, and %+v", from, w)
		case must && !w.dead && err == nil:
			t.Fatalf("fault %d: nobody noticed: %+v", from, w)
		case must && f.later.Load() > 0:
			t.Fatalf("fault %d: the log was synced again after a sync of it had failed", from)
		}
		if w.dead {
			died++
		}
		if got := counted(t, left, mode); got < w.acked || got > w.sent {
			t.Fatalf("fault %d: the counter is %d, acknowledged %d, sent %d", from, got, w.acked, w.sent)
		}
	}
	if died == 0 {
		t.Fatal("no fault stopped the server")
	}
	t.Logf("%d faults stopped the server", died)
}

// TestNoSpaceAtAWrite: a disk that fills up without a warning stops the server.
func TestNoSpaceAtAWrite(t *testing.T) {
	step := int64(rounds.Pick(40, rounds.Step(60, 8)))
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			testFaults(t, mode, step, func() *fault { return &fault{match: takesSpace, err: syscall.ENOSPC, many: -1} }, false)
		})
	}
}

// TestOneSyncFails: after a sync that failed once the server stops; the next one would succeed, and
// prove nothing.
func TestOneSyncFails(t *testing.T) {
	step := int64(rounds.Pick(30, rounds.Step(20, 8)))
	for _, mode := range bothModes {
		t.Run(mode.String(), func(t *testing.T) {
			testFaults(t, mode, step, func() *fault { return &fault{match: syncsLog, err: syscall.EIO, many: 1} }, true)
		})
	}
}
