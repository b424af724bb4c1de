package protocols

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/fuzz/kit"
	"trunkline/fuzz/kit/fakekernel"
	"trunkline/fuzz/rounds"
)

// empty is a field without servers.
func empty(t *testing.T) *field {
	t.Helper()
	rig, err := load.NewRig(t.TempDir(), "r")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rig.Close)
	o := part.Options{Conns: 64, Many: 1000, Depth: 64, Rows: 1000, Rounds: 1, Workers: 1, Loops: 1, Window: 50 * time.Millisecond, Redis: "off"}
	return &field{Run: &part.Run{Options: o, Rig: rig, Report: new(part.Report)}, bare: map[int]*load.Server{}, replies: map[string]int{evaluated: 100}}
}

// buildOffline builds the peers if their modules are on this machine: they are no part of this
// module.
func buildOffline(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	cmd := exec.Command("go", "build", "-o", bin+"/", "./...")
	cmd.Dir, cmd.Env = "bench/peers", append(os.Environ(), "GOPROXY=off")
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "module lookup disabled") {
		t.Skip("the modules of bench/peers are not on this machine")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestWholeRun measures a little of everything with the real servers, and with one more that allows
// too few connections for the largest cells: whether it fits together, not what comes out.
func TestWholeRun(t *testing.T) {
	if !rounds.Long() {
		t.Skip("measures a little of everything, in the long form")
	}
	t.Chdir("../..")
	f := empty(t)
	f.bin = buildOffline(t)
	f.Rig.Binary = kit.Program(t, f.Rig.Dir)
	other, err := f.Trunkline("kernel.max_connections=8")
	if err != nil {
		t.Fatal(err)
	}
	f.Conns, f.Many, f.Depth, f.Rows, f.Options.Peer = 4, 12, 8, 400, other.Addr
	f.Options.Rounds, f.Warmup, f.Window = 2, 10*time.Millisecond, 40*time.Millisecond
	if err := run(f.Run, f.bin); err != nil {
		t.Fatal(err)
	}
	cells := goal.Summarize(f.Report.Samples)
	for _, name := range []string{grpcgo, nats, redcon, netconn, baregnet, trunkline, given} {
		for _, at := range f.sizes() {
			found := slices.ContainsFunc(cells, func(s goal.Summary) bool { return s.Server == name && s.Conns == at[0] && s.Depth == at[1] })
			if refused := name == given && at[0] == f.Many; found == refused {
				t.Errorf("%s %v: measured %v", name, at, found)
			}
		}
	}
	for _, s := range cells {
		if m := s.Median; m.PerSec <= 0 || m.P50 <= 0 || m.P999 < m.P50 || m.RSS <= 0 {
			t.Errorf("%s: %+v", s.Cell, m)
		}
	}
	if cells[0].Conns != 1 || cells[len(cells)-1].Method != paced {
		t.Errorf("cells from %s to %s", cells[0].Cell, cells[len(cells)-1].Cell)
	}
	if notes := strings.Join(f.Report.Notes, "\n"); !strings.Contains(notes, "Not measured: peer GetProcess, 12×8") || !strings.Contains(notes, other.Addr) {
		t.Errorf("notes %q, want the peer and its largest cells", notes)
	}
	for _, g := range f.Report.Goals {
		if g.Verdict == goal.None {
			t.Errorf("%s was not measured", g.ID)
		}
	}
	if len(f.Report.Charts) != 3 || len(f.Report.Goals) != 9 {
		t.Errorf("%d charts, %d goals", len(f.Report.Charts), len(f.Report.Goals))
	}
}

// TestPlan: every cell of the grid has its turn, once, and those that goals are about have more
// rounds.
func TestPlan(t *testing.T) {
	f := empty(t)
	for _, name := range []string{grpcgo, nats, baregnet, trunkline} {
		f.entrants = append(f.entrants, entrant{name, name, func(conns, depth int) goal.Step { return goal.One(cell(name, name, conns, depth), nil) }})
	}
	if want := "[[1 1] [1 16] [1 64] [64 1] [64 16] [64 64] [1000 1] [1000 16] [1000 64]]"; fmt.Sprint(f.sizes()) != want {
		t.Errorf("sizes %v", f.sizes())
	}
	turns := map[string]int{}
	for _, s := range f.restSteps() {
		turns[s.Name]++
	}
	rest := len(turns)
	for _, e := range f.entrants {
		for _, at := range f.sizes() {
			if f.hot(e, at[0], at[1]) {
				turns[e.step(at[0], at[1]).Name]++
			}
		}
	}
	if rest != 4*8-4 || len(turns) != 4*9 {
		t.Errorf("%d cells beside the hot ones, %d in all", rest, len(turns))
	}
	for name, n := range turns {
		if n != 1 {
			t.Errorf("%s has %d turns", name, n)
		}
	}
}

func TestSizesAreChecked(t *testing.T) {
	f := func(args ...string) {
		t.Helper()
		var complaints strings.Builder
		if status := part.Main([]part.Part{Part()}, append([]string{"peers", "-server", os.Args[0]}, args...), io.Discard, &complaints); status != 1 || !strings.Contains(complaints.String(), "cannot make a grid") {
			t.Errorf("%v: status %d, %s", args, status, complaints.String())
		}
	}
	f("-rows", "999")
	f("-conns", "1000")
	f("-conns", "1")
	f("-depth", "7")
}

func TestTapes(t *testing.T) {
	f := func(method string, tapes []*load.Tape, want int) {
		t.Helper()
		for _, tape := range tapes {
			if tape.Len() != want {
				t.Errorf("%s: a tape of %d requests, want %d", method, tape.Len(), want)
			}
		}
	}
	for _, method := range methods {
		want := 100
		if method == transitionState {
			want = 200 // each pid to RUNNING and back
		}
		f(method, load.RowTapes(method, 0, 1000, 10), want)
	}
	f(get, redisTapes(1000, 10), 100)
	f(requestReply, natsTapes(10), 64)
}

// TestProbeReplies: sizes are those of whole frames, and a quota that is over would not be the hot
// path.
func TestProbeReplies(t *testing.T) {
	srv := fakekernel.Start(t, 0, nil)
	sizes, err := probeReplies(srv.Addr)
	if err != nil || len(sizes) != len(methods) || srv.Count(transitionState) != 2 {
		t.Errorf("%v, %v, %d transitions, want one there and one back", sizes, err, srv.Count(transitionState))
	}
	for method, size := range sizes {
		if want := len(fakekernel.OK("r0000000")); size != want {
			t.Errorf("%s replies with %d bytes, want %d", method, size, want)
		}
	}
	refusing := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "NOT_FOUND", "no row") })
	if _, err := probeReplies(refusing.Addr); err == nil || !strings.Contains(err.Error(), "cannot probe GetProcess") {
		t.Errorf("a server without rows: %v", err)
	}
}

func TestEnterRefuses(t *testing.T) {
	f := empty(t)
	f.bin = t.TempDir()
	if err := f.enterGRPC(); err == nil || !strings.Contains(err.Error(), "cannot start grpc-go") || len(f.entrants) != 0 {
		t.Errorf("%v, %d entrants without a program", err, len(f.entrants))
	}
	if err := storeRows("127.0.0.1:1", 10); err == nil || !strings.Contains(err.Error(), "cannot store 10 keys") {
		t.Errorf("no server: %v", err)
	}
	if err := f.enterPeer(); err != nil || len(f.entrants) != 0 {
		t.Errorf("%v, %d entrants without -peer", err, len(f.entrants))
	}
	f.Options.Peer = "nowhere"
	if err := f.enterPeer(); err == nil || !strings.Contains(err.Error(), `cannot use the peer "nowhere"`) {
		t.Errorf("%v", err)
	}
	if err := fill("127.0.0.1:1", 3); err == nil || !strings.Contains(err.Error(), "cannot ask the peer") {
		t.Errorf("no server: %v", err)
	}
	t.Chdir(t.TempDir())
	f.bin = ""
	if err := f.build(); err == nil || !strings.Contains(err.Error(), "bench/peers") {
		t.Errorf("built out of an empty folder: %v", err)
	}
}

// TestFill: rows that are there from a run before are not made again.
func TestFill(t *testing.T) {
	f := func(there bool, want int) {
		t.Helper()
		srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
			if r.Method == evaluated && (!there || r.Str("pid") != load.PID(2)) {
				return fakekernel.Failure(r.ID, "NOT_FOUND", "no such process")
			}
			return fakekernel.OK(r.ID)
		})
		if err := fill(srv.Addr, 3); err != nil || srv.Count("CreateProcess") != want {
			t.Errorf("%v, %d processes created, want %d", err, srv.Count("CreateProcess"), want)
		}
	}
	f(true, 0)
	f(false, 3)
}

// TestGivenStep: what a given server refuses leaves no sample, is reported, and ends no run.
func TestGivenStep(t *testing.T) {
	f := empty(t)
	f.Rows = 10
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		if r.Str("pid") != load.PID(0) {
			return fakekernel.Failure(r.ID, "UNAVAILABLE", "too many")
		}
		return fakekernel.OK(r.ID)
	})
	if got, err := f.givenStep(srv.Addr, 0, 1, 2).Measure(); err != nil || len(got) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(f.Report.Notes) != 1 || !strings.Contains(f.Report.Notes[0], "peer GetProcess, 1×2: UNAVAILABLE: too many") {
		t.Errorf("notes %q", f.Report.Notes)
	}
	f.Rows = 1
	got, err := f.givenStep(srv.Addr, 0, 1, 2).Measure()
	if err != nil || len(got) != 1 || got[0].Cell != cell(given, evaluated, 1, 2) || got[0].PerSec <= 0 || got[0].CPU != 0 || len(f.Report.Notes) != 1 {
		t.Errorf("%+v, %v, notes %q", got, err, f.Report.Notes)
	}
}
