package store

import (
	"errors"
	"slices"
	"testing"

	"trunkline/engine/journal"
)

func TestTasksOfOneShardFollowEachOther(t *testing.T) {
	const many = 1 << nearBits
	tasks := []task{{hash: 5}, {hash: 3}, {hash: 5 + many}, {hash: 0}, {hash: 3 + 7*many}, {hash: 5}}
	order := byHash(make([]uint32, 2), tasks)
	if want := []uint32{3, 1, 4, 0, 2, 5}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if order = byHash(order, nil); len(order) != 0 {
		t.Errorf("order %v of no tasks", order)
	}
}

// refusing takes all records but some.
type refusing struct {
	bad   []journal.Index
	taken []journal.Index
}

var errRefused = errors.New("refused")

func (r *refusing) Take(_ []byte, index journal.Index, _ uint64) (applied bool, err error) {
	if slices.Contains(r.bad, index) {
		return false, errRefused
	}
	r.taken = append(r.taken, index)
	return true, nil
}

func (r *refusing) Warm([]uint64) uint32 { return 0 }

// The first record that a lane cannot take counts, and all before it are taken, although the lane
// meets a later one first.
func TestLaneFailsAtTheFirstRecord(t *testing.T) {
	tasks := []task{{index: 10, hash: 1}, {index: 11, hash: 2}, {index: 12, hash: 1}, {index: 13, hash: 0}, {index: 14, hash: 1}, {index: 15, hash: 0}}
	for _, c := range []struct {
		bad, taken []journal.Index
		first      journal.Index
	}{
		{[]journal.Index{12, 13, 15}, []journal.Index{10, 11}, 12},
		{[]journal.Index{11, 15}, []journal.Index{13, 10, 12, 14}, 11},
		{[]journal.Index{14}, []journal.Index{13, 15, 10, 12, 11}, 14},
	} {
		lane := &refusing{bad: c.bad}
		b := &bundle{}
		got := b.work(lane, slices.Clone(tasks), byHash(nil, tasks), nil)
		if got.index != c.first || !errors.Is(got.err, errRefused) || !slices.Equal(lane.taken, c.taken) {
			t.Errorf("bad %v: failed at %d (%v) with %v taken, want %d and %v", c.bad, got.index, got.err, lane.taken, c.first, c.taken)
		}
	}
}
