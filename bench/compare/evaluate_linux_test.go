package compare

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"trunkline/bench/internal/gobench"
)

// machine makes up the ratios of a benchmark that takes speed times what it took: both sides of a
// pair have noise of their own with now and then a spike, and drift, which the turns of the sides
// turn around too.
type machine struct {
	*rand.Rand
	noise float64
	round int
	drift float64
}

func (m *machine) time(speed float64) float64 {
	m.drift = 0.98*m.drift + 0.02*m.NormFloat64() // about 10 % up and down over minutes
	t := speed * math.Exp(m.drift+m.noise*m.NormFloat64())
	if m.Float64() < 0.03 {
		t *= 1 + 2*m.Float64()
	}
	return t
}

func (m *machine) ratio(speed float64) float64 {
	m.round++
	if m.round%2 == 0 {
		now := m.time(speed)
		return now / m.time(1)
	}
	base := m.time(1)
	return m.time(speed) / base
}

// ratios is a source of rounds as settle asks for it.
func (m *machine) ratios(speed float64) func(n int) ([]float64, error) {
	var r []float64
	return func(n int) ([]float64, error) {
		for len(r) < n {
			r = append(r, m.ratio(speed))
		}
		return r, nil
	}
}

// rehearse is a run over benchmarks of the given speeds, as evaluate does it with real ones.
func (m *machine) rehearse(t *testing.T, speeds []float64) (verdicts []verdict) {
	t.Helper()
	verdicts = slices.Repeat([]verdict{same}, len(speeds))
	var suspects []int
	for i, speed := range speeds {
		r, _ := m.ratios(speed)(10)
		if shiftOf(r).seems() {
			suspects = append(suspects, i)
		}
	}
	for _, i := range suspects {
		_, v, err := settle(10, level(len(suspects)), m.ratios(speeds[i]))
		if err != nil {
			t.Fatal(err)
		}
		verdicts[i] = v
	}
	return verdicts
}

// TestEvaluation: in many made-up runs of 60 benchmarks, of which the first is 10 % slower and the
// second 10 % faster, both are found and nothing else is.
func TestEvaluation(t *testing.T) {
	const benchmarks = 60
	runs := 40
	if testing.Short() {
		runs = 20
	}
	f := func(noise float64) {
		t.Helper()
		m := &machine{Rand: rand.New(rand.NewPCG(1, 2)), noise: noise}
		missed, wrong, open := 0, 0, 0
		for range runs {
			speeds := slices.Repeat([]float64{1}, benchmarks)
			speeds[0], speeds[1] = 1.1, 0.9
			for i, v := range m.rehearse(t, speeds) {
				want := []verdict{slower, faster, same}[min(i, 2)]
				switch {
				case want != same && v != want:
					missed++
				case want == same && v == unsure:
					open++
				case v != want:
					wrong++
				}
			}
		}
		if missed > runs/20 || wrong > 0 || open > runs*benchmarks/100 {
			t.Errorf("noise %.2f: %d of %d moves missed, %d seen where none was, %d not decided", noise, missed, 2*runs, wrong, open)
		}
	}
	f(0.02)
	f(0.05)
	f(0.08)
}

// TestNothingMoved: a hundred runs in which nothing moved, and nothing is called moved.
func TestNothingMoved(t *testing.T) {
	m := &machine{Rand: rand.New(rand.NewPCG(3, 4)), noise: 0.07}
	runs := 100
	if testing.Short() {
		runs = 25
	}
	for range runs {
		for _, v := range m.rehearse(t, slices.Repeat([]float64{1}, 40)) {
			if v == slower || v == faster {
				t.Errorf("something is %s", v)
			}
		}
	}
}

// TestSettleOnAWildMachine: pairs that differ by a third take more rounds, and a tenth is still
// found.
func TestSettleOnAWildMachine(t *testing.T) {
	m := &machine{Rand: rand.New(rand.NewPCG(5, 6)), noise: 0.22}
	found := 0
	for range 10 {
		s, v, err := settle(10, level(10), m.ratios(1.1))
		if err != nil {
			t.Fatal(err)
		}
		if v == slower && len(s.ratios) > 20 {
			found++
		}
	}
	if found < 9 {
		t.Errorf("found in %d of 10 runs", found)
	}
}

func TestSettleStops(t *testing.T) {
	wide := []float64{0.5, 2, 0.6, 1.7, 0.7, 1.4}
	var asked []int
	s, v, err := settle(3, 0.01, func(n int) ([]float64, error) { asked = append(asked, n); return wide[:min(n, len(wide))], nil })
	if err != nil || v != unsure || len(s.ratios) != 6 || !slices.Equal(asked, []int{6, 12}) {
		t.Errorf("without more time: %v, %s, %v after asking for %v", s, v, err, asked)
	}
	asked = nil
	_, v, _ = settle(3, 0.01, func(n int) ([]float64, error) { asked = append(asked, n); return slices.Repeat(wide, n/6), nil })
	if v != unsure && v != same || asked[len(asked)-1] > 3<<looks {
		t.Errorf("%s after asking for %v", v, asked)
	}
	broken := errors.New("broken")
	if _, _, err := settle(3, 0.01, func(int) ([]float64, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("an error is %v", err)
	}
}

func TestWorstFirst(t *testing.T) {
	var list []*benchmark
	for _, ratio := range []float64{0.9, 1.1, 0.5, 1.5, 1} {
		list = append(list, &benchmark{change: shift{Ratio: ratio}})
	}
	list = append([]*benchmark{{verdict: added}}, list...)
	slices.SortStableFunc(list, worstFirst)
	if last := len(list) - 1; list[last].change.Ratio != 0 {
		t.Error("what cannot be compared is not last")
	} else {
		list = list[:last]
	}
	var got []float64
	for _, e := range list {
		got = append(got, e.change.Ratio)
	}
	if !slices.Equal(got, []float64{1.5, 1.1, 1, 0.9, 0.5}) {
		t.Errorf("the order is %v", got)
	}
}

// TestExact: memory that moved is certain at the first look only where each side has one figure;
// else it is measured again.
func TestExact(t *testing.T) {
	f := func(before, after []float64, moved, exact bool) {
		t.Helper()
		b := &benchmark{figures: [sides]map[string][]float64{{gobench.Bytes: before}, {gobench.Bytes: after}}}
		b.first()
		if got := len(b.memory) > 0; got != moved || b.exact() != exact || b.verdict == same != (exact || !moved) {
			t.Errorf("%v to %v: moved %v, exact %v, %s", before, after, got, b.exact(), b.verdict)
		}
	}
	f([]float64{64, 64, 64}, []float64{65, 65, 65}, true, true)
	f([]float64{65, 65, 65}, []float64{64, 64, 64}, true, true)
	f([]float64{60, 60, 61}, []float64{115, 115, 115}, true, false)
	f([]float64{60, 60, 60}, []float64{61, 115, 115}, true, false)
	f([]float64{60, 60, 61}, []float64{61, 115, 115}, false, true)
	f([]float64{64, 64, 64}, []float64{64, 64, 64}, false, true)
}
