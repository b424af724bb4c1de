package builtin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// writeAt writes a file at that time.
func (b *bench) writeAt(now time.Time, path string) {
	b.t.Helper()
	c := callOf(write, []byte(`{"overwrite":true,"content":"x","path":`+quote(path)+`}`), new(sessionstate.State))
	c.Now = func() time.Time { return now }
	if r := b.byID[write].Run(context.Background(), c); r.Status() != tool.OK {
		b.t.Fatal(r.ErrorText())
	}
}

// names returns what is in the directory name, a path in the bench.
func (b *bench) names(name string) string {
	b.t.Helper()
	entries, err := os.ReadDir(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return strings.Join(list, " ")
}

// TestLeftoversOfKilledWriters: what a writer that was killed left is removed once no writer can
// need it, and nothing else is.
func TestLeftoversOfKilledWriters(t *testing.T) {
	const left = ".tmp-0123456789abcdef"
	b := newBench(t)
	b.write("base/work/"+left, "half of it")
	for _, other := range []string{".tmp-0123456789abcde", left + "0", left + ".bak", ".tmp-0123456789abcdeF", "tmp-0123456789abcdef"} {
		b.write("base/work/"+other, "not ours")
	}
	b.link("x", "base/work/.tmp-1111111111111111")
	b.write("base/work/.tmp-2222222222222222/x", "a directory")
	b.write("base/work/sub/"+left, "half of it")
	all := b.names("base/work")

	now := time.Now()
	b.writeAt(now.Add(staleTemp-time.Minute), "x")
	if got := b.names("base/work"); got != all+" x" {
		t.Errorf("too early: %s", got)
	}
	b.writeAt(now.Add(staleTemp+time.Minute), "x") // looked through a moment ago
	if got := b.names("base/work"); got != all+" x x.bak" {
		t.Errorf("looked through again: %s", got)
	}
	b.writeAt(now.Add(2*staleTemp), "x")
	if got, want := b.names("base/work"), strings.Replace(all, left+" ", "", 1)+" x x.bak"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.writeAt(now.Add(2*staleTemp), "sub/x")
	if got := b.names("base/work/sub"); got != "x" {
		t.Errorf("in another directory: %s", got)
	}
}

// TestNewNameOfAnOldFile: a file gets a temporary second name on its way to becoming the backup,
// and must keep it.
func TestNewNameOfAnOldFile(t *testing.T) {
	const second = ".tmp-0123456789abcdef"
	b := newBench(t)
	b.write("base/work/old", "x")
	year := time.Now().AddDate(-1, 0, 0)
	if err := os.Chtimes(b.path("base/work/old"), year, year); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(b.path("base/work/old"), b.path("base/work/"+second)); err != nil {
		t.Skip(err)
	}
	b.writeAt(time.Now(), "new")
	if got := b.names("base/work"); got != second+" new old" {
		t.Error(got)
	}
}

func TestSweepsAreRemembered(t *testing.T) {
	var s sweeps
	now := time.Now()
	f := func(path string, after time.Duration, want bool) {
		t.Helper()
		if got := s.due(path, now.Add(after)); got != want {
			t.Errorf("%s after %v: %v", path, after, got)
		}
	}
	f("a", 0, true)
	f("a", staleTemp-1, false)
	f("a", 1-staleTemp, false)
	f("a", staleTemp, true)
	f("a", 0, true) // the clock was put back
	for i := range maxSwept - 1 {
		f(fmt.Sprint(i), 0, true)
	}
	f("a", 0, false) // at the limit nothing is forgotten
	f("b", 0, true)
	f("a", 0, true)
	if len(s.done) != 2 {
		t.Errorf("%d directories are remembered", len(s.done))
	}
}

// TestSweepIsBounded: a sweep goes over maxSweep names.
func TestSweepIsBounded(t *testing.T) {
	b := newBench(t)
	d, err := newRoot(b.path("base")).dir("many", true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	for i := range 20 {
		b.write(fmt.Sprintf("base/many/.tmp-%016x", i), "")
	}
	later := time.Now().Add(2 * staleTemp)
	removeStale(d, later, 19)
	if got := len(strings.Fields(b.names("base/many"))); got != 1 {
		t.Errorf("%d names are left of 20 after a look at 19", got)
	}
	removeStale(d, later, 1)
	if got := b.names("base/many"); got != "" {
		t.Errorf("left: %s", got)
	}
}
