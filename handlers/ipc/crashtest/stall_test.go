package crashtest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit"
	"trunkline/handlers/ipc"
)

// brake holds up the syncs of a log while it is on.
type brake struct {
	mu   sync.Mutex
	gate chan struct{}
	held atomic.Int64
}

func (b *brake) on() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = make(chan struct{})
}

func (b *brake) off() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.gate)
	b.gate = nil
}

func (b *brake) wait() {
	b.mu.Lock()
	gate := b.gate
	b.mu.Unlock()
	if gate != nil {
		b.held.Add(1)
		<-gate
	}
}

// greedy is a client that sends as much as it is allowed to, until it is asked to stop.
type greedy struct {
	p       *peer
	stop    atomic.Bool
	ok      int
	refused int
	most    int // requests taken and not answered at a time
	err     error
}

func (g *greedy) count(replies []reply) {
	for _, r := range replies {
		switch {
		case r.ok && r.body["tool_calls"] != nil:
			g.ok++
		case r.ok:
		case r.str("code") == "RESOURCE_EXHAUSTED" && r.body["retryable"] == true:
			g.refused++
		default:
			g.err = fmt.Errorf("reply %d: %v", r.id, r.body)
		}
	}
}

func (g *greedy) run(pid string) {
	usage, read := fmt.Sprintf(`{"pid":%q,"tool_calls":1}`, pid), fmt.Sprintf(`{"pid":%q}`, pid)
	ends := []int{0} // of the requests that are not taken yet, in bytes
	for !g.stop.Load() && g.err == nil {
		if len(g.p.in) < 8<<10 {
			for range 10 {
				g.p.ask("kernel", "RecordUsage", usage)
				g.p.ask("kernel", "GetProcess", read)
			}
			if ends[0] == 0 {
				ends[0] = len(g.p.in) / 20
			}
		}
		replies, blocked, err := g.p.step()
		g.count(replies)
		g.most = max(g.most, g.p.sent-g.p.got-len(g.p.in)/ends[0])
		if err != nil {
			g.err = err
		}
		if blocked {
			select {
			case <-g.p.wake:
			case <-time.After(patience):
				g.err = fmt.Errorf("blocked for ever, %d of %d replies", g.p.got, g.p.sent)
			}
			replies, err := g.p.pump()
			if g.count(replies); err != nil {
				g.err = err
			}
		}
	}
	if g.err == nil {
		var rest []reply
		rest, g.err = g.p.flush()
		g.count(rest)
	}
}

// TestStalledSync: while a sync takes for ever, what waits is bounded, the one that comes is asked
// to come again, and who needs no journal is served. Then everything goes on, and every reply comes
// once and in order.
func TestStalledSync(t *testing.T) {
	const maxRecords, maxBytes, unsent, clients = 64, 32 << 10, 8 << 10, 8
	stall := 2 * time.Second
	if testing.Short() {
		stall = 300 * time.Millisecond
	}
	var b brake
	fs := &tap{FS: vfs.NewMem(), before: b.wait, after: func(bool) {}}
	s := mustBoot(t, fs, "d", journal.Always, options{ipc: ipc.Config{UnsentBytes: unsent},
		journal: journal.Config{MaxQueueRecords: maxRecords, MaxQueueBytes: maxBytes}})
	defer mustStop(t, s)
	p := s.connect()
	furnish(t, p)
	crowd, done := make([]*greedy, clients), sync.WaitGroup{}
	for i := range crowd {
		pid := fmt.Sprint("g", i)
		p.must(t, "kernel", "CreateProcess", fmt.Sprintf(`{"pid":%q,"user_id":%q}`, pid, pid))
		crowd[i] = &greedy{p: s.connect()}
	}
	for i := range crowd {
		done.Go(func() { crowd[i].run(fmt.Sprint("g", i)) })
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b.on()
	kit.Until(t, "a sync that hangs", func() bool { return b.held.Load() > 0 })
	kit.Until(t, "overload", s.log.Overloaded)

	writer, reader, free := s.connect(), s.connect(), s.connect()
	for _, q := range changes(1) {
		writer.ask(q.service, q.method, q.body)
	}
	refusals, _, err := writer.step()
	if err != nil || len(refusals) != len(changes(1)) {
		t.Errorf("%d refusals, want them at once: %v", len(refusals), err)
	}
	for _, r := range refusals {
		if r.ok || r.str("code") != "RESOURCE_EXHAUSTED" || r.str("message") != "Kernel request queue is full; try again" ||
			r.body["retryable"] != true || r.number("kernel_queue_capacity") <= 0 {
			t.Errorf("refused with %v", r.body)
		}
	}
	free.ask("commbus", "Publish", `{"event_type":"x"}`)
	if replies, _, err := free.step(); err != nil || len(replies) != 1 || !replies[0].ok {
		t.Errorf("who needs no journal waits: %v, %v", replies, err)
	}
	reader.ask("kernel", "GetProcessCounts", `{}`)
	if replies, _, err := reader.step(); err != nil || len(replies) > 0 {
		t.Errorf("a reader was reported what is not safe: %v, %v", replies, err)
	}
	for end := time.Now().Add(stall); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if q := s.log.Stats(); q.QueueRecords > 2*maxRecords || q.QueueBytes > 2*maxBytes {
			t.Fatalf("%d records of %d bytes wait", q.QueueRecords, q.QueueBytes)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d bytes more in use during the stall", grown)
	}
	b.off()
	if replies, err := reader.flush(); err != nil || len(replies) != 1 || !replies[0].ok {
		t.Errorf("the reader: %v, %v", replies, err)
	}
	for _, g := range crowd {
		g.stop.Store(true)
	}
	done.Wait()
	ok, refused := 0, 0
	for i, g := range crowd {
		if g.err != nil {
			t.Fatalf("client %d: %v", i, g.err)
		}
		if g.most > ipc.DefaultFramesPerTurn+unsent/32 {
			t.Errorf("client %d: %d requests were taken and not answered", i, g.most)
		}
		r := p.must(t, "kernel", "CheckQuota", fmt.Sprintf(`{"pid":"g%d"}`, i))
		if got := int(r.number("tool_calls")); got != g.ok {
			t.Errorf("client %d: the counter is %d after %d acknowledged changes", i, got, g.ok)
		}
		ok, refused = ok+g.ok, refused+g.refused
	}
	if refused == 0 {
		t.Error("no client was refused")
	}
	t.Logf("%d changes, %d refusals", ok, refused)
}
