package builtin

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// swap exchanges what the paths a and b name, again and again, until the function it returns is
// called.
func swap(t *testing.T, a, b string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if os.Rename(a, a+".swap") != nil || os.Rename(b, a) != nil || os.Rename(a+".swap", b) != nil {
				t.Error("cannot swap")
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// alternate gives the name of the file at name to the files at others in turn, without a moment in
// which nothing has it, until the function it returns is called.
func alternate(t *testing.T, name string, others ...string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if os.Link(others[i%len(others)], name+".next") != nil || os.Rename(name+".next", name) != nil {
				t.Error("cannot alternate")
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// TestReadWhileLinksAppear: a directory, and a file, are exchanged for links to the outside while
// they are read.
func TestReadWhileLinksAppear(t *testing.T) {
	b := newBench(t)
	b.write("outside/b.txt", secret)
	b.link("../outside", "base/evil")
	b.link("../outside/secret", "base/evil.txt")
	hidden := base64.StdEncoding.EncodeToString([]byte(secret))
	f := func(path, data string, stop func()) {
		t.Helper()
		defer stop()
		seen := make(map[string]int)
		for range 4000 {
			r := b.run(read, `{"path":"`+path+`"}`, new(sessionstate.State))
			switch {
			case strings.Contains(string(r.Output), hidden):
				t.Fatalf("%s: the secret was read", path)
			case r.Status() == tool.OK && !strings.Contains(string(r.Output), base64.StdEncoding.EncodeToString([]byte(data))):
				t.Fatalf("%s: %s", path, r.Output)
			}
			seen[strings.SplitN(r.ErrorText(), ":", 2)[0]]++
		}
		if len(seen) < 2 {
			t.Logf("%s: nothing was exchanged meanwhile: %v", path, seen)
		}
	}
	f("sub/b.txt", "deep", swap(t, b.path("base/sub"), b.path("base/evil")))
	b.write("base/honest.txt", "hello")
	f("a.txt", "hello", alternate(t, b.path("base/a.txt"), b.path("base/honest.txt"), b.path("base/evil.txt")))
}

// TestWriteWhileLinksAppear: the directory that is written to is exchanged for a link to the
// outside.
func TestWriteWhileLinksAppear(t *testing.T) {
	b := newBench(t)
	b.write("base/work/d/x", "x")
	b.link("../../outside", "base/work/evil")
	stop := swap(t, b.path("base/work/d"), b.path("base/work/evil"))
	for i := range 1000 { // without mkdirs, which would make the directory in the moment it is away
		b.run(write, fmt.Sprintf(`{"path":"d/%d","content":"x","mkdirs":false}`, i), new(sessionstate.State))
		b.run(write, `{"path":"d/secret","content":"x","overwrite":true,"mkdirs":false}`, new(sessionstate.State))
	}
	stop()
	b.wantUntouched()
}

// TestOpenWhatAppeared: what takes the place of a file between the look at it and its opening is
// neither waited for nor used.
func TestOpenWhatAppeared(t *testing.T) {
	b := newBench(t)
	if err := unix.Mkfifo(b.path("base/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.link("a.txt", "base/link")
	d, err := newRoot(b.path("base")).dir(".", false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	f := func(name string, flag int, want error) {
		t.Helper()
		if file, err := d.openUnseen(name, flag, 0); err != want {
			t.Errorf("%s: got %v, want %v", name, err, want)
		} else if err == nil {
			file.Close()
		}
	}
	f("a.txt", os.O_RDONLY, nil)
	f("fifo", os.O_RDONLY, errNotRegular)
	f("fifo", os.O_RDWR, errNotRegular)
	f("fifo", os.O_WRONLY, unix.ENXIO)
	f("sub", os.O_RDONLY, errNotRegular)
	f("sub", os.O_RDWR, unix.EISDIR)
	f("link", os.O_RDONLY, errLink)
	f("link", os.O_WRONLY|os.O_CREATE, errLink)
	f("gone", os.O_RDWR, unix.ENOENT)
}

// TestCreateWhileFilesAppear: without overwrite a file that someone else creates meanwhile is
// never replaced.
func TestCreateWhileFilesAppear(t *testing.T) {
	b := newBench(t)
	b.write("base/work/x", "")
	for i := range 300 {
		name := fmt.Sprintf("base/work/f%d", i)
		var wg sync.WaitGroup
		theirs := false
		wg.Go(func() {
			f, err := os.OpenFile(b.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if theirs = err == nil; theirs {
				_, _ = f.WriteString("theirs")
				f.Close()
			}
		})
		r := b.run(write, fmt.Sprintf(`{"path":"f%d","content":"ours"}`, i), new(sessionstate.State))
		wg.Wait()
		want := "ours"
		if theirs {
			want = "theirs"
		}
		if got := b.content(name); got != want || (r.Status() == tool.OK) == theirs {
			t.Fatalf("%d: %q, theirs %v, status %v %s", i, got, theirs, r.Status(), r.ErrorText())
		}
	}
}
