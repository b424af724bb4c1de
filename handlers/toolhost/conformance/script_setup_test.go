package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stdinName is the connection that stands for the standard streams of a server that listens too.
const stdinName = "stdin"

// start ends the server before and starts another one.
func (s *script) start(args []string) {
	s.t.Helper()
	s.finish()
	s.broken, s.termed = false, false
	s.srv = serve(s.t, s.over, s.root, s.env, args...)
	s.conns = map[string]*stream{}
	s.use("c")
}

func (s *script) use(name string) {
	s.t.Helper()
	s.cur = name
	switch {
	case s.conns[name] != nil:
	case name == stdinName:
		s.conns[name] = s.srv.io
	default:
		s.conns[name] = s.srv.dial(s.t)
	}
}

func (s *script) conn() *stream {
	s.t.Helper()
	s.use(s.cur)
	return s.conns[s.cur]
}

// finish ends the server: every stream is ended in order, and the process must end with 0.
func (s *script) finish() {
	s.t.Helper()
	if s.srv == nil {
		return
	}
	for name, c := range s.conns {
		if name == stdinName {
			continue
		}
		c.halfClose()
		if got := c.next(s.patience); got != ended && !s.broken {
			s.t.Errorf("%s: connection %s: %s, want its end", s.where(), name, clip(got))
		}
		c.close()
	}
	if s.over != stdio && !s.termed {
		s.srv.term()
	}
	if code := s.srv.exit(s.patience); code != 0 && !s.broken {
		s.t.Errorf("%s: the server ended with %d, want 0; stderr: %s", s.where(), code, clip(s.srv.talk.String()))
	}
	s.srv = nil
}

func (s *script) setEnv(rest string) {
	if rest == "-" {
		s.env = nil
		return
	}
	name, _, _ := strings.Cut(rest, "=")
	s.env = slices.DeleteFunc(slices.Clone(s.env), func(e string) bool { return strings.HasPrefix(e, name+"=") })
	s.env = append(s.env, rest)
}

// path is a name of a transcript inside the root.
func (s *script) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.root, name)
}

func (s *script) put(name string, content string) {
	s.t.Helper()
	path := s.path(name)
	s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	s.must(os.WriteFile(path, []byte(content), 0o644))
}

func (s *script) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.where(), err)
	}
}

func (s *script) await(path string) {
	s.t.Helper()
	for start := time.Now(); time.Since(start) < s.patience; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			return
		}
	}
	s.t.Fatalf("%s: %s did not come", s.where(), path)
}

func (s *script) prepare(word, rest string) {
	s.t.Helper()
	f := strings.Fields(rest)
	switch word {
	case "fresh":
		s.root = newDir(s.t)
	case "copy":
		s.copyFiles(f)
	case "bytes":
		name, quoted, _ := strings.Cut(rest, " ")
		s.put(name, s.unquote(quoted))
	case "mkdir":
		s.must(os.MkdirAll(s.path(rest), 0o755))
	case "chmod":
		mode, err := strconv.ParseUint(f[0], 8, 32)
		s.must(err)
		s.must(os.Chmod(s.path(f[1]), fs.FileMode(mode)))
	case "symlink":
		s.must(os.Symlink(f[0], s.path(f[1])))
	case "await":
		s.await(s.path(rest))
	case "absent":
		if _, err := os.Lstat(s.path(rest)); err == nil {
			s.t.Errorf("%s: %s is there", s.where(), rest)
		}
	case "is":
		st, err := os.Lstat(s.path(f[1]))
		if err != nil || strconv.FormatUint(uint64(st.Mode().Perm()), 8) != f[0] {
			s.t.Errorf("%s: %v, %v, want mode %s", s.where(), st, err, f[0])
		}
	default:
		s.t.Fatalf("%s: unknown directive %q", s.where(), word)
	}
}

func (s *script) copyFiles(names []string) {
	s.t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "files", name))
		s.must(err)
		s.put(name, strings.NewReplacer("$WORKER", worker, "$ROOT", s.root).Replace(string(text)))
	}
}

// writeBlock writes the lines up to "end" and returns how many lines it took.
func (s *script) writeBlock(name string, lines []string) int {
	s.t.Helper()
	n := slices.Index(lines, "end")
	if n < 0 {
		s.t.Fatalf("%s: file without end", s.where())
	}
	s.put(name, unfold(fill(strings.Join(lines[:n], "\n")+"\n", s.root, s.kept)))
	return n + 1
}

// cat compares the lines of a file with the | lines below and returns how many of them there are.
func (s *script) cat(name string, lines []string) int {
	s.t.Helper()
	n := 0
	for n < len(lines) && strings.HasPrefix(lines[n], "| ") {
		n++
	}
	b, err := os.ReadFile(s.path(name))
	got := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	if err != nil || len(got) != n {
		s.t.Errorf("%s: %s: %v, %d lines, want %d: %s", s.where(), name, err, len(got), n, clip(string(b)))
		return n
	}
	for i, line := range got {
		if want := fill(lines[i][2:], s.root, s.kept); !matches(want, line, s.kept) {
			s.t.Errorf("%s: %s line %d\nwant %s\n got %s", s.where(), name, i+1, clip(want), clip(line))
		}
	}
	return n
}
