package load

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// TestCalls: each caller makes its calls one after the other, and the sample has what the window
// saw of them.
func TestCalls(t *testing.T) {
	var mu sync.Mutex
	next := map[int]int{}
	calls := StartCalls(3, func(caller, nth int) error {
		time.Sleep(time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if next[caller] != nth {
			t.Errorf("call %d of caller %d, want %d", nth, caller, next[caller])
		}
		next[caller]++
		return nil
	})
	s, err := MeasureRunning(calls, []int{os.Getpid()}, 10*time.Millisecond, 100*time.Millisecond)
	if err != nil || s.Requests == 0 || s.P50 < 1000 || s.RSS == 0 || len(next) != 3 {
		t.Errorf("%+v of %d callers, %v", s, len(next), err)
	}
	broken := errors.New("broken")
	calls = StartCalls(2, func(caller, nth int) error {
		if caller == 1 && nth == 1 {
			return broken
		}
		return nil
	})
	if _, err := MeasureRunning(calls, []int{os.Getpid()}, time.Millisecond, time.Millisecond); !errors.Is(err, broken) {
		t.Errorf("the error of a call is %v", err)
	}
}
