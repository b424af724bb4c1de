package placement

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/engine/cluster/owner"
	"trunkline/engine/cluster/placement"
	"trunkline/fuzz/rounds"
)

var rewrite = flag.Bool("rewrite", false, "write the tables into "+page)

// page is the page that shows the tables, between the two marks of shown.
const page = "../../docs/scale.md"

var shown = regexp.MustCompile(`(?s)(<!-- simulation -->\n).*(<!-- /simulation -->)`)

// TestPage compares the tables of the page with those of the whole simulation, which are the same
// in every run.
func TestPage(t *testing.T) {
	if !rounds.Long() && !*rewrite {
		t.Skip("the whole simulation takes some ten seconds of a processor")
	}
	s, err := simulate(1000 * perNode)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.faults {
		t.Error(f)
	}
	var b strings.Builder
	for _, g := range s.tables {
		b.WriteString(markdown(g))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := shown.ReplaceAll(text, []byte("${1}"+b.String()+"${2}"))
	switch {
	case !shown.Match(text):
		t.Errorf("%s has no part <!-- simulation -->", page)
	case *rewrite:
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	case string(want) != string(text):
		t.Errorf("%s has other tables: run go test ./bench/placement -run TestPage -rewrite", page)
	}
}

func markdown(g goal.Grid) string {
	var b strings.Builder
	b.WriteString(g.Title + ":\n\n| " + strings.Join(g.Head, " | ") + " |\n|---" + strings.Repeat("|---:", len(g.Head)-1) + "|\n")
	for _, row := range g.Rows {
		for _, cell := range row {
			b.WriteString("| " + goal.Text(cell) + " ")
		}
		b.WriteString("|\n")
	}
	return b.String() + "\n"
}

// TestSmallCluster holds a smaller simulation to what has to be true of any.
func TestSmallCluster(t *testing.T) {
	s, err := simulate(30 * perNode)
	if err != nil || len(s.faults) > 0 || len(s.tables) != 3 {
		t.Fatal(err, s)
	}
	column := func(table int, name string) (cells []any) {
		k := slices.Index(s.tables[table].Head, name)
		for _, row := range s.tables[table].Rows {
			cells = append(cells, row[k])
		}
		return cells
	}
	for i, even := range column(0, "most / mean") {
		if limit := 1.05; i > 0 && even.(float64) > limit {
			t.Errorf("row %d: %.3f times the mean", i, even)
		}
	}
	least := column(1, "least possible")
	for i, built := range column(1, "copies built") {
		if n := least[i].(int); float64(built.(int)) > 1.1*float64(n)+10 {
			t.Errorf("row %d: %d copies for %d", i, built, n)
		}
	}
	logs, last := column(2, "log"), column(2, "last s")
	for i, log := range logs {
		if most := lease + lease/2; log == elections[0].what && last[i].(float64) > most.Seconds() {
			t.Errorf("row %d: the last partition is served after %v s", i, last[i])
		}
	}
}

func TestSizes(t *testing.T) {
	if _, err := simulate(0); err == nil {
		t.Error("no partition is placed")
	}
	if s, err := simulate(1); err != nil || len(s.nodes) != zones {
		t.Errorf("one partition: %v", err)
	}
}

func TestEvenness(t *testing.T) {
	f := func(l load, nodes string, least, mean, most float64) {
		t.Helper()
		var list []placement.Node
		for _, id := range strings.Fields(nodes) {
			list = append(list, placement.Node{ID: id})
		}
		if a, b, c := l.evenness(list); a != least || b != mean || c != most {
			t.Errorf("%v: %v, %v, %v", l, a, b, c)
		}
	}
	f(load{"a": 1, "b": 3}, "a b", 1, 2, 3)
	f(load{"b": 3}, "a b c", 0, 1, 3)
}

// TestOwnerDies holds the time of one failover to what is assumed.
func TestOwnerDies(t *testing.T) {
	const claimed = lookEvery + 2*appendSlowest
	f := func(silence, from, to time.Duration, left ...string) {
		t.Helper()
		v := newVirtual(newRandom())
		v.ownerDies(placement.Replicas{"a", "b", "c"}, left, silence)
		if len(v.took) != 1 || v.took[0] < from || v.took[0] > to {
			t.Errorf("%v after %v", v.took, silence)
		}
	}
	const beat, stagger = lease / owner.BeatShare, lease / 2
	f(0, lease-beat, lease+followDelay+claimed, "b", "c")
	f(0, lease-beat+stagger, lease+stagger+followDelay+claimed, "c")
	f(5*time.Second, 5*time.Second, 5*time.Second+appendTimeout+claimed, "b", "c")
}

// TestHandOver: the standby that is named does not wait for a lease.
func TestHandOver(t *testing.T) {
	v := newVirtual(newRandom())
	v.ownerStepsDown(placement.Replicas{"a", "b", "c"})
	if len(v.took) != 1 || v.took[0] > lease/5 || v.claims["b"] != 1 {
		t.Errorf("%v, claims %v", v.took, v.claims)
	}
}

// TestNotServedIsAFault: a partition whose log takes nothing any more is found.
func TestNotServedIsAFault(t *testing.T) {
	s, v := &simulation{}, newVirtual(newRandom())
	v.ownerDies(placement.Replicas{"a", "b"}, []string{"b"}, 2*givenUp)
	if v.add(&goal.Grid{}, s, "", ""); len(s.faults) != 1 {
		t.Errorf("%q", s.faults)
	}
}
