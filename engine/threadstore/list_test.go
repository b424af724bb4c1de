package threadstore

import (
	"slices"
	"testing"
)

// listedIDs returns the identifiers that List shows, at most limit.
func (r *rig) listedIDs(before uint64, limit int) (ids []string, last uint64) {
	r.List(before, func(l *Listed) bool {
		if len(ids) == limit {
			return false
		}
		ids, last = append(ids, l.ID), l.Number
		return true
	})
	return ids, last
}

// TestList: the newest thread comes first, pages join without a gap, more than a batch is shown,
// and the order is the same after a restart from a snapshot, which has none.
func TestList(t *testing.T) {
	r := newRig(t, Config{})
	if ids, _ := r.listedIDs(0, 10); ids != nil {
		t.Errorf("an empty table lists %v", ids)
	}
	var want []string
	for range 2*listBatch + 3 {
		want = append(want, string(r.create()))
	}
	slices.Reverse(want)
	check := func() {
		t.Helper()
		if got, _ := r.listedIDs(0, len(want)+1); !slices.Equal(got, want) {
			t.Errorf("%d threads, want %d: %.200v", len(got), len(want), got)
		}
		var pages []string
		for before := uint64(0); ; {
			page, last := r.listedIDs(before, 100)
			if pages = append(pages, page...); len(page) < 100 {
				break
			}
			before = last
		}
		if !slices.Equal(pages, want) {
			t.Errorf("pages of 100 have %d threads, want %d", len(pages), len(want))
		}
	}
	check()
	r.post(alice, []byte(want[0]), "hello", "k")
	if l, ok := r.Show([]byte(want[0])); !ok || l.ID != want[0] || l.Latest != 1 || l.Number != uint64(len(want)) || l.Workspace != alice.Workspace {
		t.Errorf("Show = %+v, %v", l, ok)
	}
	if _, ok := r.Show([]byte("thr_none")); ok {
		t.Error("a thread that is not there is shown")
	}
	r.restart()
	check()
	fresh := string(r.create())
	if got, _ := r.listedIDs(0, 1); !slices.Equal(got, []string{fresh}) {
		t.Errorf("newest after the restart %v, want %s", got, fresh)
	}
}
