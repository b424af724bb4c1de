package loadgen

import "testing"

func TestWeights(t *testing.T) {
	m := newMix([]Share{{Weight: 1}, {Weight: 7}, {Weight: 2}}, 42)
	const n = 100_000
	var got [3]int
	for k := range int64(n) {
		got[m.pick(k)]++
	}
	for i, want := range [...]int{n / 10, 7 * n / 10, 2 * n / 10} {
		if diff := got[i] - want; diff < -n/100 || diff > n/100 {
			t.Errorf("share %d: %d of %d, want about %d", i, got[i], n, want)
		}
	}
}

// TestEveryConnectionGetsTheMix: a connection's requests are every n-th one, and must be mixed as
// all are.
func TestEveryConnectionGetsTheMix(t *testing.T) {
	m := newMix([]Share{{Weight: 1}, {Weight: 1}}, 1)
	for _, stride := range []int64{2, 8, 64, 1000} {
		first := 0
		for k := int64(0); k < 1000*stride; k += stride {
			first += 1 - m.pick(k)
		}
		if first < 420 || first > 580 {
			t.Errorf("stride %d: %d of 1000", stride, first)
		}
	}
}

func TestTheSeedDecidesTheOrder(t *testing.T) {
	shares := []Share{{Weight: 1}, {Weight: 1}}
	a, b, c := newMix(shares, 1), newMix(shares, 1), newMix(shares, 2)
	differ := 0
	for k := range int64(100) {
		if a.pick(k) != b.pick(k) {
			t.Fatalf("request %d differs under one seed", k)
		}
		if a.pick(k) != c.pick(k) {
			differ++
		}
	}
	if differ == 0 {
		t.Error("another seed, the same order")
	}
}
