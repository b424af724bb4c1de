package crashtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/runtime"
)

// crowded is a service whose tables are small and whose entries do not stay for long.
func crowded(c *clock) runtime.Config {
	return runtime.Config{
		KernelConfig: kernel.Config{
			MaxProcesses:      12,
			MaxRateLimitUsers: 5,
			DequeueLease:      20 * time.Second,
			ProcessRetention:  50 * time.Second,
		},
		OrchestrationConfig: orchestration.Config{MaxSessions: 5, MaxEnvelopes: 6,
			SessionRetention: 40 * time.Second, EnvelopeRetention: 40 * time.Second},
		Now: c.now,
	}
}

// replayed is one journal over many lives of its server.
type replayed struct {
	t     *rapid.T
	mode  journal.Mode
	disk  *vfs.MemFS
	clock *clock
	tape  tape
	s     *server
	p     *peer
	n     int
	id    string // of the last envelope
	lives int
	done  int // requests that were not refused
}

func (r *replayed) boot() {
	s, err := boot(r.disk, "d", r.mode, options{state: crowded(r.clock), wrap: r.tape.over})
	if err != nil {
		r.t.Fatalf("life %d: %v", r.lives, err)
	}
	r.s, r.p = s, s.connect()
	r.p.now = r.clock.now
	r.lives++
}

// restart ends the server, by the death of its process, by a power loss after a sync, or in order,
// and compares the state before with what a new one and a fresh replay of the whole journal have.
func (r *replayed) restart(how int) {
	r.s.settle(r.t)
	digest := r.s.svc.Runtime().Store.Digest()
	if how == 1 {
		if err := r.s.store.Sync(); err != nil {
			r.t.Fatal(err)
		}
	}
	left := r.disk
	if how < 2 {
		left = r.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100 * (1 - how), RNG: rand.New(rand.NewPCG(1, 1))})
	}
	if err := r.s.stop(); err != nil {
		r.t.Fatal(err)
	}
	r.disk = left
	r.boot()
	if got := r.s.svc.Runtime().Store.Digest(); got != digest {
		r.t.Fatalf("digest %x, was %x", got, digest)
	}
	if got := digestOf(r.t, r.tape.upTo(1<<62), r.mode, crowded(r.clock)); got != digest {
		r.t.Fatalf("digest %x of a replay from the beginning, was %x", got, digest)
	}
}

// snapshot takes a snapshot, and between its tables, before it reads the clock for the second one,
// has some requests made.
func (r *replayed) snapshot(between func()) {
	readings := 0
	r.clock.read = func() {
		if readings++; readings == 2 {
			r.clock.read = nil
			between()
		}
	}
	defer func() { r.clock.read = nil }()
	if err := r.s.svc.Runtime().Store.Snapshot(); err != nil {
		r.t.Fatal(err)
	}
}

// request sends one of all the requests that change something, mostly sensible ones.
func (r *replayed) request(kind int) {
	r.n++
	pid := fmt.Sprint("p", rapid.IntRange(0, 15).Draw(r.t, "pid"))
	body := func(format string, v ...any) string { return fmt.Sprintf(format, v...) }
	var q question
	switch kind {
	case 0, 1, 2:
		q = question{"kernel", "CreateProcess", body(`{"pid":%q,"user_id":"u%d","priority":%q,"schedule":%v}`,
			pid, r.n%7, priorities[r.n%5], kind > 0)}
	case 3:
		state := rapid.SampledFrom([]string{"READY", "RUNNING", "WAITING", "BLOCKED", "TERMINATED"}).Draw(r.t, "state")
		q = question{"kernel", "TransitionState", body(`{"pid":%q,"new_state":%q,"reason":"r%d"}`, pid, state, r.n)}
	case 4:
		q = question{"kernel", "RecordUsage", body(`{"pid":%q,"llm_calls":%d,"tokens_out":7}`, pid, r.n%3)}
	case 5:
		q = question{"kernel", "TerminateProcess", body(`{"pid":%q}`, pid)}
	case 6:
		q = question{"kernel", "ScheduleProcess", body(`{"pid":%q}`, pid)}
	case 7, 8:
		q = question{"kernel", "GetNextRunnable", body(`{"start":%v}`, kind == 7)}
	case 9:
		q = question{"kernel", "SetQuotaDefaults", body(`{"quota":{"max_llm_calls":%d}}`, r.n)}
	case 10:
		q = question{"kernel", "CheckRateLimit", body(`{"user_id":"u%d"}`, r.n%7)}
	case 11:
		q = question{"engine", "CreateEnvelope", body(`{"raw_input":"%d"}`, r.n)}
	case 12:
		q = question{"engine", "UpdateEnvelope", body(`{"envelope":{"envelope_id":%q,"raw_input":"%d"}}`, r.id, r.n)}
	case 13:
		q = question{"engine", "CloneEnvelope", body(`{"envelope":{"envelope_id":%q,"raw_input":"%d"}}`, r.id, r.n)}
	case 14:
		q = question{"orchestration", "InitializeSession", body(`{"process_id":%q,"pipeline_config":%s,"force":%v,`+
			`"envelope":{"envelope_id":%q,"interrupt_pending":%v,"interrupt":{"kind":"checkpoint","id":"i"}}}`, pid, pipeline, r.n%2 == 0, r.id, r.n%3 == 0)}
	case 15:
		q = question{"engine", "ExecutePipeline", body(`{"pipeline_config":%s,"envelope":{"envelope_id":%q}}`, pipeline, pid)}
	case 16, 17:
		q = question{"orchestration", "ReportAgentResult", body(`{"process_id":%q,"agent_name":"a%d","success":%v,"output":{"n":%d},"metrics":{"llm_calls":1}}`,
			pid, kind-15, r.n%9 > 0, r.n)}
	case 18:
		q = question{"orchestration", "GetNextInstruction", body(`{"process_id":%q}`, pid)}
	}
	reply := r.p.call(r.t, q.service, q.method, q.body)
	if reply.ok {
		r.done++
	}
	if reply.str("code") == "INTERNAL" {
		r.t.Fatalf("%v: %v", q, reply.body)
	}
	if id := reply.str("envelope_id"); id != "" {
		r.id = id
	}
}

// again ends a process and begins a session of it.
func (r *replayed) again() {
	pid := fmt.Sprint("p", rapid.IntRange(0, 15).Draw(r.t, "pid"))
	r.p.call(r.t, "kernel", "TerminateProcess", fmt.Sprintf(`{"pid":%q}`, pid))
	r.p.call(r.t, "orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":%q,"pipeline_config":%s,"force":true,"envelope":{"envelope_id":"again"}}`, pid, pipeline))
}

// TestStateSurvives: whatever was asked, and however the server ended, the state after the restart
// is the one before, whether it comes from the journal, from a snapshot and the journal behind it,
// or from a replay of all that was ever written.
func TestStateSurvives(t *testing.T) {
	done, lives := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		r := &replayed{t: rt, mode: rapid.SampledFrom(bothModes).Draw(rt, "mode"), disk: vfs.NewCrashableMem(), clock: newClock(), id: "e"}
		r.boot()
		for range rapid.IntRange(1, 6).Draw(rt, "lives") {
			for range rapid.IntRange(1, 40).Draw(rt, "requests") {
				switch n := rapid.IntRange(0, 29).Draw(rt, "kind"); {
				case n < 19:
					r.request(n)
				case n < 22:
					r.request(n - 19)
				case n < 25:
					r.request(n - 11)
				case n < 28:
					r.clock.pass(time.Duration(rapid.IntRange(1, 30).Draw(rt, "seconds")) * time.Second)
				case n == 28:
					r.s.svc.Runtime().Sweep()
				default:
					between := rapid.IntRange(0, 6).Draw(rt, "between")
					r.snapshot(func() {
						for range between {
							if rapid.IntRange(0, 2).Draw(rt, "again") == 0 {
								r.again()
								continue
							}
							r.request(rapid.SampledFrom([]int{0, 3, 5, 5, 11, 12, 14, 14, 15, 16}).Draw(rt, "kind"))
						}
					})
				}
			}
			r.restart(rapid.IntRange(0, 2).Draw(rt, "end"))
		}
		r.snapshot(func() {})
		r.restart(0)
		if err := r.s.stop(); err != nil {
			rt.Fatal(err)
		}
		done, lives = done+r.done, lives+r.lives
	})
	t.Logf("%d requests in %d lives", done, lives)
}

// TestNoHalfRequest: a request may leave several records, and a crash may come between any two.
// What is there then is what a client could have been shown: before the request, or after it.
// Looking at the digest changes nothing.
func TestNoHalfRequest(t *testing.T) {
	c, book := newClock(), &tape{}
	o := options{state: runtime.Config{Now: c.now}, wrap: book.over, journal: journal.Config{MaxBlockBytes: 512}}
	s := mustBoot(t, vfs.NewMem(), "d", journal.Always, o)
	defer mustStop(t, s)
	p := s.connect()
	p.now = c.now
	view := func(s *server, pid string) string {
		p := s.connect()
		p.now = c.now
		return p.call(t, "kernel", "GetProcess", fmt.Sprintf(`{"pid":%q}`, pid)).str("state") +
			p.call(t, "orchestration", "GetSessionState", fmt.Sprintf(`{"process_id":%q}`, pid)).String()
	}
	for others := range 24 { // so that the end of a block comes at every place
		identity, _ := p.must(t, "engine", "CreateEnvelope", `{"raw_input":"x"}`).body["identity"].(map[string]any)
		pid, _ := identity["envelope_id"].(string) // the end of the process ends this envelope too
		p.must(t, "kernel", "CreateProcess", fmt.Sprintf(`{"pid":%q,"user_id":%q}`, pid, pid))
		p.must(t, "orchestration", "InitializeSession", fmt.Sprintf(`{"process_id":%q,"pipeline_config":%s,"envelope":{"envelope_id":%q}}`, pid, pipeline, pid))
		s.settle(t)
		before, from := view(s, pid), s.log.Durable()
		for range others {
			p.ask("kernel", "RecordUsage", fmt.Sprintf(`{"pid":%q,"llm_calls":1}`, pid))
		}
		p.ask("kernel", "TerminateProcess", fmt.Sprintf(`{"pid":%q}`, pid))
		if _, err := p.flush(); err != nil {
			t.Fatal(err)
		}
		s.settle(t)
		after := view(s, pid)
		const records = 3 // of the process, of its session, of its envelope
		first, end := from+journal.Index(others)+1, s.log.Durable()
		if end != first+records-1 {
			t.Fatalf("the end of the process made records %d to %d, want %d of them", first, end, records)
		}
		if b := book.upTo(first); b[len(b)-1].first != book.upTo(end)[len(book.upTo(end))-1].first {
			t.Fatalf("%d records later than at rest a block ends between the records %d to %d of one request", others, first, end)
		}
		for last := from; last <= s.log.Durable(); last++ {
			back := &server{dead: make(chan struct{})}
			if err := back.serve(&reel{blocks: book.upTo(last)}, journal.Always, options{state: o.state}, nil); err != nil {
				t.Fatal(err)
			}
			_ = back.svc.Runtime().Store.Digest()
			is := view(back, pid)
			mustStop(t, back)
			if is != before && is != after {
				t.Fatalf("%d records later than at rest the state is neither that before nor that after:\n%s\n%s\n%s", last-from, is, before, after)
			}
		}
	}
}
