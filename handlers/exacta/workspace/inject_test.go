package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
	"trunkline/fuzz/rounds"
)

// injector lets system calls fail: from number from to number to, the first being 1.
type injector struct {
	n, from, to int
	err         error
	last        string
}

func (i *injector) before(op, name string) error {
	i.n++
	if i.n >= i.from && i.n <= i.to {
		i.last = op + " " + name
		return i.err
	}
	return nil
}

// never is beyond every call.
const never = 1 << 30

// scene is a tree with files that can be changed in every way.
func scene(t testing.TB) (root, before string) {
	t.Helper()
	root = canonicalTemp(t)
	write(t, root, map[string]string{"m.txt": "old\n", "d/x.txt": "gone\n", "d/y.txt": "stays\n"})
	if err := os.Chmod(filepath.Join(root, "d/x.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	return root, snapshot(t, root)
}

// afterScene is the tree after perform.
const afterScene = "d/|d/y.txt 0644 stays\n|m.txt 0644 new\n|n/|n/e/|n/e/w.txt 0644 w|"

func changes() []Change {
	return []Change{
		{Path: "m.txt", Op: Modify, Data: []byte("new\n"), Pre: Sum([]byte("old\n"))},
		{Path: "n/e/w.txt", Op: Create, Data: []byte("w")},
		{Path: "d/x.txt", Op: Delete, Pre: Sum([]byte("gone\n"))},
	}
}

// perform does the changes as one set, or one after the other as the steps of a plan.
func perform(p *Project, kind string) (*Point, *errcode.Fault) {
	pt, f := p.NewPoint(id1, kind, now)
	if f != nil {
		return nil, f
	}
	sets := [][]Change{changes()}
	if kind == PlanPoint {
		sets = nil
		for _, c := range changes() {
			sets = append(sets, []Change{c})
		}
	}
	for _, set := range sets {
		if f := pt.Add(set...); f != nil {
			return pt, f
		}
		if f := pt.Commit(nil); f != nil {
			return pt, f
		}
	}
	return pt, pt.Seal()
}

// calls returns how many system calls a flow makes.
func calls(t *testing.T, flow func(p *Project)) int {
	t.Helper()
	root, _ := scene(t)
	count := &injector{from: never}
	flow(open(t, root, Options{Before: count.before}))
	return count.n
}

// TestEachCallFails lets each call fail once: the tree is as before or as after.
func TestEachCallFails(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{DiffSetPoint, PlanPoint} {
		total := calls(t, func(p *Project) { _, f := perform(p, kind); ok(t, f) })
		for i, errno := range []unix.Errno{unix.ENOSPC, unix.EIO} {
			for n := 1 + i; n <= total; n += rounds.Step(5, 1) {
				fails := &injector{from: n, to: n, err: errno}
				root, before := scene(t)
				p := open(t, root, Options{Before: fails.before})
				pt, f := perform(p, kind)
				name := fmt.Sprintf("%s %v at call %d (%s)", kind, errno, n, fails.last)
				if f != nil && pt != nil {
					ok(t, pt.Undo(0))
				}
				want := before
				if f == nil {
					want = afterScene
				} else if code := f.Code; errno == unix.ENOSPC && code != "FS-004" || errno != unix.ENOSPC && code != "FS-002" {
					t.Errorf("%s: %v", name, f)
				}
				if got := snapshot(t, root); got != want {
					t.Fatalf("%s: fault %v, tree %q, want %q", name, f, got, want)
				}
				p.Close()
			}
		}
	}
}

// TestDiskStaysFull lets all calls fail from each one on, the undoing included. What cannot be
// restored is counted, has its bytes in the point, and is restored once the disk works.
func TestDiskStaysFull(t *testing.T) {
	t.Parallel()
	total := calls(t, func(p *Project) { _, f := perform(p, DiffSetPoint); ok(t, f) })
	for n := 1; n <= total; n += rounds.Step(3, 1) {
		fails := &injector{from: n, to: never, err: unix.ENOSPC}
		root, before := scene(t)
		p := open(t, root, Options{Before: fails.before})
		pt, f := perform(p, DiffSetPoint)
		if f == nil || f.Code != "FS-004" {
			t.Fatalf("call %d: %v", n, f)
		}
		if pt != nil {
			f := pt.Undo(0)
			if got := snapshot(t, root); f == nil && got != before {
				t.Fatalf("call %d: Undo without a fault, tree %q", n, got)
			}
			if f != nil {
				want(t, f, "FS-006")
				fails.from = never
				ok(t, pt.Undo(0))
			}
			if got := snapshot(t, root); got != before {
				t.Fatalf("call %d: tree %q, want %q", n, got, before)
			}
		}
		p.Close()
	}
}

// TestStopAtEachCall stops at each call as a crash does, opens the root again and recovers.
func TestStopAtEachCall(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{DiffSetPoint, PlanPoint} {
		total := calls(t, func(p *Project) { _, f := perform(p, kind); ok(t, f) })
		for n := 1; n <= total+1; n += rounds.Step(3, 1) {
			stops := &injector{from: n, to: never, err: unix.EIO}
			root, before := scene(t)
			p := open(t, root, Options{Before: stops.before})
			_, f := perform(p, kind)
			p.Close()
			recoverAndCompare(t, root, kind, before, fmt.Sprintf("%s stopped at %s", kind, stops.last), f == nil)
		}
	}
}

// recoverAndCompare opens a root after a stop. complete means that everything was done.
func recoverAndCompare(t *testing.T, root, kind, before, name string, complete bool) {
	t.Helper()
	p := open(t, root, Options{})
	defer p.Close()
	undone, f := p.Recover()
	ok(t, f)
	for _, u := range undone {
		if u.Kind == DiffSetPoint {
			ok(t, u.Fault)
		}
	}
	pt, f := p.LoadPoint(id1)
	if kind == PlanPoint && f == nil && !pt.Sealed {
		ok(t, pt.Undo(0))
		if len(pt.Entries) != 0 {
			t.Errorf("%s: entries %v", name, pt.Entries)
		}
	}
	got := snapshot(t, root)
	if complete && got != afterScene || !complete && got != before && (got != afterScene || pt == nil || !pt.Sealed) {
		t.Fatalf("%s: tree %q, want %q", name, got, before)
	}
	if undone, f := p.Recover(); f != nil || len(undone) != 0 {
		t.Fatalf("%s: a second Recover: %v %v", name, undone, f)
	}
	ok(t, p.Prune())
}

// TestStopWhileUndoing stops at each call of an Undo.
func TestStopWhileUndoing(t *testing.T) {
	t.Parallel()
	half := func(p *Project) *Point {
		pt, f := p.NewPoint(id1, DiffSetPoint, now)
		ok(t, f)
		ok(t, pt.Add(changes()...))
		ok(t, pt.Commit(nil))
		return pt
	}
	done := calls(t, func(p *Project) { half(p) })
	total := calls(t, func(p *Project) { ok(t, half(p).Undo(0)) })
	for n := done + 1; n <= total+1; n += rounds.Step(3, 1) {
		stops := &injector{from: n, to: never, err: unix.EIO}
		root, before := scene(t)
		p := open(t, root, Options{Before: stops.before})
		_ = half(p).Undo(0)
		p.Close()
		recoverAndCompare(t, root, DiffSetPoint, before, "undoing stopped at "+stops.last, false)
	}
}

// TestStopInAStep stops in the second step of a plan: undoing that step keeps the first one, and
// the plan goes on.
func TestStopInAStep(t *testing.T) {
	t.Parallel()
	steps := changes()
	first := calls(t, func(p *Project) { stepwise(t, p, steps[:1]) })
	total := calls(t, func(p *Project) { stepwise(t, p, steps[:2]) })
	for n := first + 1; n <= total; n += rounds.Step(3, 1) {
		stops := &injector{from: n, to: never, err: unix.EIO}
		root, before := scene(t)
		p := open(t, root, Options{Before: stops.before})
		stepwise(nil, p, steps[:2])
		p.Close()
		p = open(t, root, Options{})
		pt, f := p.LoadPoint(id1)
		ok(t, f)
		ok(t, pt.Undo(1))
		if got := snapshot(t, root); got != "d/|d/x.txt 0700 gone\n|d/y.txt 0644 stays\n|m.txt 0644 new\n|" {
			t.Fatalf("call %d (%s): %q", n, stops.last, got)
		}
		for _, c := range steps[1:] {
			ok(t, pt.Add(c))
			ok(t, pt.Commit(nil))
		}
		if got := snapshot(t, root); got != afterScene {
			t.Fatalf("call %d (%s): %q", n, stops.last, got)
		}
		ok(t, pt.Undo(0))
		if got := snapshot(t, root); got != before {
			t.Fatalf("call %d (%s): %q", n, stops.last, got)
		}
		p.Close()
	}
}

// stepwise does changes one after the other; with t none may fail.
func stepwise(t *testing.T, p *Project, steps []Change) {
	pt, f := p.NewPoint(id1, PlanPoint, now)
	for _, c := range steps {
		if f == nil {
			f = pt.Add(c)
		}
		if f == nil {
			f = pt.Commit(nil)
		}
	}
	if t != nil {
		ok(t, f)
	}
}
