package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/fuzz/rounds"
)

// script holds one transcript over one transport. Its directives, one per line:
//
//	on stdio unix tcp       the transports of this file (default: all three)
//	env NAME=value          for what is started below; "env -" forgets all
//	fresh                   a new root directory
//	copy NAME ...           files of testdata/files into the root, $ROOT and $WORKER replaced
//	file NAME ... end       a file with the lines between
//	bytes NAME "quoted"     a file with these bytes
//	mkdir NAME / chmod 644 NAME / symlink TARGET NAME
//	let NAME text           stands for $NAME below
//	start ARGS              a server; the one before is ended and must end well
//	conn NAME               what follows is on this connection; "stdin": standard streams
//	> text                  sent with a line end
//	>> "quoted"             these bytes are sent, Go escapes
//	< text                  the next reply line; <int>, <hex32>, ... see pattern_test.go
//	half / shut             end the sending half, or the whole connection
//	closed                  the server closes (on stdio: exits with 0) and states nothing before
//	quiet 100ms             nothing comes
//	sleep 100ms / term      SIGTERM to the server
//	patience 40s            how long a reply may take from here on
//	exec ARGS               a single-shot call; "exec-as NAME ARGS" under another name
//	stdin text / stdin-raw "quoted"
//	sample N                but for the long form, only one single-shot call of N is made
//	out text / code N       run, compare stdout and exit code; stderr empty but for code 2
//	cat NAME / | text       the lines of a file, each matched by a | line
//	await NAME              a file that a tool makes is there
//	absent NAME             no such file
//	is MODE NAME            permission bits
//
// <x*1025> is 1025 times x everywhere.
type script struct {
	t        testing.TB
	over     string
	name     string
	line     int
	root     string
	env      []string
	kept     map[string]string
	srv      *server
	conns    map[string]*stream
	cur      string
	sent     string
	broken   bool // the stream's order is lost: skip to the next start
	termed   bool // the server was asked to end
	patience time.Duration
	shot     shot
	sample   int                       // one of so many single-shot calls is made
	shots    int                       // that there were
	split    func(s *stream, b []byte) // how bytes are written
}

func newScript(t testing.TB, over, path string) *script {
	s := &script{
		t: t, over: over, name: filepath.Base(path), kept: map[string]string{}, patience: 10 * time.Second, sample: 1,
	}
	s.root = newDir(t)
	s.split = (*stream).send
	return s
}

// runFile holds the transcript at path.
func (s *script) runFile(path string) {
	s.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for s.line = 1; s.line <= len(lines); s.line++ {
		line := lines[s.line-1]
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		rest = fill(rest, s.root, s.kept)
		switch word {
		case "file":
			s.line += s.writeBlock(rest, lines[s.line:])
		case "cat":
			s.line += s.cat(rest, lines[s.line:])
		default:
			s.do(word, rest)
		}
	}
	s.finish()
}

func (s *script) where() string {
	return fmt.Sprintf("%s:%d [%s]", s.name, s.line, s.over)
}

func (s *script) do(word, rest string) {
	s.t.Helper()
	switch word {
	case "on":
	case "sample":
		n, err := strconv.Atoi(rest)
		s.must(err)
		s.sample = rounds.Step(n, n)
	case "env":
		s.setEnv(rest)
	case "let":
		name, text, _ := strings.Cut(rest, " ")
		s.kept[name] = text
	case "patience":
		s.patience = s.duration(rest)
	case "sleep":
		time.Sleep(s.duration(rest))
	case "start":
		s.start(strings.Fields(rest))
	case "exec", "exec-as", "stdin", "stdin-raw", "out", "code":
		s.single(word, rest)
	case ">", ">>", "<", "conn", "half", "shut", "closed", "quiet", "term":
		if s.srv == nil {
			s.t.Fatalf("%s: no server", s.where())
		}
		if !s.broken {
			s.talk(word, rest)
		}
	default:
		s.prepare(word, rest)
	}
}

func (s *script) talk(word, rest string) {
	s.t.Helper()
	switch word {
	case "conn":
		s.use(rest)
	case ">":
		s.sent = rest
		s.split(s.conn(), []byte(unfold(rest)+"\n"))
	case ">>":
		s.sent = rest
		s.split(s.conn(), []byte(s.unquote(rest)))
	case "<":
		s.expect(rest)
	case "half":
		s.conn().halfClose()
	case "shut":
		s.conn().close()
		delete(s.conns, s.cur)
	case "closed":
		s.expectClosed()
	case "quiet":
		if got := s.conn().next(s.duration(rest)); got != silent {
			s.t.Errorf("%s: after %s\nwant nothing\n got %s", s.where(), clip(s.sent), clip(got))
		}
	case "term":
		s.termed = true
		s.srv.term()
	}
}

func (s *script) expect(want string) {
	s.t.Helper()
	got := s.conn().next(s.patience)
	if got == silent || got == ended {
		s.broken = true
	} else {
		checkReply(s.t, s.where(), got)
	}
	if !matches(want, got, s.kept) {
		s.t.Errorf("%s\nsent %s\nwant %s\n got %s", s.where(), clip(s.sent), clip(want), clip(got))
	}
}

func (s *script) expectClosed() {
	s.t.Helper()
	if got := s.conn().next(s.patience); got != ended {
		s.t.Errorf("%s: after %s\nwant the end of the stream\n got %s", s.where(), clip(s.sent), clip(got))
		s.broken = true
	}
	delete(s.conns, s.cur)
	if s.over == stdio {
		if code := s.srv.exit(s.patience); code != 0 {
			s.t.Errorf("%s: exit code %d, want 0; stderr: %s", s.where(), code, clip(s.srv.talk.String()))
		}
		s.srv = nil
	}
}

func (s *script) duration(text string) time.Duration {
	s.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatalf("%s: %v", s.where(), err)
	}
	return d
}

func (s *script) unquote(text string) string {
	s.t.Helper()
	out, err := strconv.Unquote(text)
	if err != nil {
		s.t.Fatalf("%s: %v in %s", s.where(), err, text)
	}
	return unfold(out)
}
