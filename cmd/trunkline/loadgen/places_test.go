package loadgen

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlacesAgainstAModel: the model is a list of the requests in flight in the order sent.
func TestPlacesAgainstAModel(t *testing.T) {
	type sent struct {
		at      int16
		stamp   uint64
		overdue bool
	}
	rapid.Check(t, func(t *rapid.T) {
		depth, inOrder := rapid.IntRange(1, 8).Draw(t, "depth"), rapid.Bool().Draw(t, "in order")
		p := newPlaces(depth, inOrder)
		var model []sent
		var old []sent // ended: their stamps must not be found again
		stamp := uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				if len(model) == depth {
					t.Skip("full")
				}
				stamp++
				model = append(model, sent{at: p.take(int64(stamp), stamp, 0), stamp: stamp})
			},
			"free": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				p.free(model[i].at)
				old = append(old, model[i])
				model = slices.Delete(model, i, i+1)
			},
			"give up the oldest": func(t *rapid.T) {
				at := p.oldest()
				if at == none {
					t.Skip("none")
				}
				p.giveUp(at)
				i := slices.IndexFunc(model, func(s sent) bool { return s.at == at })
				if inOrder {
					model[i].overdue = true
				} else {
					old = append(old, model[i])
					model = slices.Delete(model, i, i+1)
				}
			},
			"clear": func(*rapid.T) {
				p.clear()
				old, model = append(old, model...), nil
			},
			"": func(t *rapid.T) {
				live := 0
				oldest, head := int16(none), int16(none)
				for i, s := range model {
					if i == 0 {
						head = s.at
					}
					if got := p.find(int(s.at), s.stamp); (got == s.at) == s.overdue {
						t.Fatalf("find %+v: %d", s, got)
					}
					if !s.overdue {
						if live++; live == 1 {
							oldest = s.at
						}
					}
				}
				if p.live != live || p.full() != (len(model) == depth) || p.oldest() != oldest || p.head != head {
					t.Fatalf("live %d full %v oldest %d head %d, model %+v", p.live, p.full(), p.oldest(), p.head, model)
				}
				for _, s := range old {
					if p.find(int(s.at), s.stamp) != none {
						t.Fatalf("%+v is found after its end", s)
					}
				}
			},
		})
	})
}

func TestIDsOfNobody(t *testing.T) {
	p := newPlaces(2, false)
	p.take(0, 5, 0)
	for _, place := range []int{1, 2, 4095} {
		if at := p.find(place, 5); at != none {
			t.Errorf("place %d: %d", place, at)
		}
	}
}
