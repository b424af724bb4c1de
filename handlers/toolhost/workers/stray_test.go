package workers

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"
)

// foreign runs calls from several callers at once and returns for each, in the order of their ends,
// whether it got someone else's answer.
func (r *rig) foreign(callers, calls int) (wrong []bool, failed int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for k := range calls {
				mine := fmt.Sprintf("caller %d call %d.", c, k)
				got := r.call(20*time.Second, `{"x":"`+mine+`"}`, nil)
				mu.Lock()
				if got.Status() == tool.OK {
					wrong = append(wrong, !strings.Contains(string(got.Output), mine))
				} else {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return wrong, failed
}

// TestStrayLine: one line too many is no one's answer, and does not make every answer that of the
// call before.
func TestStrayLine(t *testing.T) {
	for _, wait := range []string{"0s", "10us", "100us", "1ms"} {
		r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 1 }, "stray", filepath.Join(t.TempDir(), "said"), wait)
		if !r.spawner.watches {
			t.Skip("this system does not tell when a worker takes its request")
		}
		wrong, failed := r.foreign(4, 25)
		for i, bad := range wrong {
			if bad {
				t.Errorf("after %s: call %d got the answer of another", wait, i)
			}
		}
		if failed > 1 {
			t.Errorf("after %s: %d calls failed for one line", wait, failed)
		}
	}
}

// TestStrayLineOfAWorkerThatReadsAhead: what it states cannot be informed from an answer, but it
// does not stay one ahead. The same holds where nothing shows when a worker takes its request.
func TestStrayLineOfAWorkerThatReadsAhead(t *testing.T) {
	for _, watches := range []bool{true, false} {
		r := newRig(t, func(c *ProcessConfig) { c.Pool.Max = 1 }, "ahead", filepath.Join(t.TempDir(), "said"))
		r.spawner.watches = r.spawner.watches && watches
		wrong, _ := r.foreign(4, 100)
		for i, bad := range wrong[len(wrong)-100:] {
			if bad {
				t.Fatalf("call %d of the last hundred got the answer of another", i)
			}
		}
	}
}

func TestRest(t *testing.T) {
	const ms = time.Millisecond
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	f := func(calls int, each, idle, used, want time.Duration) {
		t.Helper()
		w := &worker{calls: calls, busy: time.Duration(calls) * each, freeAt: at(-idle), quietAt: at(-used)}
		if got := w.rest(start); got != want {
			t.Errorf("%d calls of %v, idle for %v, used for %v: pause %v, want %v", calls, each, idle, used, got, want)
		}
	}
	f(restCalls-1, ms, 0, time.Hour, 0)
	f(restCalls, ms, 0, time.Hour, 2*ms)
	f(restCalls, ms, ms/4, time.Hour, 2*ms-ms/4)
	f(restCalls, ms, 2*ms, time.Hour, 0)
	f(restCalls, ms/100, 0, restEvery-1, 0)
	f(restCalls, ms/100, 0, restEvery, ms/50)
	f(restCalls, time.Minute, 0, 2*time.Hour, maxRest)
	f(0, 0, 0, time.Hour, 0)

	w := &worker{freeAt: start, quietAt: start}
	for i := range time.Duration(restCalls) {
		w.asked(at(10 * i * ms))
		w.free(at((10*i + 3) * ms))
		w.free(at((10*i + 9) * ms)) // given back without a call
	}
	end := at(10 * restCalls * ms)
	if pause := w.rest(end); pause != 5*ms {
		t.Errorf("pause %v", pause)
	}
	if pause := w.rest(end.Add(5 * ms)); pause != 0 {
		t.Errorf("and again %v", pause)
	}
}
