package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/engine/link"
)

func TestFlags(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, err := parseFlags(args)
		if got := fmt.Sprint(err); !strings.Contains(got, want) || want == "" && err != nil {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	f("")
	f("", "-quick", "-parts", "worker,start")
	f("", "-peer", "pipes", "-reply", "112")
	f("cannot run", "-rounds", "0")
	f("cannot run", "-window", "0s")
	f("cannot run", "-reply", "-1")
	f("cannot run", "more")
	f("", "-depth", "256")
	f("cannot have", "-depth", "257")
	f("", "-conns", "1024")
	f("cannot have", "-conns", "1025")
	f(`cannot measure part "x"`, "-parts", "tcp,x")
	f(`cannot be peer "no"`, "-peer", "no")
}

// TestRequests: what is sent again and again has one length, and what has to differ does.
func TestRequests(t *testing.T) {
	for _, kind := range append(hot(), kept, perCall) {
		lines := requests(kind)
		seen := map[string]bool{}
		for _, l := range lines {
			if len(l) != len(lines[0]) || strings.Count(l, "\n") != 1 || !strings.HasSuffix(l, "\n") || seen[l] {
				t.Errorf("%s: %q", kind, lines)
			}
			seen[l] = true
		}
		if err := checkReply(kind, `{"ok":false,"error":"overloaded"}`); err == nil {
			t.Errorf("%s: an error was taken", kind)
		}
		if got := tapes(kind, 3); len(got) != 3 || got[2].Len() != len(lines) {
			t.Errorf("%s: %d tapes", kind, len(got))
		}
	}
	if err := checkReply(hit, `{"ok":true,"status":"OK","output_json":"{}"}`); err == nil {
		t.Error("an execution was taken for a hit")
	}
}

// answering serves lines in this process.
func answering(t *testing.T, reply func(n int, line string) string) io.ReadWriter {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close() })
	go func() {
		defer theirs.Close()
		in := bufio.NewReader(theirs)
		for n := 0; ; n++ {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := io.WriteString(theirs, reply(n, line)); err != nil {
				return
			}
		}
	}()
	return ours
}

func TestPrime(t *testing.T) {
	const good = `{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"delta":true,"slots":{},"removed_slots":[]}}` + "\n"
	kept := strings.Replace(good, `"ds_state"`, `"idempotent_hit":true,"ds_state"`, 1)
	f := func(kind string, size int, problem string, reply func(n int, line string) string) {
		t.Helper()
		got, err := prime(answering(t, reply), kind)
		if got != size || (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %d, %v; want %d, %q", kind, got, err, size, problem)
		}
	}
	f(noop, len(good), "", func(int, string) string { return good })
	f(hit, len(kept), "", func(n int, _ string) string {
		if n < variety {
			return good
		}
		return kept
	})
	f(hit, 0, "idempotent_hit", func(int, string) string { return good })
	f(noop, 0, "is not in the reply", func(int, string) string { return "{}\n" })
	f(hit, 0, "replies have", func(n int, _ string) string { return strings.Replace(kept, "{}", strings.Repeat(" ", n), 1) })
}

func TestPipeLoad(t *testing.T) {
	f := func(problem string, reply func(n int, line string) string) {
		t.Helper()
		l := newPipeLoad(buffered(answering(t, reply)), slot, len("reply\n"), 8)
		ended := make(chan error, 1)
		go func() { ended <- l.run() }()
		for l.replies.Load() < 100 && len(ended) == 0 {
			time.Sleep(time.Millisecond)
		}
		l.stop.Store(true)
		if err := <-ended; (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
	turn := requests(slot)
	f("", func(n int, line string) string {
		if line != turn[n%len(turn)] {
			return "out of turn\n"
		}
		return "reply\n"
	})
	f("cannot take", func(n int, _ string) string {
		if n == 50 {
			return "an error\n"
		}
		return "reply\n"
	})
}

// buffered takes writes at once, as a pipe of the system does.
func buffered(rw io.ReadWriter) io.ReadWriter {
	lines := make(chan []byte, 64)
	go func() {
		for b := range lines {
			_, _ = rw.Write(b)
		}
	}()
	return struct {
		io.Reader
		io.Writer
	}{rw, writerFunc(func(b []byte) (int, error) {
		lines <- append([]byte(nil), b...)
		return len(b), nil
	})}
}

type writerFunc func(b []byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestEchoSession feeds a stream of lines in every possible pair of pieces.
func TestEchoSession(t *testing.T) {
	f := func(reply int, in, want string, end link.Verdict) {
		t.Helper()
		for cut := range len(in) + 1 {
			s := &echoSession{reply: constantReply(reply)}
			used, out, v := s.Feed([]byte(in[:cut]), nil, link.Instant{})
			if v == link.More {
				_, out, v = s.Feed([]byte(in[used:]), out, link.Instant{})
			}
			if string(out) != want || v != end {
				t.Errorf("%q cut at %d: %q, verdict %d; want %q, %d", in, cut, out, v, want, end)
			}
		}
	}
	f(0, "", "", link.More)
	f(0, "ab\ncd\ne", "ab\ncd\n", link.More)
	f(4, "ab\ncd\ne", "xxx\nxxx\n", link.More)
	f(0, "ab\n\ncd\n", "ab\n", link.Close)
	s := &echoSession{reply: constantReply(link.DefaultUnsentBytes)}
	if used, _, v := s.Feed([]byte("a\nb\nc\n"), nil, link.Instant{}); used != 4 || v != link.Yield {
		t.Errorf("used %d, verdict %d", used, v)
	}
	if s.Load().Done {
		t.Error("done before the end")
	}
	if s.EOF(link.Instant{}); !s.Load().Done {
		t.Error("not done at the end")
	}
}

func TestReadScan(t *testing.T) {
	const out = `goos: linux
BenchmarkFind/plain300/trunkline-2         	  324255	       188.5 ns/op	1591.49 MB/s	       184.1 cpu-ns/op	       0 B/op	       0 allocs/op
BenchmarkFind/plain300/sonic-valid-searcher         	  132286	       463.2 ns/op	 647.60 MB/s	       460.6 cpu-ns/op	       0 B/op
BenchmarkFind/echo52/sonic-searcher-16 	  10	       1 ns/op	 1 MB/s	       2 cpu-ns/op
PASS
`
	got, err := readScan([]byte(out))
	if err != nil || len(got) != 3 {
		t.Fatal(got, err)
	}
	want := []goal.Sample{
		{Cell: scanCell(trunkline, "plain300"), Requests: 324255, CPU: 184.1, PerSec: 1e9 / 184.1},
		{Cell: scanCell("sonic-valid-searcher", "plain300"), Requests: 132286, CPU: 460.6, PerSec: 1e9 / 460.6},
		{Cell: scanCell(unchecked, "echo52"), Requests: 10, CPU: 2, PerSec: 5e8},
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if _, err := readScan([]byte("PASS\n")); err == nil {
		t.Error("a report without rows was taken")
	}
}

func TestRunOnceRefuses(t *testing.T) {
	input := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(input, []byte(`{"ok":true,"status":"OK","x":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := func(problem string, args ...string) {
		t.Helper()
		_, _, err := runOnce(exec.Command(args[0], args[1:]...), input)
		if (err != nil) != (problem != "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%v: %v, want %q", args, err, problem)
		}
	}
	f("", "cat")
	f("cannot take the reply", "echo", "no")
	f("cannot run", "false")
}

// TestWholeRun measures a little of everything with the real server: whether it fits together, not
// what comes out.
func TestWholeRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	parts := []string{partTCP, partPipes, partWorker, partStart}
	o, err := parseFlags([]string{"-rounds", "1", "-conns", "4", "-depth", "8", "-warmup", "10ms", "-window", "50ms", "-runs", "2", "-parts", strings.Join(parts, ",")})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	b, err := newBench(o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// The test's own binary is no peer: this program is.
	if b.peer, err = buildSelf(b.Dir); err != nil {
		t.Fatal(err)
	}
	if err := b.startEcho(); err != nil {
		t.Fatal(err)
	}
	all, err := goal.Rounds(o.rounds, b.steps(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range goals(all) {
		if scan := strings.HasPrefix(g.What, "field scan"); scan != (g.Verdict == goal.None) {
			t.Error(line(&g))
		}
	}
}

func buildSelf(dir string) (string, error) {
	path := filepath.Join(dir, "bench")
	out, err := exec.Command("go", "build", "-o", path, "./bench/toolhost").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}
