package loadgen

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/codec/frame"
	"trunkline/codec/mpack"
	"trunkline/codec/transcode"
)

// registry is a server that knows processes and nothing else about them.
type registry struct {
	mu      sync.Mutex // of all below
	alive   map[string]bool
	full    int // number above which it takes no more
	calls   map[string]int
	seen    []string // pids that other methods named and that are not there
	dials   int
	deaf    bool          // it takes no byte
	mute    bool          // it sends none
	stall   time.Duration // how long a connection rests after the first refusal of all
	refused atomic.Bool
}

func (s *registry) dial(context.Context) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	ours, theirs := net.Pipe()
	if s.deaf {
		return ours, nil
	}
	go func() {
		defer theirs.Close()
		eachFrame(theirs, func(payload []byte) bool {
			reply := s.reply(payload)
			if s.mute {
				return true
			}
			_, err := theirs.Write(reply)
			if frame.Type(reply[frame.PrefixSize]) == frame.Error && !s.refused.Swap(true) {
				time.Sleep(s.stall)
			}
			return err == nil || s.stall > 0 // what was read is executed, whether or not its sender is still there
		})
	}()
	return ours, nil
}

func (s *registry) reply(payload []byte) []byte {
	var r mpack.Request
	var sc mpack.Scanner
	sc.ParseRequest(payload, &r)
	body, _ := transcode.AppendJSON(nil, r.Body)
	_, rest, _ := strings.Cut(string(body), `"pid":"`)
	pid, _, _ := strings.Cut(rest, `"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[string(r.Method)]++
	switch string(r.Method) {
	case "CreateProcess":
		if len(s.alive) >= s.full {
			return refusal(r.ID, "RESOURCE_EXHAUSTED")
		}
		s.alive[pid] = true
	case "TerminateProcess":
		if !s.alive[pid] {
			return refusal(r.ID, "NOT_FOUND")
		}
		delete(s.alive, pid)
	default:
		if !s.alive[pid] {
			s.seen = append(s.seen, pid)
		}
	}
	return replyFrame(frame.Response, append(mpack.AppendResponseHead(nil, r.ID), 0x80))
}

// withRegistry runs a plan against a registry.
func withRegistry(t *testing.T, s *registry, p Plan) (r *Result, err error) {
	t.Helper()
	s.alive, s.calls = make(map[string]bool), make(map[string]int)
	synctest.Test(t, func(t *testing.T) {
		p.Target = Target{Protocol: ProtocolKernel, Addr: "fake:1", Dial: s.dial}
		p.Timeout, p.Interval = time.Second, time.Second
		r, err = run(t.Context(), p, nil, timerAlarm, secret)
		time.Sleep(2 * s.stall) // what was sent is executed
	})
	return r, err
}

// TestProcessesOfARun are there for its requests and gone after it.
func TestProcessesOfARun(t *testing.T) {
	s := &registry{full: 100}
	r, err := withRegistry(t, s, Plan{Schedule: Schedule{To: 100}, Conns: 1, Depth: 2, Duration: 2 * time.Second})
	if err != nil || r.Total.Done != 200 || len(s.seen) != 0 || len(s.alive) != 0 {
		t.Errorf("%v, asked for %v, left over %v", err, s.seen, s.alive)
	}
	if s.calls["CreateProcess"] != 1 || s.calls["TerminateProcess"] != 1 || s.calls["GetProcess"] == 0 || s.calls["CheckQuota"] == 0 {
		t.Errorf("%v", s.calls)
	}
}

// TestCreatedProcesses: those that the load itself creates are terminated, too.
func TestCreatedProcesses(t *testing.T) {
	s := &registry{full: 100}
	mix := []Share{{Name: "CreateProcess", Weight: 1}, {Name: "GetProcessCounts", Weight: 1}}
	r, err := withRegistry(t, s, Plan{Schedule: Schedule{To: 100}, Mix: mix, Conns: 1, Depth: 2, Duration: time.Second})
	if err != nil || len(s.alive) != 0 || r.Total.Done != 100 || int64(s.calls["TerminateProcess"]) != methodOf(r, "kernel.CreateProcess").Done {
		t.Errorf("%v, left over %d, %v", err, len(s.alive), s.calls)
	}
}

func TestAServerWithoutRoomForProcesses(t *testing.T) {
	s := &registry{full: 3}
	_, err := withRegistry(t, s, Plan{Schedule: Schedule{To: 100}, Conns: 8, Depth: 2, Duration: time.Second})
	if !errors.Is(err, ErrPrepare) || !strings.Contains(err.Error(), "RESOURCE_EXHAUSTED") || len(s.alive) != 0 {
		t.Errorf("%v, left over %v", err, s.alive)
	}
}

// TestProcessesCreatedAfterARefusal: requests that were sent when the first refusal comes are
// executed later, and what they create is gone after the run all the same.
func TestProcessesCreatedAfterARefusal(t *testing.T) {
	s := &registry{full: 3, stall: time.Second}
	_, err := withRegistry(t, s, Plan{Schedule: Schedule{To: 100}, Conns: 8, Depth: 2, Duration: time.Second})
	if !errors.Is(err, ErrPrepare) || s.calls["CreateProcess"] <= s.full || len(s.alive) != 0 {
		t.Errorf("%v, calls %v, left over %v", err, s.calls, s.alive)
	}
}

// TestAServerThatCreatesNothing: one that does not answer is given up after one call's time, and
// once more for cleaning up.
func TestAServerThatCreatesNothing(t *testing.T) {
	s := &registry{full: 100, mute: true}
	var took time.Duration
	s.alive, s.calls = make(map[string]bool), make(map[string]int)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := goodPlan()
		p.Conns, p.Target.Dial = 8, s.dial
		_, err := Run(t.Context(), p, nil)
		took = time.Since(began)
		if !errors.Is(err, ErrPrepare) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no reply to CreateProcess") {
			t.Error(err)
		}
	})
	if took > 2*callTime || s.calls["TerminateProcess"] == 0 {
		t.Errorf("took %s, %v", took, s.calls)
	}
}

// TestAServerThatTakesNothing: a write that hangs is ended, its requests have failed, and the run
// comes to its end.
func TestAServerThatTakesNothing(t *testing.T) {
	s := &registry{deaf: true}
	mix := []Share{{Name: "GetProcessCounts", Weight: 1}}
	r, err := withRegistry(t, s, Plan{Schedule: Schedule{To: 10}, Mix: mix, Conns: 1, Depth: 4, Duration: 4 * time.Second})
	if err != nil || r.Total.Done != 0 || r.Total.Failed != 40 || r.Total.Lost == 0 || s.dials < 3 {
		t.Errorf("%v, %d dials, %+v", err, s.dials, r.Total)
	}
}
