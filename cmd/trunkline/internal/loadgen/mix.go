package loadgen

// mix chooses the method of each request.
type mix struct {
	bounds []uint64 // the sums of the weights up to and with each share
	seed   uint64
}

func newMix(shares []Share, seed uint64) *mix {
	m := &mix{seed: seed}
	sum := uint64(0)
	for _, s := range shares {
		sum += uint64(s.Weight)
		m.bounds = append(m.bounds, sum)
	}
	return m
}

// pick returns the share of request k: always the same one, in an order without a period, so that
// no method falls on the same connections again and again. It does not allocate.
func (m *mix) pick(k int64) int {
	last := len(m.bounds) - 1
	if last == 0 {
		return 0
	}
	at := scramble(m.seed+uint64(k)) % m.bounds[last]
	for i, bound := range m.bounds {
		if at < bound {
			return i
		}
	}
	return last
}

// scramble is the finalizer of SplitMix64: every bit of x counts for every bit of the result.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
