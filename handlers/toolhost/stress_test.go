package toolhost

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/engine/connection"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	stressSessions = 64
	stressKeys     = 48
)

// runCounter counts the runs for each input and notices when two of one input run at once.
type runCounter struct {
	mu      sync.Mutex
	runs    map[string]int
	running map[string]bool
	twice   atomic.Int64
}

func (y *runCounter) run(_ context.Context, c *tool.Call) tool.Result {
	key := string(c.Input)
	y.mu.Lock()
	if y.running[key] {
		y.twice.Add(1)
	}
	y.runs[key]++
	y.running[key] = true
	y.mu.Unlock()
	time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
	c.State.Set(1, sessionstate.Artifact{Content: key})
	y.mu.Lock()
	y.running[key] = false
	y.mu.Unlock()
	return tool.Result{Output: []byte(key)}
}

func stressServer(t *testing.T, y *runCounter) *Server {
	entry := func(aid string, fast bool) Entry {
		return Entry{Descriptor: tool.Descriptor{AID: aid, Fast: fast, SideEffects: []string{"write"}}, Tool: toolFunc(y.run)}
	}
	guarded := entry("AID.C.v1", false)
	guarded.External, guarded.Breaker = true, tool.NewBreaker(tool.BreakerConfig{Now: func() int64 { return connection.Now().Mono }})
	reg, err := NewRegistry([]Entry{entry("AID.A.v1", false), entry("AID.B.v1", true), guarded})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Registry: reg, EnforceLeases: EnforceOff, IdempotencyTTL: time.Hour, Executors: 8, Events: func(Event) {}})
}

// No key runs twice inside its window, the one that waits, goes away or is drained meanwhile.
func TestStress(t *testing.T) {
	y := &runCounter{runs: make(map[string]int), running: make(map[string]bool)}
	r := &rig{t: t, srv: stressServer(t, y)}
	var wg sync.WaitGroup
	for i := range stressSessions {
		wg.Go(func() { stressSession(r, i) })
	}
	wg.Wait()
	st := r.srv.Stats()
	if err := r.srv.Close(); err != nil {
		t.Error(err)
	}
	if y.twice.Load() != 0 {
		t.Errorf("%d runs of one input at once", y.twice.Load())
	}
	for input, n := range y.runs {
		if n != 1 {
			t.Errorf("%s ran %d times", input, n)
		}
	}
	if after := r.srv.Stats(); after.InFlight != 0 || after.Sessions != 0 || after.IdempotencyEntries != int64(len(y.runs)) || r.srv.idem.Waiting() != 0 ||
		r.srv.exec.pending.Load() != 0 || len(r.srv.drains.waiting) != 0 || r.srv.drains.running != 0 {
		t.Errorf("left: %+v (before %+v), %d waiting", after, st, r.srv.idem.Waiting())
	}
}

// stressSession is a few connections, one after the other.
func stressSession(r *rig, seed int) {
	rnd := rand.New(rand.NewPCG(uint64(seed), 1))
	for range 4 {
		p := &peer{t: r.t, r: r, port: connection.NewPort(1, ""), wake: make(chan struct{}, 1)}
		p.port.SetOwner(p)
		p.s = r.srv.open(p.port, Unix, "all")
		for range 40 {
			aid, key := string(rune('A'+rnd.IntN(3))), rnd.IntN(stressKeys)
			input := fmt.Sprintf(`{\"k\":\"%s%d\"}`, aid, key)
			p.begin(fmt.Sprintf(`{"aid":"AID.%s.v1","input_json":"%s","idempotency_key":"%d","request_id":%d}`, aid, input, key, seed))
			if rnd.IntN(100) == 0 {
				break // with whatever is going on
			}
			got := p.end()
			if !strings.HasPrefix(got, `{"ok":true,"status":"OK","output_json":"`+input+`"`) || !strings.HasSuffix(got, fmt.Sprintf(`"request_id":%d}`, seed)) {
				r.t.Errorf("%s%d: %s", aid, key, got)
			}
			_ = p.ask(`{"aid":"_stats"}`)
		}
		if rnd.IntN(2) == 0 {
			p.s.Drain(connection.Now())
			p.begin(`{"aid":"AID.A.v1"}`)
			p.s.Load()
		}
		p.close()
	}
}
