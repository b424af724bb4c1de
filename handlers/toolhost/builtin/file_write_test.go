package builtin

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const write = "AID.FILE.WRITE.v1"

func TestFileWrite(t *testing.T) {
	b := newBench(t)
	f := func(input, path, written, content string) {
		t.Helper()
		out := fmt.Sprintf(`{"ok":true,"path":%s,"written":%s,"bytes":%d}`, quote(path), quote("<base>/work/"+written), len(content))
		s := b.want(write, input, out)
		b.wantSlot(s, 0, sessionstate.Artifact{Type: "file_write", Provenance: "fs:write", Content: out, Size: int64(len(content))})
		if got := b.content("base/work/" + written); got != content {
			t.Errorf("%s: the file has %q", input, got)
		}
	}
	f(`{"path":"a.txt","content":"hi"}`, "a.txt", "a.txt", "hi") // toolhost §9 F
	f(`{"path":"x/y/z","content":""}`, "x/y/z", "x/y/z", "")
	f(`{"path":"<base>/work/n\u0065w","content":"ö\n\u0000"}`, "<base>/work/new", "new", "ö\n\x00")
	f(`{"path":"./x/../b.txt","content":"b"}`, "./x/../b.txt", "b.txt", "b")
	f(`{"path":"a.txt","content":"two","overwrite":true}`, "a.txt", "a.txt", "two")
	f(`{"path":"a.txt","content":"three","overwrite":true}`, "a.txt", "a.txt", "three")
	if got := b.content("base/work/a.txt.bak"); got != "two" {
		t.Errorf("the backup has %q", got)
	}
	f(`{"path":"fresh","content":"x","overwrite":true}`, "fresh", "fresh", "x")
	if got := b.content("base/work/fresh.bak"); got != "-" {
		t.Errorf("a new file has a backup: %q", got)
	}
	b.wantNoLeftovers("base/work")
}

// wantNoLeftovers checks that no temporary file is left in the directory name.
func (b *bench) wantNoLeftovers(name string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".tmp-") {
			b.t.Errorf("%s is left over", e.Name())
		}
	}
}

func TestFileWriteFailures(t *testing.T) {
	b := newBench(t)
	b.write("base/work/old", "old")
	b.write("base/work/dir/x", "x")
	f := func(input, text string) { t.Helper(); b.wantFail(write, input, text) }
	f(`{"content":"x"}`, "missing path")
	f(`{"path":"","content":"x"}`, "missing path")
	f(`{"path":"old","overwrite":true}`, "missing content")
	f(`{"path":"old","overwrite":true,"content":7}`, "missing content")
	f(`{"path":"../a.txt","content":"x"}`, "write path not allowed (outside write root): ../a.txt")
	f(`{"path":"../a.txt","content":"`+strings.Repeat("x", maxWrite+1)+`"}`, "write path not allowed (outside write root): ../a.txt")
	f(`{"path":"<base>/a.txt","content":"x"}`, "write path not allowed (outside write root): <base>/a.txt")
	f(`{"path":"<base>/workshop","content":"x"}`, "write path not allowed (outside write root): <base>/workshop")
	f(`{"path":"large","content":"`+strings.Repeat("x", maxWrite+1)+`"}`, "content too large (>1MB)")
	f(`{"path":"old","content":"x"}`, "file exists (overwrite=false): old")
	f(`{"path":"old","content":"x","overwrite":"true"}`, "file exists (overwrite=false): old")
	f(`{"path":"dir","content":"x"}`, "file exists (overwrite=false): dir")
	f(`{"path":"dir","content":"x","overwrite":true}`, "cannot write file: dir")
	f(`{"path":"old/x","content":"x"}`, "cannot write file: old/x")
	f(`{"path":"new/","content":"x"}`, "cannot write file: new/")
	f(`{"path":".","content":"x","overwrite":true}`, "cannot write file: .")
	f(`{"path":"no/such","content":"x","mkdirs":false}`, "cannot write file: no/such")
	f(`{"path":"n\u0000","content":"x"}`, "cannot write file: n\x00")
	for _, n := range []int{256, maxName + 1} {
		name := strings.Repeat("n", n)
		f(`{"path":"`+name+`","content":"x"}`, "cannot write file: "+name)
		f(`{"path":"`+name+`/x","content":"x"}`, "cannot write file: "+name+"/x")
	}
	if b.content("base/work/old") != "old" || b.content("base/a.txt") != "hello" {
		t.Error("a refused write changed a file")
	}
	b.wantNoLeftovers("base/work")
}

// backupOf returns the name of the backup beside the file name of base/work/dir, which are the only
// ones there.
func (b *bench) backupOf(dir, name string) string {
	b.t.Helper()
	entries, err := os.ReadDir(b.path("base/work/" + dir))
	if err != nil {
		b.t.Fatal(err)
	}
	found := ""
	for _, e := range entries {
		switch {
		case e.Name() == name || e.IsDir():
		case found != "":
			b.t.Errorf("a second backup: %s", e.Name())
		default:
			found = e.Name()
		}
	}
	return found
}

// TestFileWriteBackupNames: the old content is kept where <name>.bak cannot be had, and the backups
// of two files are two files.
func TestFileWriteBackupNames(t *testing.T) {
	b := newBench(t)
	over := func(name, content string) {
		t.Helper()
		input := fmt.Sprintf(`{"path":%s,"content":%s,"overwrite":true}`, quote(name), quote(content))
		if r := b.run(write, input, new(sessionstate.State)); r.Status() != tool.OK {
			t.Errorf("%.20s… of %d bytes: %v %.80s", name, len(name), r.Status(), r.ErrorText())
		}
	}
	f := func(dir, name string) (backup string) {
		t.Helper()
		for _, content := range []string{"one", "two", "three"} {
			over(dir+"/"+name, content)
		}
		backup = b.backupOf(dir, name)
		if old := b.content("base/work/" + dir + "/" + backup); old != "two" || b.content("base/work/"+dir+"/"+name) != "three" {
			t.Errorf("%.20s… of %d bytes: the backup %q has %q", name, len(name), backup, old)
		}
		if !utf8.ValidString(backup) || !strings.HasSuffix(backup, ".bak") {
			t.Errorf("the backup of %q is called %q", name, backup)
		}
		b.wantNoLeftovers("base/work/" + dir)
		return backup
	}
	for n := 250; n <= 255; n++ {
		backup := f(fmt.Sprint("ascii", n), strings.Repeat("n", n))
		if plain := strings.Repeat("n", n) + ".bak"; (backup == plain) != (n <= 251) {
			t.Errorf("the backup of a name of %d bytes is called %s", n, backup)
		}
	}
	f("wide", "nn"+strings.Repeat("ö", 126))
	f("wider", "nnn"+strings.Repeat("ö", 126))
	if f("taken1", strings.Repeat("n", 254)+"a") == f("taken2", strings.Repeat("n", 254)+"b") {
		t.Error("two files of one directory would have one backup")
	}
	b.write("base/work/busy/odd.bak/x", "a directory in the way")
	f("busy", "odd")
	if b.content("base/work/busy/odd.bak/x") != "a directory in the way" {
		t.Error("the directory is gone")
	}
}

// TestFileWriteAtTheLimits: the longest content, and the longest name.
func TestFileWriteAtTheLimits(t *testing.T) {
	b := newBench(t)
	f := func(name, content string, overwrite, ok bool) {
		t.Helper()
		r := b.run(write, fmt.Sprintf(`{"path":%s,"content":%s,"overwrite":%v}`, quote(name), quote(content), overwrite), new(sessionstate.State))
		if (r.Status() == tool.OK) != ok {
			t.Errorf("%.20s…, %d bytes: %v %.80s", name, len(content), r.Status(), r.ErrorText())
		}
	}
	f("large", strings.Repeat("ö", maxWrite/2), false, true)
	f(strings.Repeat("n", 255), "one", false, true)
	f(strings.Repeat("n", 256), "one", false, false)
	b.wantNoLeftovers("base/work")
}

func TestFileWriteKeepsPermissions(t *testing.T) {
	b := newBench(t)
	b.write("base/work/run.sh", "old")
	if err := os.Chmod(b.path("base/work/run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.run(write, `{"path":"run.sh","content":"new","overwrite":true}`, new(sessionstate.State))
	if st, err := os.Stat(b.path("base/work/run.sh")); err != nil || st.Mode().Perm() != 0o750 || b.content("base/work/run.sh") != "new" {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

// TestFileWriteMkdirsFalse: without mkdirs a file still goes into a directory that is there.
func TestFileWriteMkdirsFalse(t *testing.T) {
	b := newBench(t)
	b.wantFail(write, `{"path":"a","content":"x","mkdirs":false}`, "cannot write file: a")
	b.write("base/work/dir/x", "x")
	b.want(write, `{"path":"dir/a","content":"x","mkdirs":false}`, `{"ok":true,"path":"dir/a","written":"<base>/work/dir/a","bytes":1}`)
}

func TestWriteRoot(t *testing.T) {
	b := newBench(t)
	f := func(writeRoot, written string) {
		t.Helper()
		b.setEnv(map[string]string{"MACHINA_FS_WRITE_ROOT": writeRoot})
		b.want(write, `{"path":"d/new","content":"x"}`, `{"ok":true,"path":"d/new","written":`+quote(b.path(written))+`,"bytes":1}`)
		b.wantFail(write, `{"path":"../new","content":"x"}`, "write path not allowed (outside write root): ../new")
	}
	f("out", "base/out/d/new")
	f(b.path("base/abs"), "base/abs/d/new")
	f(b.path("elsewhere"), "elsewhere/d/new") // the operator's choice
	b.wantFail(write, `{"path":"<base>/work/new","content":"x"}`, "write path not allowed (outside write root): <base>/work/new")
}

// TestConcurrentCreation: of many that create a file at once exactly one succeeds, and its content
// is there whole.
func TestConcurrentCreation(t *testing.T) {
	b := newBench(t)
	const writers = 16
	var wg sync.WaitGroup
	results := make([]tool.Result, writers)
	for i := range writers {
		wg.Go(func() {
			results[i] = b.run(write, fmt.Sprintf(`{"path":"p/q/one","content":"by %d"}`, i), new(sessionstate.State))
		})
	}
	wg.Wait()
	won := -1
	for i, r := range results {
		switch {
		case r.Status() == tool.OK && won < 0:
			won = i
		case r.ErrorText() != "file exists (overwrite=false): p/q/one":
			t.Errorf("writer %d: %v %q, after %d", i, r.Status(), r.ErrorText(), won)
		}
	}
	if got, want := b.content("base/work/p/q/one"), fmt.Sprintf("by %d", won); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.wantNoLeftovers("base/work/p/q")
}
