package conformance

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/fuzz/kit"
)

// What docs/toolhost.md shows is run here with the real program, so that the page and the server
// cannot drift apart.

const (
	toolhostPage = "../../../docs/toolhost.md"
	pageSocket   = "/tmp/tools.sock" // replaced by a socket of the test's
)

// block is a code block of the page and the last line of prose before it.
type block struct {
	language, text, before string
}

func blocks(t *testing.T) (all []block) {
	t.Helper()
	page, err := os.ReadFile(toolhostPage)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "```")
	for i := 1; i < len(parts); i += 2 {
		language, text, _ := strings.Cut(parts[i], "\n")
		prose := strings.Split(strings.TrimSpace(parts[i-1]), "\n")
		all = append(all, block{language, text, prose[len(prose)-1]})
	}
	return all
}

var named = regexp.MustCompile("`([a-z]+\\.[a-z]+)`:$")

// page is the directory that everything happens in.
type page struct {
	t      *testing.T
	dir    string
	env    []string
	tokens map[string]string
}

func newPage(t *testing.T) *page {
	t.Helper()
	p := &page{t: t, dir: t.TempDir(), tokens: map[string]string{pageSocket: ""}}
	if testing.Short() {
		t.Skip("the page is run in full or not at all")
	}
	bin := t.TempDir()
	for _, name := range []string{"trunkline", "machina_cli", "machina_toolhost"} {
		if err := os.Symlink(kit.Program(t, scratch), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	p.tokens[pageSocket] = filepath.Join(p.dir, "s")
	p.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8"}
	for _, b := range blocks(t) {
		if m := named.FindStringSubmatch(b.before); m != nil {
			if err := os.WriteFile(filepath.Join(p.dir, m[1]), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

func (p *page) command(line string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-c", p.actual(line))
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// actual returns text with the page's tokens and paths replaced by the real ones.
func (p *page) actual(text string) string {
	for documented, real := range p.tokens {
		text = strings.ReplaceAll(text, documented, real)
	}
	return text
}

var token = regexp.MustCompile(`lease_[0-9a-f]{32}`)

// same compares what is documented with what came; … stands for anything within a line. A token of
// the page stands for the one that came in its place, from then on.
func (p *page) same(documented, got string) bool {
	if want, have := token.FindString(documented), token.FindString(got); want != "" && have != "" && p.tokens[want] == "" {
		p.tokens[want] = have
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(p.actual(documented)), "…", ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

func TestPageComparison(t *testing.T) {
	p := &page{t: t, tokens: map[string]string{}}
	f := func(documented, got string, want bool) {
		t.Helper()
		if p.same(documented, got) != want {
			t.Errorf("%s against %s: %v", documented, got, !want)
		}
	}
	a, b, c := "lease_"+strings.Repeat("a", 32), "lease_"+strings.Repeat("b", 32), "lease_"+strings.Repeat("c", 32)
	f(`{"a":1}`, `{"a":1}`, true)
	f(`{"a":1}`, `{"a":12}`, false)
	f(`{"a":…}`, `{"a":12}`, true)
	f(`{"a":…`, `{"a":12}`, true)
	f("a…", "a\nb", false)
	f(`.`, `x`, false)
	f(`"`+a+`"`, `"`+b+`"`, true)
	f(`"`+a+`"`, `"`+b+`"`, true)
	f(`"`+a+`"`, `"`+c+`"`, false)
}

// TestDocumentedTranscripts holds every conversation of the page with the server that its first
// line starts.
func TestDocumentedTranscripts(t *testing.T) {
	p := newPage(t)
	for _, b := range blocks(t) {
		if b.language == "transcript" {
			p.converse(strings.Split(strings.TrimSpace(b.text), "\n"))
		}
	}
}

func (p *page) converse(lines []string) {
	start := strings.TrimPrefix(lines[0], "$ ")
	if (strings.Contains(start, "pack.json") || strings.Contains(start, "python3")) && !p.canRun("python3") {
		p.t.Run(start, func(t *testing.T) { t.Skip("there is no python3 here") })
		return
	}
	cmd := p.command(start)
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = kit.Start(cmd)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	replies := bufio.NewReader(out)
	for line := range slices.Values(lines[1:]) {
		switch mark, rest, _ := strings.Cut(line, " "); mark {
		case ">":
			_, _ = io.WriteString(in, p.actual(rest)+"\n")
		case "<":
			got, err := replies.ReadString('\n')
			if got = strings.TrimSuffix(got, "\n"); err != nil || !p.same(rest, got) {
				p.t.Errorf("%s\ndocumented %s\nanswered   %s %v", start, rest, got, err)
			}
		default:
			p.t.Fatalf("cannot read the line %q", line)
		}
	}
	in.Close()
	if rest, _ := io.ReadAll(replies); len(rest) > 0 {
		p.t.Errorf("%s: unexpected %s", start, rest)
	}
	if err := cmd.Wait(); err != nil {
		p.t.Errorf("%s: %v", start, err)
	}
}

func (p *page) canRun(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// shown is one command of a console block, what it printed, and its exit status.
type shown struct {
	command string
	output  []string
	exit    int
}

func consoles(t *testing.T) (all []shown) {
	t.Helper()
	for _, b := range blocks(t) {
		if b.language != "console" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(b.text, "\n"), "\n") {
			command, isCommand := strings.CutPrefix(line, "$ ")
			code, isExit := strings.CutPrefix(line, "exit ")
			switch {
			case isCommand:
				all = append(all, shown{command: command})
			case isExit:
				all[len(all)-1].exit, _ = strconv.Atoi(code)
			default:
				all[len(all)-1].output = append(all[len(all)-1].output, line)
			}
		}
	}
	return all
}

// TestDocumentedCommands runs the page's commands in their order, its Python program among them.
func TestDocumentedCommands(t *testing.T) {
	p := newPage(t)
	python := p.canRun("python3")
	for _, s := range consoles(t) {
		usesPython := strings.Contains(s.command, "python3") || strings.Contains(s.command, "--run pack.json")
		if usesPython && !python {
			t.Run(s.command, func(t *testing.T) { t.Skip("there is no python3 here") })
			continue
		}
		if background, ok := strings.CutSuffix(s.command, " &"); ok {
			p.background(background, s.output)
			continue
		}
		cmd := p.command(s.command)
		got, _ := cmd.CombinedOutput()
		p.compare(s, string(got), cmd.ProcessState.ExitCode())
	}
}

func (p *page) compare(s shown, got string, exit int) {
	p.t.Helper()
	documented := strings.Join(s.output, "\n")
	if !p.same(documented, strings.TrimSuffix(got, "\n")) || exit != s.exit {
		p.t.Errorf("$ %s\ndocumented\n%s\nexit %d\nanswered\n%sexit %d", s.command, documented, s.exit, got, exit)
	}
}

// background starts a server and waits for what it states; it is ended when the test is.
func (p *page) background(command string, output []string) {
	p.t.Helper()
	cmd := p.command("exec " + command)
	says, err := cmd.StderrPipe()
	if err == nil {
		err = kit.Start(cmd)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("%s: %v", command, err)
		}
	})
	lines := bufio.NewReader(says)
	for _, documented := range output {
		if got, err := lines.ReadString('\n'); err != nil || !p.same(documented, strings.TrimSuffix(got, "\n")) {
			p.t.Fatalf("$ %s\ndocumented %s\nanswered   %s %v", command, documented, got, err)
		}
	}
}
