package crashtest

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/runtime"
)

// steps are what a wall clock does wrong, before each of a server's lives and during it.
var steps = []time.Duration{0, time.Hour, -time.Hour, 0, -2 * time.Hour, 3 * time.Hour, -24 * time.Hour, 0}

// TestLogTimeNeverFalls: whatever the wall clock does, between the lives of a server and during
// them.
func TestLogTimeNeverFalls(t *testing.T) {
	wall := time.Unix(1_700_000_000, 0)
	fs, book := vfs.NewMem(), &tape{}
	last := int64(0)
	for n, step := range steps {
		wall = wall.Add(step)
		s := mustBoot(t, fs, "d", journal.Always, options{wrap: book.over, journal: journal.Config{Now: func() time.Time { return wall }}})
		p := s.connect()
		for i, step := range steps {
			p.must(t, "kernel", "CreateProcess", fmt.Sprintf(`{"pid":"p%d-%d","user_id":"u%d"}`, n, i, n))
			if now := s.log.LogTime(); now < last {
				t.Fatalf("life %d: log time fell by %v", n, time.Duration(last-now))
			} else {
				last = now
			}
			if i == 3 {
				if err := s.svc.Runtime().Store.Snapshot(); err != nil {
					t.Fatal(err)
				}
			}
			s.settle(t)
			wall = wall.Add(step)
		}
		mustStop(t, s)
	}
	before := int64(0)
	for _, b := range book.upTo(1 << 62) {
		at := int64(binary.LittleEndian.Uint64(b.bytes[32:]))
		if at < before {
			t.Errorf("the block at %d is %v older than the one before it", b.first, time.Duration(before-at))
		}
		before = at
	}
	if before != last {
		t.Errorf("the last block is of %d, log time is %d", before, last)
	}
}

// aging is a server whose monotonic clock begins again with each life, as that of a process does,
// while the wall clock jumps.
type aging struct {
	t    *testing.T
	fs   vfs.FS
	wall time.Time
	s    *server
	p    *peer
	at   time.Duration
}

func (a *aging) begin(step time.Duration) {
	if a.s != nil {
		mustStop(a.t, a.s)
	}
	a.wall = a.wall.Add(step)
	a.s = mustBoot(a.t, a.fs, "d", journal.Always, options{
		state: runtime.Config{
			KernelConfig: kernel.Config{DequeueLease: 30 * time.Second, ProcessRetention: time.Hour / 2},
			OrchestrationConfig: orchestration.Config{
				SessionRetention:  time.Hour / 2,
				EnvelopeRetention: time.Hour / 2,
			},
		},
		journal: journal.Config{Now: func() time.Time { return a.wall }}})
	a.p = a.s.connect()
	a.p.now = func() connection.Instant { return connection.Instant{Mono: int64(a.at), Wall: a.wall.UnixMilli()} }
	a.at = time.Second
}

func (a *aging) wantRunnable(what string, want bool) {
	a.t.Helper()
	if r := a.p.call(a.t, "kernel", "GetNextRunnable", `{}`); r.ok != want {
		a.t.Errorf("%s: a process came out of the queue: %v, want %v", what, r.ok, want)
	}
}

func (a *aging) wantAllowed(what string, want bool) {
	a.t.Helper()
	if r := a.p.must(a.t, "kernel", "CheckRateLimit", `{"user_id":"rated"}`); r.body["allowed"] != want {
		a.t.Errorf("%s: %v, want allowed = %v", what, r.body, want)
	}
}

// TestNothingExpiresEarly: leases and rate windows end when they would have ended without the
// restarts and the jumps, and what is kept for a time is kept.
func TestNothingExpiresEarly(t *testing.T) {
	a := &aging{t: t, fs: vfs.NewMem(), wall: time.Unix(1_700_000_000, 0)}
	a.begin(0)
	furnish(t, a.p)
	a.p.must(t, "kernel", "TerminateProcess", `{"pid":"idle"}`)
	a.p.must(t, "engine", "CreateEnvelope", `{"raw_input":"x"}`)
	a.at = 5 * time.Second
	a.wantRunnable("at first", true) // leased until 35 s
	for range 10 {
		a.wantAllowed("at first", true) // full until 15 s
	}
	a.wantAllowed("after ten", false)
	there := a.p.must(t, "kernel", "GetProcessCounts", `{}`).String()
	a.s.settle(t)
	for _, step := range steps {
		a.begin(step)
		what := fmt.Sprint("at 6 s, wall clock moved by ", step)
		a.wantRunnable(what, false)
		a.wantAllowed(what, false)
		a.wall = a.wall.Add(step)
		a.s.svc.Runtime().Sweep()
		a.wantRunnable(what+" twice", false)
		a.wantAllowed(what+" twice", false)
		if is := a.p.must(t, "kernel", "GetProcessCounts", `{}`).String(); is != there {
			t.Errorf("%s: %s, was %s", what, is, there)
		}
		a.p.must(t, "orchestration", "GetSessionState", `{"process_id":"s"}`)
	}
	a.at = 9 * time.Second
	a.wantAllowed("at 14 s", false)
	a.at = 12 * time.Second
	a.wantAllowed("at 17 s", true)
	a.at = 29 * time.Second
	a.wantRunnable("at 34 s", false)
	a.at = 31 * time.Second
	a.wantRunnable("at 36 s", true)
	mustStop(t, a.s)
}
