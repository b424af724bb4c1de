package builtin

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

const (
	notAllowed  = "read path not allowed (outside MACHINA_ROOT): "
	cannotOpen  = "cannot open file: "
	readError   = "read error: "
	noWrite     = "write path not allowed (outside write root): "
	cannotWrite = "cannot write file: "
)

// wantEscape checks that the three tools that read files refuse path with that text, and that
// nothing of it is in a reply.
func (b *bench) wantEscape(path, text string) {
	b.t.Helper()
	path = strings.ReplaceAll(path, "<base>", b.path("base"))
	b.wantFail(read, `{"path":`+quote(path)+`}`, text+path)
	b.wantFail("AID.HASH.DIGEST.v1", `{"path":`+quote(path)+`}`, text+path)
	if text == readError {
		text = cannotOpen
	}
	b.wantFail("AID.ERROR_SCAN.v1", `{"pattern":"e","input_path":`+quote(path)+`}`, text+path)
}

func TestNamesThatLeadOut(t *testing.T) {
	b := newBench(t)
	b.write("base2/x", secret) // its path begins with the root's
	for _, path := range []string{
		"..", "../", "../outside/secret", "sub/../../outside/secret", "sub/../../base/a.txt", "./.././outside/secret", "//../outside",
		"a.txt/../../outside/secret", "nope/../../outside/secret", strings.Repeat("../", 100) + "etc/passwd",
		"/", "/etc/passwd", "//etc/passwd", "/dev/zero", "/dev/stdin", "/dev/fd/0", "/proc/self/environ", "/proc/self/root/etc/passwd", "/proc/self/cwd",
		"<base>/../outside/secret", "<base>/sub/../../outside/secret", "<base>2/x", "<base>/../base2/x", "<base>/..",
	} {
		b.wantEscape(path, notAllowed)
	}
}

func TestNamesThatNoFileHas(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{
		strings.Repeat("n", 256), "sub/" + strings.Repeat("n", 256), strings.Repeat("n", 256) + "/x", strings.Repeat("n/", 2100),
		"a.txt\x00", "\x00", "sub\x00/../a.txt", "/etc/passwd\x00", "a.txt/", "a.txt/.", "a.txt//", "nope/", " ", "a.txt ",
	} {
		b.wantEscape(path, cannotOpen)
	}
}

func TestLinks(t *testing.T) {
	b := newBench(t)
	b.link("../outside", "base/out")
	b.link(b.path("outside"), "base/out-abs")
	b.link("../outside/secret", "base/file-out")
	b.link("/", "base/slash")
	b.link("a.txt", "base/file-in")
	b.link("nope", "base/dangling")
	b.link("../nope", "base/dangling-out")
	b.link("sub", "base/in")
	b.link(b.path("base/sub"), "base/in-abs")
	b.link("../base/sub", "base/around")
	b.link("../in/../in", "base/sub/back")
	b.link("/proc/self/cwd", "base/magic")
	b.link("loop", "base/loop")
	b.link("out", "base/two-steps")

	for _, path := range []string{
		"out/secret", "out-abs/secret", "two-steps/secret", "file-out", "out", "out/", "slash", "slash/etc/passwd",
		"dangling-out", "out/nope", "out/../a.txt/../../x", "around/b.txt", "magic/x", "magic", "<base>/out/secret", "in/../out/secret",
	} {
		b.wantEscape(path, notAllowed)
	}
	for _, path := range []string{"file-in", "dangling", "in/nope", "loop", "loop/x", "in"} {
		b.wantEscape(path, cannotOpen)
	}
	f := func(path, resolved string) {
		t.Helper()
		b.want(read, `{"path":`+quote(path)+`}`, readOutput(path, "<base>/"+resolved, "deep", false))
	}
	f("in/b.txt", "sub/b.txt")
	f("in-abs/b.txt", "sub/b.txt")
	f("sub/back/b.txt", "sub/b.txt")
	f("sub/back/back/../back/b.txt", "sub/b.txt")
	f("out/../sub/b.txt", "sub/b.txt") // ".." takes away the name before it, not where that leads
}

// TestTooManyLinks: exactly maxLinks are followed.
func TestTooManyLinks(t *testing.T) {
	b := newBench(t)
	b.link("sub", "base/l1")
	for i := 2; i <= maxLinks+1; i++ {
		b.link(fmt.Sprintf("l%d", i-1), fmt.Sprintf("base/l%d", i))
	}
	at, over := fmt.Sprintf("l%d/b.txt", maxLinks), fmt.Sprintf("l%d/b.txt", maxLinks+1)
	b.want(read, `{"path":"`+at+`"}`, readOutput(at, "<base>/sub/b.txt", "deep", false))
	b.wantEscape(over, cannotOpen)
}

func TestNotRegular(t *testing.T) {
	b := newBench(t)
	if err := unix.Mkfifo(b.path("base/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if fd, err := unix.Open(b.path("base"), unix.O_RDONLY, 0); err == nil { // a short name: addresses of sockets are short
		defer unix.Close(fd)
		if l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/socket", fd)); err == nil {
			defer l.Close()
			b.wantEscape("socket", readError)
		}
	}
	b.wantEscape("fifo", readError) // and does not wait for a writer
	b.wantEscape("sub", readError)
	b.wantEscape("<base>/", readError)
	b.setEnv(map[string]string{"MACHINA_ROOT": "/dev"})
	b.wantEscape("zero", readError)
	b.wantEscape("/dev/tty", readError)
}

// TestHardLink: a second name of a file from outside is a file of the root; no one can show.
func TestHardLink(t *testing.T) {
	b := newBench(t)
	if err := os.Link(b.path("outside/secret"), b.path("base/second")); err != nil {
		t.Skip(err)
	}
	b.want(read, `{"path":"second"}`, readOutput("second", "<base>/second", secret, false))
}

// TestRootIsALink: the operator may name the root by a link. Callers may use either spelling,
// results use the operator's.
func TestRootIsALink(t *testing.T) {
	b := newBench(t)
	b.link("base", "alias")
	b.setEnv(map[string]string{"MACHINA_ROOT": b.path("alias")})
	f := func(path string) {
		t.Helper()
		b.want(read, `{"path":`+quote(path)+`}`, readOutput(path, b.path("alias/sub/b.txt"), "deep", false))
	}
	f("sub/b.txt")
	f(b.path("alias/sub/b.txt"))
	f(b.path("base/sub/b.txt"))
	b.wantEscape(b.path("alias/../outside/secret"), notAllowed)
	b.wantEscape("../outside/secret", notAllowed)
	b.want(write, `{"path":"n","content":"x"}`, `{"ok":true,"path":"n","written":`+quote(b.path("alias/work/n"))+`,"bytes":1}`)
}

func TestRootOfTheSystem(t *testing.T) {
	b := newBench(t)
	b.setEnv(map[string]string{"MACHINA_ROOT": "/"})
	b.want(read, `{"path":"<base>/sub/b.txt"}`, readOutput("<base>/sub/b.txt", "<base>/sub/b.txt", "deep", false))
	b.wantFail(read, `{"path":"../x"}`, notAllowed+"../x")
}

func TestRootIsMissing(t *testing.T) {
	b := newBench(t)
	b.setEnv(map[string]string{"MACHINA_ROOT": b.path("later")})
	b.wantEscape("a.txt", cannotOpen)
	b.wantEscape("/etc/passwd", notAllowed)
	b.write("later/a.txt", "deep")
	b.want(read, `{"path":"a.txt"}`, readOutput("a.txt", b.path("later/a.txt"), "deep", false))
}

func TestWritesThatLeadOut(t *testing.T) {
	b := newBench(t)
	b.write("base/work/x", "x")
	b.link("../../outside", "base/work/out")
	b.link("../../outside/secret", "base/work/file-out")
	b.link("../sub", "base/work/beside") // in the root, but not in the write root
	b.link("x", "base/work/file-in")
	b.link("nope", "base/work/dangling")
	if err := unix.Mkfifo(b.path("base/work/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := func(path, text string) {
		t.Helper()
		for _, overwrite := range []string{"false", "true"} {
			b.wantFail(write, `{"path":`+quote(path)+`,"content":"x","overwrite":`+overwrite+`}`, text+path)
		}
	}
	for _, path := range []string{
		"../x", "..", "/etc/x", "/dev/null", "/proc/self/mem", "out/secret", "out/new", "out/new/er", "beside/b.txt", "beside/new", "file-out",
		"x/../../../outside/new", b.path("outside/new"), b.path("base/work/../a.txt"), b.path("base/work2"), "out",
	} {
		f(path, noWrite)
	}
	for _, path := range []string{"file-in", "dangling", "x/", "x/y", "\x00", "a\x00b"} {
		f(path, cannotWrite)
	}
	b.wantFail(write, `{"path":"fifo","content":"x","overwrite":true}`, cannotWrite+"fifo")
	b.wantUntouched()
	if got := b.content("base/work/x"); got != "x" {
		t.Errorf("a link was followed: %q", got)
	}
}

// wantUntouched checks that outside has what it had.
func (b *bench) wantUntouched() {
	b.t.Helper()
	entries, err := os.ReadDir(b.path("outside"))
	if err != nil || len(entries) != 1 || b.content("outside/secret") != secret {
		b.t.Errorf("outside has changed: %v %v %q", entries, err, b.content("outside/secret"))
	}
}

// TestWriteRootIsALink: where the write root is a place in the root, a link there must not lead out
// of the root.
func TestWriteRootIsALink(t *testing.T) {
	b := newBench(t)
	b.link("../outside", "base/work")
	b.wantFail(write, `{"path":"new","content":"x"}`, noWrite+"new")
	b.setEnv(map[string]string{"MACHINA_FS_WRITE_ROOT": b.path("base/work/deeper")})
	b.wantFail(write, `{"path":"new","content":"x"}`, noWrite+"new")
	b.wantUntouched()
	b.link("sub", "base/w")
	b.setEnv(map[string]string{"MACHINA_FS_WRITE_ROOT": "w"})
	b.want(write, `{"path":"new","content":"x"}`, `{"ok":true,"path":"new","written":"<base>/w/new","bytes":1}`)
	if got := b.content("base/sub/new"); got != "x" {
		t.Errorf("got %q", got)
	}
}

// TestBackupIsALink: the backup takes the place of a link, it does not go where that leads.
func TestBackupIsALink(t *testing.T) {
	b := newBench(t)
	b.write("base/work/x", "old")
	b.link("../../outside/secret", "base/work/x.bak")
	b.run(write, `{"path":"x","content":"new","overwrite":true}`, new(sessionstate.State))
	b.wantUntouched()
	if b.content("base/work/x") != "new" || b.content("base/work/x.bak") != "old" {
		t.Errorf("got %q, backup %q", b.content("base/work/x"), b.content("base/work/x.bak"))
	}
}

// TestBackupIsTheSameFile: name and backup may be two names of one file, after a crash between two
// steps.
func TestBackupIsTheSameFile(t *testing.T) {
	b := newBench(t)
	b.write("base/work/x", "old")
	if err := os.Link(b.path("base/work/x"), b.path("base/work/x.bak")); err != nil {
		t.Skip(err)
	}
	if r := b.run(write, `{"path":"x","content":"new","overwrite":true}`, new(sessionstate.State)); r.Status() != tool.OK {
		t.Fatal(r.ErrorText())
	}
	if b.content("base/work/x") != "new" || b.content("base/work/x.bak") != "old" {
		t.Errorf("got %q, backup %q", b.content("base/work/x"), b.content("base/work/x.bak"))
	}
	b.wantNoLeftovers("base/work")
}

// TestNothingStaysOpen: whatever becomes of a call, its files are closed.
func TestNothingStaysOpen(t *testing.T) {
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip("no /dev/fd")
	}
	b := newBench(t)
	b.link("sub", "base/in")
	b.link("../outside", "base/out")
	b.link("a.txt", "base/file-in")
	all := func() {
		for _, path := range []string{"a.txt", "in/b.txt", "out/secret", "file-in", "nope/x", "sub", "a.txt/x", ".", "in", "in/"} {
			for aid, input := range map[string]string{
				read: `{"path":%s}`, "AID.HASH.DIGEST.v1": `{"path":%s}`, "AID.ERROR_SCAN.v1": `{"pattern":"x","input_path":%s}`,
				write: `{"content":"x","overwrite":true,"path":%s}`,
			} {
				b.run(aid, fmt.Sprintf(input, quote(path)), new(sessionstate.State))
			}
		}
	}
	all()
	before := countEntries("/dev/fd")
	for range 20 {
		all()
	}
	if after := countEntries("/dev/fd"); after > before+5 { // the test program itself may open some
		t.Errorf("%d files open, %d before", after, before)
	}
}

func TestWithin(t *testing.T) {
	dir := t.TempDir()
	f := func(path string, inside bool) {
		t.Helper()
		r := newRoot(dir).within(path)
		if (r.outer != nil) != inside || r.path != path {
			t.Errorf("%s: %+v", path, r)
		}
	}
	f(dir, true)
	f(filepath.Join(dir, "a"), true)
	f(dir+"2", false)
	f(filepath.Dir(dir), false)
	f("/", false)
}
