package workspace

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/errcode"
)

func TestStateComesBack(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	if s, f := p.LoadState(); s != nil || f != nil {
		t.Fatalf("%v %v", s, f)
	}
	for _, s := range []*State{
		{ProjectID: "p", State: "Idle", LastUpdatedAt: now},
		{ProjectID: "p\u2028\"", State: "Executing", ActivePlanID: "a", ActiveExecutionID: "b", LastUpdatedAt: now,
			Execution: &Execution{ID: "b", PlanID: "a", Next: 2, InStep: 2, Entries: 1}},
		{State: "Paused", Execution: &Execution{ID: "b", PlanID: "a", Next: 3, Entries: 2}},
	} {
		ok(t, p.SaveState(s))
		got, f := p.LoadState()
		ok(t, f)
		if s.Proven = true; !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, want %+v", got, s)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, ".exacta/state.json"))
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`"mac":"[0-9a-f]{64}"`).ReplaceAll(text, []byte(`"mac":"0"`))
	rest := `{"schema_version":1,"project_id":"","state":"Paused","active_plan_id":null,"active_execution_id":null,` +
		`"last_updated_at":"","execution":{"id":"b","plan_id":"a","next":3,"in_step":null,"entries":2},"mac":"0"`
	if got, _, found := strings.Cut(string(text), `,"checksum":"`); got != rest || !found {
		t.Errorf("%s, want %s", text, rest)
	}
}

// TestStorageModes: directories 0700, files 0600, and nothing temporary is left.
func TestStorageModes(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	ok(t, p.SaveState(&State{}))
	ok(t, p.SavePlan(id1, []byte(`{}`)))
	_, f := perform(p, PlanPoint)
	want(t, f, "FS-001") // the tree is empty
	var got []string
	err := filepath.WalkDir(filepath.Join(root, storeName), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		if perm := st.Mode().Perm(); e.IsDir() && perm != 0o700 || !e.IsDir() && perm != 0o600 {
			t.Errorf("%s: %o", path, perm)
		}
		rel, _ := filepath.Rel(root, path)
		got = append(got, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := ".exacta .exacta/.gitignore .exacta/lock .exacta/plan" +
		" .exacta/plan/" + id1 + ".json .exacta/rollback .exacta/rollback/" + id1 + " .exacta/rollback/" + id1 + "/manifest.json .exacta/state.json"
	if strings.Join(got, " ") != all {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// TestDamagedStateIsSetAside: every change of a byte of state.json is found (exacta §5.6).
func TestDamagedStateIsSetAside(t *testing.T) {
	root := canonicalTemp(t)
	path := filepath.Join(root, ".exacta/state.json")
	p := open(t, root, Options{})
	ok(t, p.SaveState(&State{State: "Executing", Execution: &Execution{ID: "b", PlanID: "a", Next: 2, InStep: 2, Entries: 1}}))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := func(text string) {
		t.Helper()
		write(t, root, map[string]string{".exacta/state.json": text})
		_, f := p.LoadState()
		want(t, f, "ST-002")
		if b, err := os.ReadFile(path + ".bad"); err != nil || string(b) != text {
			t.Errorf("state.json.bad: %q %v", b, err)
		}
		if s, f := p.LoadState(); s != nil || f != nil {
			t.Errorf("%v %v", s, f)
		}
	}
	for i := range good[:len(good)-1] {
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		f(string(bad))
	}
	if err := os.Symlink("lock", path); err != nil {
		t.Fatal(err)
	}
	_, link := p.LoadState()
	want(t, link, "ST-002")
	if err := os.Remove(path + ".bad"); err != nil {
		t.Fatal(err)
	}
	f("")
	f(string(good[:len(good)/2]))
	f(`{}`)
	f(`{"schema_version":1,"checksum":"` + Sum([]byte(`{"schema_version":1}`)) + `"}`)
	f(`{"schema_version":2,"checksum":"` + Sum([]byte(`{"schema_version":2}`)) + `"}`)
}

func TestPlansAndAnswers(t *testing.T) {
	p := open(t, canonicalTemp(t), Options{})
	_, f := p.LoadPlan(id1)
	want(t, f, "ST-002")
	ok(t, p.SavePlan(id1, []byte("one")))
	ok(t, p.SavePlan(id1, []byte("two")))
	if b, f := p.LoadPlan(id1); f != nil || string(b) != "two" {
		t.Errorf("%q %v", b, f)
	}
	for _, id := range []string{"", "../x", "a/b", ".", "a.b", strings.Repeat("x", 65), "a\x00"} {
		want(t, p.SavePlan(id, nil), "ST-002")
		_, f := p.LoadPlan(id)
		want(t, f, "ST-002")
		_, f = p.NewPoint(id, PlanPoint, now)
		want(t, f, "ST-002")
		_, f = p.LoadPoint(id)
		want(t, f, "FS-001")
	}
}

// TestLockOfAProject: a root is open once (exacta §4.1, §4.18).
func TestLockOfAProject(t *testing.T) {
	root := canonicalTemp(t)
	a, b := open(t, root, Options{}), open(t, root, Options{})
	ok(t, a.SaveState(&State{}))
	want(t, b.SaveState(&State{}), "FS-005")
	_, f := Open(root, Options{})
	want(t, f, "FS-005")
	// Someone removes the folder: both compete for the lock again.
	if err := os.RemoveAll(filepath.Join(root, storeName)); err != nil {
		t.Fatal(err)
	}
	ok(t, b.SaveState(&State{}))
	want(t, a.SaveState(&State{}), "FS-005")
	b.Close()
	ok(t, a.SaveState(&State{}))
}

// TestManyWriters: states, plans and points are written by several goroutines at once.
func TestManyWriters(t *testing.T) {
	p := open(t, canonicalTemp(t), Options{})
	var writers sync.WaitGroup
	for g := range 4 {
		writers.Go(func() {
			for i := range 20 {
				id := fmt.Sprintf("%d-%d", g, i)
				pt, f := p.NewPoint(id, PlanPoint, now)
				for _, f := range []*errcode.Fault{f, p.SaveState(&State{State: id}), p.SavePlan("one", []byte(id)), p.SavePlan(id, nil)} {
					if f != nil {
						t.Error(f)
						return
					}
				}
				if f := pt.Add(Change{Path: "f/" + id, Op: Create}); f != nil {
					t.Error(f)
				}
				if f := pt.Commit(nil); f != nil && f.Code != "VAL-005" {
					t.Error(f)
				}
			}
		})
	}
	writers.Wait()
	found, f := p.points()
	ok(t, f)
	points, empty := found.points, found.empty
	seen := make(map[int64]bool)
	for _, pt := range points {
		seen[pt.seq] = true
	}
	if len(points) != 80 || len(seen) != 80 || len(empty) != 0 {
		t.Errorf("%d points, %d numbers, %d without a manifest", len(points), len(seen), len(empty))
	}
}

func TestCanonicalSortsAndKeeps(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		var strict jsonx.Strict
		if problem := strict.Check([]byte(text), maxDepth); !problem.OK() {
			t.Fatal(problem)
		}
		if got := string(Canonical(nil, []byte(text))); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f(` { "b" : [ 1.0 , -0 , 1e2 , true , null , "\/\u00e9\u2028\t" ] , "a\u0062" : { } , "a" : [ ] } `,
		"{\"a\":[],\"ab\":{},\"b\":[1.0,-0,1e2,true,null,\"/é\u2028\\t\"]}")
	f("{\"\U0001F600\":1,\"\uffff\":2}", "{\"\uffff\":2,\"\U0001F600\":1}")
	f(" 1 ", "1")
}

// TestWorkOfAnotherProcess: two have a project open that has no storage yet. What one of them
// leaves interrupted is not overwritten by the other; an open finds it. What ended does not matter.
func TestWorkOfAnotherProcess(t *testing.T) {
	for _, left := range []*State{
		{State: "Completed"},
		{State: "Paused", ActivePlanID: "a", Execution: &Execution{ID: "b", PlanID: "a", Next: 2, Entries: 1}},
	} {
		root := canonicalTemp(t)
		one, other := open(t, root, Options{}), open(t, root, Options{})
		for _, p := range []*Project{one, other} {
			if s, f := p.LoadState(); s != nil || f != nil {
				t.Fatalf("%v %v", s, f)
			}
		}
		ok(t, other.SaveState(left))
		want(t, one.SaveState(&State{}), "FS-005")
		other.Close()
		if left.Execution == nil {
			ok(t, one.SaveState(&State{State: "Idle"}))
			continue
		}
		for range 2 {
			want(t, one.SaveState(&State{}), "FS-005")
			_, f := one.NewPoint(id1, PlanPoint, now)
			want(t, f, "FS-005")
		}
		one.Close()
		again := open(t, root, Options{})
		if s, f := again.LoadState(); f != nil || !s.Proven || !reflect.DeepEqual(s.Execution, left.Execution) {
			t.Errorf("%+v %v", s, f)
		}
		ok(t, again.SaveState(&State{}))
	}
}

// TestSparseFilesOfStorage: what is larger than a file of the storage can be is not read.
func TestSparseFilesOfStorage(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	ok(t, p.SaveState(&State{}))
	_, f := p.NewPoint(id1, DiffSetPoint, now)
	ok(t, f)
	for _, rel := range []string{".exacta/state.json", ".exacta/rollback/" + id1 + "/manifest.json", "sparse"} {
		path := filepath.Join(root, rel)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 5<<30); err != nil {
			t.Skip(err) // the file system has no such files
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, f = p.LoadPoint(id1)
	want(t, f, "ST-002")
	_, f = p.LoadState()
	want(t, f, "ST-002")
	_, _, f = p.Read("sparse")
	want(t, f, "RES-002")
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes", n)
	}
}

// TestRecordAtItsLimit reads a state of as many bytes as it may have, and not one of one more.
func TestRecordAtItsLimit(t *testing.T) {
	root := canonicalTemp(t)
	p := open(t, root, Options{})
	ok(t, p.SaveState(&State{State: "Idle"}))
	path := filepath.Join(root, ".exacta/state.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, bytes.Repeat([]byte(" "), maxRecord-len(text))...)
	for _, code := range []string{"", "ST-002"} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, f := p.LoadState(); f == nil && code != "" || f != nil && f.Code != code {
			t.Errorf("%d bytes: %v, want %q", len(text), f, code)
		}
		text = append(text, ' ')
	}
}
