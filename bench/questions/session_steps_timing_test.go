package questions

// Question: how do reports of 1, 64 and 1000 sessions get on beside one another, one worker to each
// processor?

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/orchestration"
)

func BenchmarkSessionSteps(b *testing.B) {
	for _, n := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			c := newCrowd(b, n)
			var workers atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				w := c.worker(int(workers.Add(1)) - 1)
				for pb.Next() {
					if !w.step() {
						b.Errorf("%v: %s", w.code, w.call.Msg)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// crowd is sessions and the two reports that each gets in turns.
type crowd struct {
	engine  *orchestration.Engine
	now     connection.Instant
	reports [][2]*orchestration.Report
	stride  int // how many workers there are: each takes every stride-th session
}

func newCrowd(tb testing.TB, sessions int) *crowd {
	c := &crowd{engine: orchestration.New(orchestration.Config{}), stride: runtime.GOMAXPROCS(0), now: connection.Instant{Mono: int64(time.Hour), Wall: 1_767_323_045_000}}
	output := encode(tb, `{"verdict":"go","result":`+findings(200)+`}`)
	config, env := mpack.ReadValue(encode(tb, pipeline)), mpack.ReadValue(encode(tb, flatEnvelope("e", 1024, false)))
	for i := range sessions {
		pid := []byte(uuid('p', i))
		call := &orchestration.Call{Now: c.now}
		if _, code := c.engine.Initialize(call, &orchestration.InitArgs{ProcessID: pid, Config: config, Envelope: env}, nil); code != wire.OK {
			tb.Fatalf("%v: %s", code, call.Msg)
		}
		var both [2]*orchestration.Report
		for turn, agent := range []string{"a1", "a2"} {
			both[turn] = &orchestration.Report{ProcessID: pid, AgentName: []byte(agent), LLMCalls: 1, TokensIn: 310, HasTokensIn: true, Output: output}
		}
		c.reports = append(c.reports, both)
	}
	for i := range c.stride { // until the sessions' memory has grown to what they need
		for w := c.worker(i); w.turn < 4*sessions; {
			if !w.step() {
				tb.Fatalf("%v: %s", w.code, w.call.Msg)
			}
		}
	}
	return c
}

// stepper makes steps on one goroutine, with scratch memory of its own.
type stepper struct {
	crowd    *crowd
	call     orchestration.Call
	out      []byte
	code     wire.Code
	at, turn int
}

func (c *crowd) worker(i int) *stepper {
	return &stepper{crowd: c, call: orchestration.Call{Now: c.now}, at: i}
}

// step makes the next step of the worker's next session, two for each before the next one. Where
// workers meet at a session, each takes whatever step is due.
func (s *stepper) step() bool {
	both := &s.crowd.reports[(s.at+s.crowd.stride*(s.turn/2))%len(s.crowd.reports)]
	for try := s.turn; ; try++ {
		if s.out, s.code = s.crowd.engine.Report(&s.call, both[try%2], s.out[:0]); s.code != wire.FailedPrecondition {
			s.turn++
			return s.code == wire.OK
		}
	}
}
