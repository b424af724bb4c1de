package replicated_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"trunkline/engine/journal/replicated"
	"trunkline/fuzz/kit/memstream"
)

// TestArchive: its sets stay where snapshots come and go, and are read by every node; those that
// are not used are dropped by an owner alone.
func TestArchive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		m := members(t, 2)
		a, b := m[0], m[1]
		sets := func() (names []string) {
			all, err := a.log.Client(99, memstream.Faults{}).Sets(context.Background())
			must(t, err)
			for _, set := range all {
				if strings.HasPrefix(set, "archive-") {
					names = append(names, set)
				}
			}
			return names
		}
		put := func(n *member, set string, chunks ...string) {
			t.Helper()
			for i, c := range chunks {
				must(t, n.store.Archive().Put(set, uint32(i), []byte(c)))
			}
		}
		only := func(set string) func(string) bool { return func(name string) bool { return name == set } }
		put(a, "used", "one", "two")
		put(a, "left", "three")
		filled(t, a, 4)
		if got := sets(); len(got) != 2 {
			t.Fatalf("sets %v", got)
		}
		a.store.Archive().Sweep(only("used"))
		if got := fmt.Sprint(sets()); got != "[archive-used]" {
			t.Fatalf("sets %v", got)
		}
		must(t, b.claim())
		put(b, "next", "four")
		a.store.Archive().Sweep(only("nothing"))
		if got := sets(); len(got) != 2 {
			t.Fatalf("a former owner drops: %v", got)
		}
		_ = a.store.Barrier(context.Background()) // by now it knows
		if err := a.store.Archive().Put("late", 0, []byte("five")); !errors.Is(err, replicated.ErrNotOwner) {
			t.Errorf("a former owner puts: %v", err)
		}
		text := ""
		must(t, b.store.Archive().Get("used", 2, func(c []byte) error { text += string(c); return nil }))
		if text != "onetwo" {
			t.Errorf("the set is %q", text)
		}
		if err := b.store.Archive().Get("used", 3, func([]byte) error { return nil }); err == nil {
			t.Error("a chunk that is missing is none")
		}
		b.store.Archive().Sweep(only("next"))
		if got := fmt.Sprint(sets()); got != "[archive-next]" {
			t.Errorf("sets %v", got)
		}
		filled(t, b, 3)
	})
}
