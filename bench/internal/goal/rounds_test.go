package goal

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestRoundsAlternate(t *testing.T) {
	var order, progress strings.Builder
	step := func(name string, cells ...Cell) Step {
		return Step{name, func() ([]Sample, error) {
			order.WriteString(name)
			var got []Sample
			for _, c := range cells {
				got = append(got, Sample{Cell: c, Requests: uint64(order.Len())})
			}
			return got, nil
		}}
	}
	a, b := Cell{Server: "a"}, Cell{Server: "b"}
	all, err := Rounds(3, []Step{step("x"), step("y", a), step("z", a, b)}, &progress)
	if err != nil || order.String() != "xyzzyxxyz" {
		t.Errorf("order %s, %v", order.String(), err)
	}
	rounds := ""
	for _, s := range all {
		rounds += fmt.Sprint(s.Cell.Server, s.Round, " ")
	}
	if rounds != "a0 a0 b0 a1 b1 a1 a2 a2 b2 " {
		t.Errorf("samples %s", rounds)
	}
	if progress.String() != "round 1 of 3 done\nround 2 of 3 done\nround 3 of 3 done\n" {
		t.Errorf("progress %q", progress.String())
	}
}

func TestRoundsEndAtAnError(t *testing.T) {
	c, n, broken := Cell{Server: "s", Method: "m", Conns: 2, Depth: 3}, 0, errors.New("broken")
	all, err := Rounds(3, []Step{One(c, func() (Sample, error) {
		n++
		if n == 2 {
			return Sample{}, broken
		}
		return Sample{PerSec: 1}, nil
	})}, new(strings.Builder))
	if all != nil || n != 2 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "cannot measure s m, 2×3: broken") {
		t.Errorf("%v after %d, %v", all, n, err)
	}
}

func TestOneNamesTheCell(t *testing.T) {
	c := Cell{Server: "s", Method: "m", Via: "v"}
	step := One(c, func() (Sample, error) { return Sample{PerSec: 7}, nil })
	got, err := step.Measure()
	if err != nil || len(got) != 1 || got[0].Cell != c || got[0].PerSec != 7 || !strings.Contains(step.Name, "s m over v") {
		t.Errorf("%s: %+v, %v", step.Name, got, err)
	}
}
