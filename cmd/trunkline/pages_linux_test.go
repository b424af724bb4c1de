package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// TestPages runs the commands of the pages as a person would: one shell from the first block of a
// page to the last, with the servers that the page starts. What comes has to be what the page
// shows, see namedForms. The ports are those of the page, on a loopback address of the page's own.
// Without a program that a block needs, such as curl, the block is left out.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("pages are run in full or not at all")
	}
	for page, needs := range heldPages {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			for _, program := range append(needs, "sh") {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("there is no %s here", program)
				}
			}
			text, blocks := readPage(t, "../../"+page)
			newTour(t, page, text).walk(blocks)
		})
	}
}

// pageTour is one page being run.
type pageTour struct {
	t     *testing.T
	page  string
	like  *likeness
	names *strings.Replacer // what stands in the page to what it is here
	back  *strings.Replacer
	dir   string
	env   []string
	// threads has the addresses of agent threads, which have a key with --dev alone.
	threads []string

	shell   io.Writer
	said    *pageOutput
	read    int // how much of it is compared
	turns   int
	scripts string

	server *pageProgram
	beside []besideRun
}

// besideRun is a command that runs beside others.
type besideRun struct {
	*pageProgram
	shown pageCommand
}

// optional are programs that a block may need and a machine may lack.
var optional = regexp.MustCompile(`\b(curl|python3|jq|openssl|kubectl|docker|make)\b`)

func newTour(t *testing.T, page, text string) *pageTour {
	t.Helper()
	root, err := os.MkdirTemp("", "page") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	p := &pageTour{t: t, page: page, like: newLikeness(text), dir: root + "/w", scripts: root + "/s"}
	for _, dir := range []string{p.dir, p.dir + "/bin", p.scripts, root + "/t", root + "/h"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	serves := strings.Contains(text, "trunkline serve") || strings.Contains(text, "make cluster-demo")
	host := "127.0.0.1"
	if serves {
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	}
	p.names = strings.NewReplacer("127.0.0.1", host, "/tmp/", root+"/t/", "/srv/demo", p.dir)
	p.back = strings.NewReplacer(host, "127.0.0.1", root+"/t/", "/tmp/", p.dir, "/srv/demo")
	p.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root + "/h", "TMPDIR=" + root + "/t", "LANG=C.UTF-8", "NO_COLOR=1"}
	if serves {
		p.env = append(append(p.env, listenOn(host)...), "TRUNKLINE_LOG_FORMAT=text") // as on a terminal
	}
	p.threads = []string{"TRUNKLINE_THREADS_LISTEN_ADDR=" + host + ":3000", "TRUNKLINE_THREADS_LINES_ADDR=" + host + ":3001"}
	if strings.Contains(text, "$ make ") { // it begins at the top of the repository, where nothing may be left
		p.back = strings.NewReplacer(host, "127.0.0.1", root+"/t/", "/tmp/", p.dir+"/", "")
		p.env = append(p.env, "BINARY="+p.dir+"/bin/trunkline", "DEMO_HOST="+host, "TRUNKLINE_STORE_DIR="+p.dir+"/trunkline-data")
		for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS", "GOROOT"} {
			if out, err := exec.Command("go", "env", name).Output(); err == nil {
				p.env = append(p.env, name+"="+strings.TrimSpace(string(out)))
			}
		}
		if p.dir, err = filepath.Abs("../.."); err != nil {
			t.Fatal(err)
		}
	}
	p.openShell()
	return p
}

func (p *pageTour) openShell() {
	p.t.Helper()
	cmd := p.command("sh")
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.shell = in
	p.said = p.begin(cmd).pageOutput
}

// pageProgram is what a page has started.
type pageProgram struct {
	*pageOutput
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *pageTour) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	return cmd
}

// begin starts a program; it and what it started end with the test at the latest.
func (p *pageTour) begin(cmd *exec.Cmd) *pageProgram {
	p.t.Helper()
	started := &pageProgram{pageOutput: new(pageOutput), cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = started.pageOutput, started.pageOutput
	if err := kit.Start(cmd); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(started.done)
		_ = cmd.Wait()
	}()
	p.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-started.done
	})
	return started
}

// stop ends a program and what it started in order.
func (s *pageProgram) stop(t *testing.T) {
	t.Helper()
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
	s.wait(t)
}

func (s *pageProgram) wait(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(waitFor):
		t.Fatalf("%s does not end:\n%s", s.cmd, s.String())
	}
}

// pageOutput collects what programs write.
type pageOutput struct{ kit.Text }

// until waits for an output that is enough, and reports whether it came.
func (o *pageOutput) until(enough func(string) bool) bool {
	for deadline := time.Now().Add(waitFor); !enough(o.String()); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// walk runs the blocks of the page in their order.
func (p *pageTour) walk(blocks []pageBlock) {
	for _, b := range blocks {
		if strings.HasPrefix(b.mark, markNotRun) {
			continue
		}
		if name, ok := strings.CutPrefix(b.mark, markFile); ok {
			if err := os.WriteFile(filepath.Join(p.dir, name), []byte(p.names.Replace(b.text)), 0o600); err != nil {
				p.t.Fatal(err)
			}
			continue
		}
		if b.mark == markStop {
			p.endServer(b)
			continue
		}
		if b.language != "console" {
			continue
		}
		if missing := p.missing(b.text); missing != "" {
			p.t.Logf("%s:%d is not run: there is no %s here", p.page, b.line, missing)
			continue
		}
		p.block(b)
	}
	for _, s := range p.beside {
		s.wait(p.t)
		p.compare(s.shown, s.String())
	}
	if p.server != nil {
		p.server.stop(p.t)
	}
}

// missing returns the first program that a block uses and this machine has not.
func (p *pageTour) missing(text string) string {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "$ ") {
			continue
		}
		for _, name := range optional.FindAllString(line, -1) {
			if _, err := exec.LookPath(name); err != nil {
				return name
			}
		}
	}
	return ""
}

func (p *pageTour) block(b pageBlock) {
	all, err := b.commands()
	if err != nil {
		p.t.Fatalf("%s: %v", p.page, err)
	}
	switch b.mark {
	case markServer, markBeside:
		if len(all) != 1 {
			p.t.Fatalf("%s:%d: one command stays, not %d", p.page, b.line, len(all))
		}
		p.stay(b.mark, all[0])
		return
	case "":
	default:
		command, ok := strings.CutPrefix(b.mark, markWith)
		if !ok {
			p.t.Fatalf("%s:%d: unknown mark %q", p.page, b.line, b.mark)
		}
		p.stay(markServer, pageCommand{b.line, command, "...\n00:00:00 INF serving settings=\"3 from defaults\""})
	}
	for _, c := range all {
		p.compare(c, p.run(c.command))
	}
}

// stay starts what runs while the page goes on. All that is shown of a server comes first, of
// another command its first line.
func (p *pageTour) stay(mark string, c pageCommand) {
	if mark == markServer && p.server != nil {
		p.server.stop(p.t)
	}
	cmd := p.command("sh", "-c", p.actual(c.command))
	if strings.Contains(c.command, " --dev") {
		cmd.Env = append(cmd.Env, p.threads...)
	}
	started := p.begin(cmd)
	shown := c.text
	if mark == markBeside {
		shown, _, _ = strings.Cut(shown, "\n")
		p.beside = append(p.beside, besideRun{started, c})
	} else {
		p.server = started
	}
	if !started.until(func(got string) bool { return p.like.matches(shown, p.back.Replace(wholeLines(got)), true) }) {
		p.t.Fatalf("%s:%d: $ %s\nthe page has\n%s\ngot\n%s", p.page, c.line, c.command, shown, p.back.Replace(started.String()))
	}
}

func wholeLines(text string) string { return text[:strings.LastIndex(text, "\n")+1] }

func (p *pageTour) endServer(b pageBlock) {
	p.server.stop(p.t)
	got := p.back.Replace(p.server.String())
	p.server = nil
	lines := strings.SplitAfter(strings.TrimSuffix(got, "\n"), "\n")
	want := strings.TrimSuffix(b.text, "\n")
	if n := strings.Count(want, "\n") + 1; n <= len(lines) {
		got = strings.Join(lines[len(lines)-n:], "")
	}
	p.compare(pageCommand{line: b.line, command: "SIGTERM", text: want}, got)
}

func (p *pageTour) actual(command string) string { return p.like.actual(p.names.Replace(command)) }

func (p *pageTour) compare(c pageCommand, got string) {
	p.t.Helper()
	got = p.back.Replace(got)
	if !strings.Contains(c.text, " is in use") {
		got = addressInUse().ReplaceAllString(got, "") // by a server of another test
	}
	if !p.like.matches(c.text, got, false) {
		p.t.Errorf("%s:%d: $ %s\nthe page has\n%s\ngot\n%s", p.page, c.line, c.command, c.text, got)
	}
}

// addressInUse is the warning of 'config check' that depends on what else runs on the machine.
func addressInUse() *regexp.Regexp { return regexp.MustCompile(`(?m)^warning: \S+: \S+ is in use\n`) }

// run has the shell of the page run a command, and returns what was printed until it ended. The
// next command finds its exit status.
func (p *pageTour) run(command string) string {
	p.t.Helper()
	p.turns++
	script := fmt.Sprintf("%s/%d", p.scripts, p.turns)
	if err := os.WriteFile(script, []byte("(exit ${page_status:-0})\n"+p.actual(command)+"\n"), 0o600); err != nil {
		p.t.Fatal(err)
	}
	end := fmt.Sprintf("\x1e%d\x1e\n", p.turns)
	if _, err := fmt.Fprintf(p.shell, ". %s </dev/null; page_status=$?; printf '\\036%d\\036\\n'\n", script, p.turns); err != nil {
		p.t.Fatal(err)
	}
	if !p.said.until(func(got string) bool { return strings.Contains(got[p.read:], end) }) {
		p.t.Fatalf("%s: $ %s\ndoes not end:\n%s", p.page, command, p.said.String()[p.read:])
	}
	got, _, _ := strings.Cut(p.said.String()[p.read:], end)
	p.read += len(got) + len(end)
	return got
}
