package workers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/engine/procgroup"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// noRaceSleep keeps workers from lingering a second at their end when they are built with the race
// detector.
var noRaceSleep = []string{"GORACE=atexit_sleep_ms=0"}

// rig is a tool under test with a record of its processes.
type rig struct {
	*Process
	t testing.TB

	mu      sync.Mutex
	pids    []int
	reasons []string // "reason code", in the order of the exits
}

// newRig returns a tool whose worker behaves as stated. When the test ends, nothing of it may be
// left.
func newRig(t testing.TB, set func(*ProcessConfig), behaviour ...string) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t}
	cfg := ProcessConfig{
		Command: append([]string{self, asWorker}, behaviour...),
		Dir:     t.TempDir(),
		Env:     procgroup.Environ(os.LookupEnv, noRaceSleep),
		Pool:    tool.Pool{Max: 2, Idle: time.Minute},
		Started: func(pid int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.pids = append(r.pids, pid)
		},
		Exited: func(pid, code int, reason string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reasons = append(r.reasons, fmt.Sprint(reason, " ", code))
		},
	}
	if set != nil {
		set(&cfg)
	}
	r.Process = NewProcess(cfg)
	t.Cleanup(r.finish)
	return r
}

// finish closes the tool and looks for what it left behind.
func (r *rig) finish() {
	if err := r.Close(); err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reasons) != len(r.pids) {
		r.t.Errorf("%d processes started, %d ended: %v", len(r.pids), len(r.reasons), r.reasons)
	}
	for _, pid := range r.pids {
		if left := groupOf(pid); len(left) > 0 {
			r.t.Errorf("left behind of process %d: %v", pid, left)
		}
	}
	if n := r.Workers(); n != 0 {
		r.t.Errorf("%d places taken after Close", n)
	}
}

// ended waits until n processes have ended and returns why.
func (r *rig) ended(n int) []string {
	r.t.Helper()
	for range 1000 {
		r.mu.Lock()
		if len(r.reasons) >= n {
			defer r.mu.Unlock()
			return append([]string(nil), r.reasons...)
		}
		r.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	r.t.Fatalf("%d processes did not end", n)
	return nil
}

func (r *rig) started() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pids)
}

// spoke reports that a worker wrote to stderr, which some do once they have a request.
func (r *rig) spoke() bool {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	for w := range r.pool.all {
		if w.errs.String() != "" {
			return true
		}
	}
	return false
}

// call runs the tool with a deadline.
func (r *rig) call(timeout time.Duration, input string, s *sessionstate.State) tool.Result {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if s == nil {
		s = new(sessionstate.State)
	}
	return r.Run(ctx, &tool.Call{AID: "AID.T.v1", Input: []byte(input), State: s, Now: time.Now})
}

// want runs the tool and compares the result with the text of short.
func (r *rig) want(want string) {
	r.t.Helper()
	if got := short(r.call(10*time.Second, "{}", nil)); got != want {
		r.t.Errorf("result %s, want %s", got, want)
	}
}

// short is a result as one line: status, output, error; type and detail of the dispatch error, of
// what is no reply only the stderr (TestWhyNoReply has the rest).
func short(r tool.Result) string {
	s := fmt.Sprintf("%v %s %q", r.Status(), r.Output, r.ErrorText())
	if d := r.Dispatch(); d != nil {
		detail := d.Detail
		if d.Type == tool.ParseError {
			_, detail, _ = strings.Cut(detail, "; stderr: ")
		}
		s += fmt.Sprintf(" %s %q", d.Type, detail)
		if d.Waited {
			s += " waited"
		}
	}
	return s
}

// groupOf lists the processes of a group that live, and those of ours that are not reaped.
func groupOf(pgid int) (left []string) {
	var stats []string
	for range 50 {
		left, stats = nil, nil
		stats, _ = filepath.Glob("/proc/[0-9]*/stat")
		for _, path := range stats {
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			var state string
			var ppid, group int
			rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
			if _, err := fmt.Sscan(rest, &state, &ppid, &group); err != nil || group != pgid {
				continue
			}
			if state != "Z" && state != "X" || ppid == os.Getpid() {
				left = append(left, strings.TrimSpace(string(text)))
			}
		}
		if len(left) == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // SIGKILL is on its way to the others of the group
	}
	return left
}
