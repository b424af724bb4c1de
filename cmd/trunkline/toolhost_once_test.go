package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/fuzz/kit"
	"trunkline/fuzz/rounds"
)

// onceServer is a server that is killed and started again on the same directory and socket.
type onceServer struct {
	t            *testing.T
	dir, program string
	mode         string
	plugins      string // builtin if empty
	cmd          *exec.Cmd
}

func (s *onceServer) start() {
	s.t.Helper()
	s.cmd = exec.Command(s.program, "serve", "--listen", "127.0.0.1:0", "--admin-listen=", "--http-listen=", "--log-level", "error",
		"--set", "store.mode="+s.mode, "--set", "store.dir="+filepath.Join(s.dir, "data"), "--set", "store.snapshot_bytes=8192",
		"--set", "toolhost.root="+s.dir, "--set", "toolhost.plugins="+cmp.Or(s.plugins, "builtin"), "--toolhost-listen", "unix://"+s.socket())
	s.cmd.Args[0] = "trunkline" // see TestMain
	var talk bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &talk, &talk
	if err := kit.Start(s.cmd); err != nil {
		s.t.Fatal(err)
	}
}

func (s *onceServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *onceServer) socket() string { return filepath.Join(s.dir, "s") }

// replies are what callers got under each key, hits and first answers alike.
type replies struct {
	mu      sync.Mutex
	replies map[string]map[string]int
}

func (o *replies) note(key, reply string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.replies[key] == nil {
		o.replies[key] = make(map[string]int)
	}
	o.replies[key][reply]++
}

// TestNoKeyRunsTwice: many callers repeat the same keys with a tool that leaves a trace of every
// run, while the server is killed again and again. No key runs twice, and all callers get the same
// reply (toolhost §4.3, durability §6.4).
func TestNoKeyRunsTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("kills servers for some seconds")
	}
	for _, mode := range []string{"always", "interval"} {
		t.Run(mode, func(t *testing.T) { neverTwice(t, mode) })
	}
}

func neverTwice(t *testing.T, mode string) {
	const callers, keys = 64, 1000 // no more keys than the table holds: none is forgotten
	s := &onceServer{t: t, dir: t.TempDir(), program: os.Args[0], mode: mode}
	s.start()
	defer func() { s.kill() }()
	o := &replies{replies: make(map[string]map[string]int)}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for n := range callers {
		wg.Go(func() { callAgain(s.socket(), rand.New(rand.NewPCG(uint64(n), 1)), keys, 0, o, stop) })
	}
	for range rounds.Pick(1, 6) { // each kill takes keys, and the table holds only so many
		time.Sleep(300*time.Millisecond + rand.N(400*time.Millisecond))
		s.kill()
		s.start()
	}
	time.Sleep(time.Second)
	close(stop)
	wg.Wait()
	runs := make(map[string]int)
	countRuns(t, filepath.Join(s.dir, "work", "memory", "once.jsonl"), runs)
	o.check(t, runs, 1000, 200)
}

// countRuns adds up how often the tool of callAgain has run for each key, by what it has left in a
// file.
func countRuns(t *testing.T, file string, runs map[string]int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // none has run
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var v struct{ Text string }
		if json.Unmarshal([]byte(line), &v) == nil {
			runs[v.Text]++
		}
	}
}

// callAgain asks for random keys on one connection after the other until it has to stop.
// New keys come all the time, so that some are always being run. pause is between two calls.
func callAgain(socket string, rng *rand.Rand, keys int, pause time.Duration, o *replies, stop chan struct{}) {
	begun := time.Now()
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			in := bufio.NewReader(conn)
			for err == nil {
				select {
				case <-stop:
					conn.Close()
					return
				default:
				}
				key := fmt.Sprintf("k%d", rng.IntN(min(keys, 10+int(time.Since(begun)/(4*time.Millisecond)))))
				var line string
				_, err = fmt.Fprintf(conn, `{"aid":"AID.MEMORY.APPEND.v1","inputs":{"stream":"once","text":%q},"idempotency_key":%q}`+"\n", key, key)
				if err == nil {
					if line, err = in.ReadString('\n'); err == nil && strings.Contains(line, `"status"`) {
						o.note(key, strings.Replace(line, `,"idempotent_hit":true`, "", 1))
					}
				}
				time.Sleep(pause)
			}
			conn.Close()
		}
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// check compares the replies with what has run, and wants at least some answers and keys.
func (o *replies) check(t *testing.T, runs map[string]int, answers, keys int) {
	t.Helper()
	answered, unknown := 0, 0
	for key, n := range runs {
		if n > 1 {
			t.Errorf("%s ran %d times", key, n)
		}
	}
	for key, replies := range o.replies {
		if len(replies) != 1 {
			t.Errorf("%s was answered %v", key, replies)
		}
		for reply, n := range replies {
			answered += n
			switch {
			case strings.Contains(reply, "outcome unknown"):
				unknown++
			case strings.Contains(reply, `"status":"OK"`) && runs[key] != 1:
				t.Errorf("%s was answered %s, and ran %d times", key, reply, runs[key])
			}
		}
	}
	if answered < answers || len(o.replies) < keys {
		t.Errorf("only %d answers for %d keys: this proves little", answered, len(o.replies))
	}
	t.Logf("%d keys, %d answers, %d outcomes unknown", len(o.replies), answered, unknown)
}

// TestAChangedManifestDoesNotRepeatACall: what counts for a call that a kill cut off is what its
// tool was when it began. A manifest that calls the tool harmless afterwards does not run it again,
// and one that no longer does keeps the answer of what may be run again.
func TestAChangedManifestDoesNotRepeatACall(t *testing.T) {
	f := func(before, after, want string, runs int) {
		t.Helper()
		dir := t.TempDir()
		s := &onceServer{t: t, dir: dir, program: os.Args[0], mode: "always", plugins: filepath.Join(dir, "pack.json")}
		trace := filepath.Join(dir, "trace")
		traces := func() int {
			text, err := os.ReadFile(trace)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			return bytes.Count(text, []byte("\n"))
		}
		manifest := func(effects string) {
			// Only the first run waits to be killed.
			const script = `cat > /dev/null; echo run >> "$TRACE"; [ "$(wc -l < "$TRACE")" -gt 1 ] || exec sleep 60; echo "{\"status\":\"OK\",\"output_json\":\"{}\"}"`
			text := fmt.Sprintf(`{"toolpack_id":"toolpack.cut","toolpack_version":"1.0.0","trust_tier":"tier2_untrusted","tools":[
				{"aid":"AID.CUT.OFF.v1","name":"cut_off","deterministic":%t,"tags":["tag.cut"],"side_effects":[%q],
				 "estimate_model":{"mode":"ConservativeBound"},"inputs_schema":{"type":"object"},"outputs_schema":{"type":"object"},
				 "exec":{"kind":"process","command":["sh","-c",%q],"env":{"TRACE":%q},"timeout_ms":60000}}]}`, effects == "none", effects, script, trace)
			if err := os.WriteFile(s.plugins, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		call := func() *bufio.Reader {
			for deadline := time.Now().Add(waitFor); ; time.Sleep(10 * time.Millisecond) {
				conn, err := net.Dial("unix", s.socket())
				if err == nil {
					t.Cleanup(func() { conn.Close() })
					_, err = fmt.Fprintln(conn, `{"aid":"AID.CUT.OFF.v1","inputs":{},"idempotency_key":"k"}`)
				}
				if err == nil {
					return bufio.NewReader(conn)
				}
				if time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
		}
		manifest(before)
		s.start()
		call()
		for deadline := time.Now().Add(waitFor); traces() == 0; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				s.kill()
				t.Fatal("the tool does not run")
			}
		}
		s.kill()
		manifest(after)
		s.start()
		defer s.kill()
		if reply, err := call().ReadString('\n'); err != nil || !strings.Contains(reply, want) || traces() != runs {
			t.Errorf("%s, then %s: %v, %d runs, %s", before, after, err, traces(), reply)
		}
	}
	f("process_exec", "none", "outcome unknown", 1)
	f("none", "process_exec", `"status":"OK"`, 2)
	f("none", "none", `"status":"OK"`, 2)
}
