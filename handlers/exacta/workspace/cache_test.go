package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAnswersAreBounded: 256 answers stay. One more costs the oldest one, whatever its name.
func TestAnswersAreBounded(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{Lazy: true})
	folder := filepath.Join(root, storeName, "cache", "planner")
	if _, found := p.LoadAnswer("k"); found {
		t.Error("an answer of nothing")
	}
	save := func(n int) string {
		key := fmt.Sprintf("%03d", (n*7+5)%1000)
		ok(t, p.SaveAnswer(key, []byte(key)))
		at := time.Unix(int64(1_000_000+n), 0)
		if err := os.Chtimes(filepath.Join(folder, key+".json"), at, at); err != nil {
			t.Fatal(err)
		}
		return key
	}
	var keys []string
	for n := range maxCached {
		keys = append(keys, save(n))
	}
	count := func() int {
		names, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if n := count(); n != maxCached {
		t.Fatalf("%d at the limit", n)
	}
	keys = append(keys, save(maxCached))
	if n := count(); n != maxCached {
		t.Errorf("%d above the limit", n)
	}
	for i, key := range keys {
		if b, found := p.LoadAnswer(key); found != (i > 0) || found && string(b) != key {
			t.Errorf("answer %d: %q %v", i, b, found)
		}
	}
	ok(t, p.SaveAnswer(keys[1], []byte("new"))) // the same name takes no place
	if b, _ := p.LoadAnswer(keys[1]); string(b) != "new" || count() != maxCached {
		t.Errorf("%q, %d", b, count())
	}
	if f := p.SaveAnswer("../x", nil); f == nil {
		t.Error("a name that leaves the folder")
	}
}
