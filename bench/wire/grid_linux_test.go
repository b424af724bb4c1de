package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

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
	if testing.Short() {
		t.Skip("builds and starts servers")
	}
	t.Chdir("../..")
	bin := buildOffline(t)
	rig, err := load.ServerRig("wire-test-", "")
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close()
	other, err := rig.Trunkline("kernel.max_connections=8")
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseFlags([]string{"-server", rig.Binary, "-peers-bin", bin, "-redis", "off", "-peer", other.Addr, "-rounds", "2", "-grid-rounds", "1",
		"-rows", "400", "-conns", "4", "-many", "12", "-depth", "8", "-warmup", "10ms", "-window", "40ms"})
	if err != nil {
		t.Fatal(err)
	}
	if err := load.RaiseFileLimit(o.openFiles()); err != nil {
		t.Skip(err)
	}
	f, err := startField(o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.measure()
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, f, reportOf(all, f.missing, o))
}

// wantWhole looks for every cell of the grid, and for every goal.
func wantWhole(t *testing.T, f *field, r report) {
	t.Helper()
	for _, e := range f.entrants {
		for _, at := range f.o.sizes() {
			c := cell(e.name, e.method, at[0], at[1])
			found := slices.ContainsFunc(r.Cells, func(s goal.Summary) bool { return s.Cell == c })
			if refused := e.name == given && at[0] == f.o.many; found == refused {
				t.Errorf("%s: measured %v", c, found)
			}
		}
	}
	for _, s := range r.Cells {
		if m := s.Median; m.PerSec <= 0 || m.P50 <= 0 || m.P999 < m.P50 || m.RSS <= 0 {
			t.Errorf("%s: %+v", s.Cell, m)
		}
	}
	if len(r.Missing) < 3 || !strings.Contains(r.Missing[0], "cannot measure peer GetProcess, 12×") {
		t.Errorf("missing %q, want the peer's largest cells", r.Missing)
	}
	for _, g := range r.Goals {
		if g.Verdict == goal.None {
			t.Errorf("%s was not measured", g.ID)
		}
	}
	if len(r.Charts) != 3 {
		t.Errorf("%d charts", len(r.Charts))
	}
}

// TestPlan: every cell of the grid has its turn, once, and those that goals are about have more
// rounds.
func TestPlan(t *testing.T) {
	f := &field{o: options{conns: 64, many: 1000, depth: 64, rows: 1000}}
	for _, name := range []string{grpcgo, nats, baregnet, trunkline} {
		f.add(name, name, func(conns, depth int) goal.Step { return goal.One(cell(name, name, conns, depth), nil) })
	}
	turns := map[string]int{}
	for _, s := range f.restSteps() {
		turns[s.Name]++
	}
	rest := len(turns)
	for _, e := range f.entrants {
		for _, at := range f.o.sizes() {
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
