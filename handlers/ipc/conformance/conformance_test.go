package conformance

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

func TestMain(m *testing.M) { kit.Leaks(m) }

// waiting is in the names of files whose conversations wait for real time.
const waiting = "-wait"

// whole sends every command's bytes in one write.
func whole(nc net.Conn, b []byte) error {
	_, err := nc.Write(b)
	return err
}

// TestConversations holds every conversation of testdata as written.
func TestConversations(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Parallel()
		runFile(t, path, whole)
	})
}

// TestConversationsKept holds them once more with servers that keep their state on the disk and
// take snapshots all the time: the answers do not depend on store.mode. Those that only wait for
// timers are left out.
func TestConversationsKept(t *testing.T) {
	t.Parallel()
	skipRewrite(t)
	if testing.Short() {
		t.Skip("waits for the disk")
	}
	some := sample(4)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, waiting) {
			t.Skip("it waits for timers of connections")
		}
		some(t)
		t.Parallel()
		s := newScript(t, whole)
		s.kept = true
		s.runFile(path)
	})
}

// notRouted are the conversations that several partitions answer otherwise, and why.
var notRouted = map[string]string{
	"3.2-order-of-checks.txt":     tablesOfPartitions,
	"4.1-create-process.txt":      tablesOfPartitions,
	"4.5-create-envelope.txt":     tablesOfPartitions,
	"4.9-clone-envelope.txt":      tablesOfPartitions,
	"4.10-initialize-session.txt": tablesOfPartitions,
	"5.3-store.txt":               tablesOfPartitions,
	"5.3-retention.txt":           tablesOfPartitions,
	"4.9-check-rate-limit.txt":    ratesOfPartitions,
	"8-bad-input.txt":             ratesOfPartitions,
	"4.3-schedule-process.txt":    queuesOfPartitions,
	"4.4-get-next-runnable.txt":   queuesOfPartitions,
	"5.2-ready-queue.txt":         queuesOfPartitions,
	"5.2-kernel.txt":              queuesOfPartitions,
	"9.12-scheduling.txt":         queuesOfPartitions,
	"3.5-replies.txt":             oneInstant,
	"4.10-list-processes.txt":     oneInstant,
	"5.3-garbage-collection.txt":  oneInstant,
}

const (
	tablesOfPartitions = "the bounds of tables hold for each partition"
	ratesOfPartitions  = "the rate windows of a user are kept by each partition"
	queuesOfPartitions = "the order of a ready queue holds within a partition"
	oneInstant         = "processes of several partitions, created in one millisecond, have no order"
)

// notOrdered are those that read events of several partitions with one command. Between busy
// processes they may come in another order.
var notOrdered = map[string]bool{
	"4.6-terminate-process.txt": true, "4.15-publish.txt": true, "4.16-send.txt": true, "4.18-subscribe.txt": true,
	"4.22-lifecycle-events.txt": true,
}

// TestConversationsRouted holds them with three partitions behind a router.
func TestConversationsRouted(t *testing.T) {
	t.Parallel()
	routed(t, sample(4), func(s *script) { s.partitions = 3 })
}

// TestConversationsOfTheProgram holds them with a cluster of three nodes and three partitions, as
// the program makes its services and routers.
func TestConversationsOfTheProgram(t *testing.T) {
	t.Parallel()
	if !rounds.Long() {
		t.Skip("builds the tests of the program's parts, in the long form")
	}
	program := buildProgram(t)
	routed(t, sample(1), func(s *script) { s.program = program })
}

// sample returns a function that skips all but one of step conversations in other than the long
// form.
func sample(step int) func(t *testing.T) {
	i := 0
	return func(t *testing.T) {
		t.Helper()
		if i++; i%rounds.Step(step, step) != 0 {
			t.Skip("one of several: make test-long holds all")
		}
	}
}

// routed holds the conversations that several partitions answer as one server does, of them those
// that some does not skip.
func routed(t *testing.T, some func(*testing.T), with func(*script)) {
	skipRewrite(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if why := notRouted[filepath.Base(path)]; why != "" {
			t.Skip(why)
		}
		if testing.Short() && strings.Contains(path, waiting) {
			t.Skip("it waits for timers")
		}
		some(t)
		t.Parallel()
		s := newScript(t, whole)
		with(s)
		s.anyOrder = notOrdered[filepath.Base(path)]
		s.runFile(path)
	})
}

func runFile(t *testing.T, path string, put func(net.Conn, []byte) error) {
	t.Helper()
	newScript(t, put).runFile(path)
}

// examples returns the files of kernel-ipc §9 whose conversations do not wait for real time, and
// two of envelope §9: the hex ones, and a session.
func examples(t *testing.T) []string {
	t.Helper()
	var all, quick []string
	for _, pattern := range []string{"testdata/9*.txt", "testdata/envelope/9.13*.txt", "testdata/envelope/9.16*.txt"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatalf("no examples %s: %v", pattern, err)
		}
		all = append(all, some...)
	}
	for _, path := range all {
		if !strings.Contains(path, waiting) {
			quick = append(quick, path)
		}
	}
	return quick
}

// gap lets the server take what was written before the rest comes. Nothing depends on it: without
// it the pieces would just meet in one read more often.
const gap = 200 * time.Microsecond

// TestExamplesCutAtEveryByte sends each write of the worked examples in two, cut at every place
// (in other than the long form at every seventh, which are others in each example).
func TestExamplesCutAtEveryByte(t *testing.T) {
	t.Parallel()
	skipRewrite(t)
	step := rounds.Step(7, 7)
	for i, path := range examples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			longest := 0
			t.Run("1", func(t *testing.T) {
				runFile(t, path, func(nc net.Conn, b []byte) error {
					longest = max(longest, len(b))
					return inTwo(nc, b, 1)
				})
			})
			for at := 2 + i%step; at < longest && !t.Failed(); at += step {
				t.Run(strconv.Itoa(at), func(t *testing.T) {
					t.Parallel()
					runFile(t, path, func(nc net.Conn, b []byte) error { return inTwo(nc, b, at) })
				})
			}
		})
	}
}

func inTwo(nc net.Conn, b []byte, at int) error {
	if at >= len(b) {
		return whole(nc, b)
	}
	if err := whole(nc, b[:at]); err != nil {
		return err
	}
	time.Sleep(gap)
	return whole(nc, b[at:])
}

// TestExamplesByteByByte sends the worked examples one byte at a time.
func TestExamplesByteByByte(t *testing.T) {
	t.Parallel()
	skipRewrite(t)
	for _, path := range examples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			runFile(t, path, func(nc net.Conn, b []byte) error {
				for i := range b {
					if err := whole(nc, b[i:i+1]); err != nil {
						return err
					}
					time.Sleep(gap / 10)
				}
				return nil
			})
		})
	}
}

// TestExamplesOverAUnixSocket: same frames, same sessions (kernel-ipc D41).
func TestExamplesOverAUnixSocket(t *testing.T) {
	t.Parallel()
	skipRewrite(t)
	for _, path := range examples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "conf") // shorter than t.TempDir: a socket's path is bounded
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			s := newScript(t, whole)
			s.listen = "unix://" + filepath.Join(dir, "s")
			s.runFile(path)
		})
	}
}

func skipRewrite(t *testing.T) {
	t.Helper()
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		t.Skip("the files are being rewritten")
	}
}
