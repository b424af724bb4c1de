package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestPlansAreBounded: the newest files of plans stay, at the limit and above it, and so do pinned
// ones, whatever their age. What is not ours stays too.
func TestPlansAreBounded(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	ok(t, p.PrunePlans())
	folder := filepath.Join(root, storeName, "plan")
	names := func() int {
		list, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	save := func(n int) string {
		id := fmt.Sprintf("p-%02d", n)
		ok(t, p.SavePlan(id, []byte("{}")))
		at := time.Unix(int64(1_000_000+n), 0)
		if err := os.Chtimes(filepath.Join(folder, id+".json"), at, at); err != nil {
			t.Fatal(err)
		}
		return id
	}
	oldest := save(0)
	for n := 1; n < keptPlans; n++ {
		save(n)
	}
	ok(t, p.PrunePlans())
	if n := names(); n != keptPlans {
		t.Fatalf("%d at the limit", n)
	}
	newest := save(keptPlans)
	for _, name := range []string{"notes.txt", "other.json.tmp"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("notes.txt", filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	ok(t, p.PrunePlans(oldest, newest))
	if n := names(); n != keptPlans+2 {
		t.Errorf("%d above the limit", n)
	}
	for _, id := range []string{oldest, newest, "p-02"} {
		if _, f := p.LoadPlan(id); f != nil {
			t.Errorf("%s: %v", id, f)
		}
	}
	if _, f := p.LoadPlan("p-01"); f == nil {
		t.Error("the oldest that is not pinned stays")
	}
	save(keptPlans + 1)
	ok(t, p.PrunePlans())
	if _, f := p.LoadPlan(oldest); f == nil {
		t.Error("the oldest stays")
	}
}
