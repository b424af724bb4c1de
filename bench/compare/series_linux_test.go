package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// printed is benchmark text of package p as a set takes it.
func printed(t *testing.T, lines ...string) text {
	t.Helper()
	out, err := parse(strings.NewReader("pkg: p\n" + strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSetPairsRounds(t *testing.T) {
	s := newSet()
	for round, ns := range []string{"2", "4"} {
		if err := s.add(round, printed(t, "BenchmarkB 1 "+ns+" ns/op", "BenchmarkA 1 1 ns/op 3 B/op")); err != nil {
			t.Fatal(err)
		}
	}
	b, a := key{"p", "B"}, key{"p", "A"}
	if !slices.Equal(s.order, []key{b, a}) {
		t.Errorf("the order is %v", s.order)
	}
	if v := s.figures(b, unitTime); !slices.Equal(v, []float64{2, 4}) {
		t.Errorf("B took %v", v)
	}
	if v := s.figures(b, unitBytes); v != nil {
		t.Errorf("B has bytes %v out of nowhere", v)
	}
	if got := setOf(s.text(nil)); !slices.Equal(got.figures(b, unitTime), []float64{2, 4}) || got.figures(a, unitBytes)[1] != 3 {
		t.Errorf("a file of the set has %v", got.of)
	}
	s.keep(func(k key) bool { return k == a })
	if len(s.order) != 1 || len(s.of) != 1 {
		t.Errorf("%v stayed", s.order)
	}
}

func TestSetRefusesWhatCannotBePaired(t *testing.T) {
	f := func(why string, rounds ...[]string) {
		t.Helper()
		s := newSet()
		for i, lines := range rounds {
			err := s.add(i, printed(t, lines...))
			if last := i == len(rounds)-1; (err != nil) != last {
				t.Errorf("%s: round %d: %v", why, i, err)
			}
		}
	}
	x := "BenchmarkX 1 1 ns/op"
	f("twice in one process", []string{x, x})
	f("not in the first round", nil, []string{x})
	f("not in the second round", []string{x}, nil, []string{x})
}

func TestTextKeepsPackagesTogether(t *testing.T) {
	s := newSet()
	in := text{results: []result{{key: key{"q", "X"}}, {key: key{"p", "X"}}, {key: key{"q", "Y"}}}}
	if err := s.add(0, in); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.text(nil).results {
		got = append(got, r.key.String())
	}
	if !slices.Equal(got, []string{"p X", "q X", "q Y"}) {
		t.Errorf("the order is %q", got)
	}
}

func TestRatios(t *testing.T) {
	if r := ratios([]float64{2, 0, 4, 5}, []float64{3, 1, 2}); !slices.Equal(r, []float64{1.5, 0.5}) {
		t.Errorf("ratios are %v", r)
	}
}

// TestFastest: of several tries the one that nothing disturbed counts, with all that it showed.
func TestFastest(t *testing.T) {
	try := func(name string, time, allocs float64) result {
		return result{key: key{"p", name}, values: map[string]float64{unitTime: time, unitAllocs: allocs}}
	}
	got := fastest([]result{try("a", 3, 1), try("a", 2, 2), try("a", 5, 0), try("b", 7, 0), try("a", 2, 9)})
	want := []result{try("a", 2, 2), try("b", 7, 0)}
	if !reflect.DeepEqual(got, want) || fastest(nil) != nil {
		t.Errorf("%v, want %v", got, want)
	}
}
