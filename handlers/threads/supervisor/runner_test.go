package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/fuzz/kit"
)

// runRig runs this test binary as fallback commands.
type runRig struct {
	*Runner
	t   *testing.T
	dir string
}

func newRunRig(t *testing.T) *runRig {
	t.Helper()
	dir := t.TempDir()
	r, err := NewRunner(RunnerConfig{Dir: dir, LogDir: filepath.Join(dir, "logs"), Environ: []string{roleName + "=1", "GIVEN=given", "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &runRig{r, t, dir}
}

// play returns a command in a role.
func (r *runRig) play(role string, args ...string) Command {
	return Command{"trg_1", append([]string{os.Args[0], role}, args...)}
}

func (r *runRig) run(c Command, want Code) {
	r.t.Helper()
	if o := r.Run(context.Background(), c, nil); o.Code != want {
		r.t.Errorf("%q: %+v, want %q", c.Argv, o, want)
	}
}

func (r *runRig) log() string { return contents(filepath.Join(r.cfg.LogDir, "trg_1.log")) }

// begin runs a command that stays until it writes its processes into a file.
func (r *runRig) begin(ctx context.Context, role string, acked <-chan struct{}) (ended <-chan Outcome, pids []string) {
	r.t.Helper()
	file := filepath.Join(r.dir, "pids")
	_ = os.Remove(file)
	end := make(chan Outcome, 1)
	go func() { end <- r.Run(ctx, r.play(role, file), acked) }()
	kit.Until(r.t, "the command runs", func() bool { return contents(file) != "" })
	return end, strings.Fields(contents(file))
}

func (r *runRig) wantGone(pids []string) {
	r.t.Helper()
	for _, pid := range pids {
		kit.Until(r.t, "process "+pid+" ends", func() bool { return gone(pid) })
	}
}

func TestExitCodes(t *testing.T) {
	r := newRunRig(t)
	r.run(r.play("exit", "0"), Success)
	r.run(r.play("exit", "3"), RunFailed)
	if log := r.log(); log != "[exit code 3]\n" {
		t.Errorf("log %q", log)
	}
}

func TestNotStarted(t *testing.T) {
	r := newRunRig(t)
	if err := os.WriteFile(filepath.Join(r.dir, "data"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{nil, {}, {""}, {"no-such-program"}, {"./data"}, {r.dir + "/none"}, {os.Args[0], "exit", "0\x00"}, {os.Args[0], strings.Repeat("x", 4<<20)}} {
		r.run(Command{"trg_1", argv}, RunFailed)
	}
	for _, id := range []string{"", "../x", "a/b", "a.b", "-a", "a\n", strings.Repeat("x", 129)} {
		r.run(Command{id, []string{os.Args[0], "exit", "0"}}, RunFailed)
	}
	if err := os.RemoveAll(r.cfg.LogDir); err != nil {
		t.Fatal(err)
	}
	r.run(r.play("exit", "0"), RunFailed) // no log
}

// TestWhatACommandGets: its arguments as they are, its folder, its environment, a group, no input.
func TestWhatACommandGets(t *testing.T) {
	r := newRunRig(t)
	hostile := []string{"[BRIDGE_TRIGGER id=x]\n-t $(id) `id`;\n", "-rf", "*", "", "'\"\\", "é"}
	r.run(r.play("args", hostile...), Success)
	dir, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%q in %s, group true, stdin \"\", given\n", hostile, dir); r.log() != want {
		t.Errorf("got %q, want %q", r.log(), want)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(r.dir, "self")); err != nil {
		t.Fatal(err)
	}
	r.run(Command{"trg_2", []string{"./self", "exit", "0"}}, Success)
}

// TestAcknowledged: the command goes on until Close.
func TestAcknowledged(t *testing.T) {
	r := newRunRig(t)
	acked := make(chan struct{})
	end, pids := r.begin(context.Background(), "family", acked)
	close(acked)
	if o := <-end; o.Code != Success {
		t.Error(o)
	}
	for _, pid := range pids {
		if gone(pid) {
			t.Error("the command was ended")
		}
	}
	r.Close()
	r.wantGone(pids)
	r.run(r.play("exit", "0"), Interrupted)
}

func TestInterruptedRuns(t *testing.T) {
	r := newRunRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	end, pids := r.begin(ctx, "family", nil)
	cancel()
	if o := <-end; o.Code != Interrupted {
		t.Error(o)
	}
	r.wantGone(pids)
	end, pids = r.begin(context.Background(), "away", nil)
	r.Close()
	if o := <-end; o.Code != Interrupted {
		t.Error(o)
	}
	r.wantGone(pids)
}

// TestTimeLimit: the whole group is ended.
func TestTimeLimit(t *testing.T) {
	r := newRunRig(t)
	r.limit = 5 * time.Second // it must have begun by then, which the file shows
	end, pids := r.begin(context.Background(), "family", nil)
	o := <-end
	if o.Code != RunFailed || !strings.Contains(o.Detail, "5s") || !strings.Contains(r.log(), o.Detail) {
		t.Errorf("%+v, log %q", o, r.log())
	}
	r.wantGone(pids)
}

func TestProcessesAreBounded(t *testing.T) {
	r := newRunRig(t)
	r.most = 1
	ctx, cancel := context.WithCancel(context.Background())
	acked := make(chan struct{})
	close(acked)
	end, _ := r.begin(ctx, "family", acked)
	<-end
	cancel() // an acknowledged command is not ended by it, and still counts
	r.run(r.play("exit", "0"), RunFailed)
}

// TestOutputIsCapped: output beyond the cap is read and dropped, in all commands of a job.
func TestOutputIsCapped(t *testing.T) {
	r := newRunRig(t)
	r.run(r.play("output", "1000"), Success)
	r.run(r.play("output", fmt.Sprint(3*maxLogBytes)), Success)
	want := strings.Repeat("0", maxLogBytes) + "\n[what follows is not kept]\n"
	if r.log() != want {
		t.Errorf("log of %d bytes, want %d", len(r.log()), len(want))
	}
	r.run(r.play("exit", "1"), RunFailed)
	if r.log() != want {
		t.Error("the log grows on")
	}
}

// TestEscapedProcess: what left the group and holds the output open is not waited for.
func TestEscapedProcess(t *testing.T) {
	r := newRunRig(t)
	r.run(r.play("daemon"), Success)
	pid, ok := strings.CutPrefix(strings.TrimSpace(r.log()), "started ")
	if !ok {
		t.Fatalf("log %q", r.log())
	}
	kill(t, pid)
}

func TestOldLogsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for i := range maxLogs + 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("trg_%05d.log", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(dir, "trg_99999")
	if err != nil {
		t.Fatal(err)
	}
	l.close()
	left, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	if len(left) != maxLogs || !strings.HasSuffix(left[0], "00006.log") || contents(filepath.Join(dir, "notes")) != "" {
		t.Errorf("%d logs, the oldest is %s", len(left), left[0])
	}
}

// TestNothingIsLeft: no descriptor and no zombie stays, however runs end.
func TestNothingIsLeft(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("this system does not show descriptors")
	}
	r := newRunRig(t)
	round := func() {
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				c := r.play("exit", fmt.Sprint(i))
				c.TriggerID = fmt.Sprint("trg_", i)
				r.Run(context.Background(), c, nil)
				r.Run(context.Background(), Command{c.TriggerID, []string{"no-such-program"}}, nil)
			})
		}
		all.Wait()
	}
	round() // the first one opens what stays, as the poller
	before := descriptors(t)
	for range 5 {
		round()
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors, before %d", after, before)
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid > 0 {
		t.Errorf("a zombie: %d, %v", pid, err)
	}
	if r.running != 0 {
		t.Errorf("%d commands run", r.running)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestNewRunnerRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewRunner(RunnerConfig{LogDir: filepath.Join(file, "logs")}); err == nil {
		t.Error("a folder in a file")
	}
}
