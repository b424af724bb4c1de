package conformance

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"trunkline/fuzz/rounds"
)

// follower is a connection that reads the events of a project.
type follower struct {
	net.Conn
	in *bufio.Reader
}

// follow subscribes over a connection of its own and waits for the ack.
func (c *client) follow() *follower {
	c.t.Helper()
	raw, err := net.Dial("unix", filepath.Join(c.home, "s"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = raw.Close() })
	f := &follower{raw, bufio.NewReaderSize(raw, 64<<10)}
	if _, err = fmt.Fprintln(raw, c.subscription(`"`+c.project+`"`)); err != nil {
		c.t.Fatal(err)
	}
	if line, err := f.in.ReadString('\n'); err != nil || !strings.Contains(line, `"ok":true`) {
		c.t.Fatalf("got %s, %v", line, err)
	}
	return f
}

// read reads until it has n Progress events, and returns a fingerprint of all lines.
func (f *follower) read(n int) (string, error) {
	h := fnv.New128a()
	next := 0
	for n > 0 {
		line, err := f.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		_, rest, _ := strings.Cut(line, `"stream_seq":`)
		number, _, _ := strings.Cut(rest, ",")
		seq, err := strconv.Atoi(number)
		if err != nil || next != 0 && seq != next {
			return "", fmt.Errorf("behind %d: %s", next-1, line)
		}
		next = seq + 1
		if strings.Contains(line, `"event":"Progress"`) {
			n--
		}
		_, _ = h.Write([]byte(line))
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// TestSubscribers10 has many subscribers of one project: all get the same events in the same order
// without a gap, and one that never reads delays none (exacta §2.5, §10).
func TestSubscribers10(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	readers, events := rounds.Pick(25, 1000), rounds.Pick(300, 10_000)
	s := &server{t: t, via: unix, home: realTemp(t), flags: append(append([]string(nil), fixed...), "--set", "exacta.max_connections=2000")}
	if err := os.Mkdir(filepath.Join(s.home, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/true", filepath.Join(s.home, "bin", "make")); err != nil {
		t.Fatal(err)
	}
	s.env = []string{"PATH=" + filepath.Join(s.home, "bin")}
	s.write("Makefile", "")
	s.start()
	c := s.connect()
	c.opens("")
	_ = c.follow() // it never reads
	all := make([]*follower, readers)
	for i := range all {
		all[i] = c.follow()
	}
	sums, errs := make([]string, readers), make([]error, readers)
	var done sync.WaitGroup
	for i, f := range all {
		done.Go(func() { sums[i], errs[i] = f.read(events) })
	}
	for range events / 2 {
		c.ask("Build", "").want("build 0/1; build 1/1", `{"exit_code":0,"duration_ms":0,"warnings":0,"errors":0}`)
		if t.Failed() {
			t.FailNow()
		}
	}
	done.Wait()
	for i := range sums {
		if errs[i] != nil || sums[i] != sums[0] {
			t.Errorf("reader %d: %s, %v; the first one %s", i, sums[i], errs[i], sums[0])
		}
	}
}

// TestOverrun2_5 has a subscriber that does not read, until the journal has lost its place: its
// connection is closed, and no event is left out before that.
func TestOverrun2_5(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	c := openWith(t, unix, []string{"--set", "exacta.journal_events=100"}, "a.txt", strings.Repeat("a"+strings.Repeat("x", 198)+"\n", 240))
	slow := c.follow()
	intent := c.intent(`replace "a" with "b" in a.txt`)
	for range 6 << 20 / 96_000 { // the diffs are more than its buffers hold
		c.planOf(intent)
	}
	last := c.streams[c.project]
	seen := 0
	for {
		line, err := slow.in.ReadString('\n')
		if err != nil {
			break
		}
		_, rest, _ := strings.Cut(line, `"stream_seq":`)
		number, _, _ := strings.Cut(rest, ",")
		if seq := atoi(t, number); seen != 0 && seq != seen+1 {
			t.Fatalf("behind %d: %.200s", seen, line)
		} else {
			seen = seq
		}
	}
	if seen == 0 || seen >= last {
		t.Errorf("it got %d of %d events", seen, last)
	}
	two := c.server.connect()
	two.project, two.joined = c.project, true
	two.subscribe(`,"after_stream_seq":` + strconv.Itoa(seen)).is("IPC-007 ")
}

// TestManyBadLines10 sends bad lines with a good one every 20: the memory of the server does not
// grow (exacta §10).
func TestManyBadLines10(t *testing.T) {
	overLinesOnly(t, func(t *testing.T, via *carrier) {
		c := open(t, via)
		times := rounds.Pick(100, 5000)
		batch := strings.Repeat("{nope\n[]\n{\"ipc_version\":\"1.0\",\"payload\":{\"a\":\"\\ud800\"}}\n{\"a\":1,\"a\":2}\n", 5)
		batch = batch[:strings.LastIndexByte(batch[:len(batch)-1], '\n')+1] // 19 lines
		var before int
		for i := range times {
			if i == times/5 {
				before = c.memory()
			}
			id := c.id()
			c.bytes(batch + c.line(id, "Pause", `{"execution_id":7}`) + "\n")
			for range 19 {
				c.response().is("IPC-001 ")
			}
			if r := c.response().is("IPC-009 execution_id:"); r.end.Request == nil || *r.end.Request != id {
				t.Fatalf("got %s", r.end.line)
			}
		}
		if grown := c.memory() - before; grown > 32<<10 {
			t.Errorf("the memory grew by %d KiB", grown)
		}
	})
}

// memory returns the resident memory of the server in KiB, 0 where the system does not show it.
func (c *client) memory() int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.server.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	line, _, _ := strings.Cut(rest, "kB")
	return atoi(c.t, line)
}
