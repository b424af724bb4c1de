package conformance

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"trunkline/fuzz/kit"
)

// shot is a single-shot call being put together.
type shot struct {
	path string
	args []string
	in   string
	want *string
}

// single takes one directive of a single-shot call; "code" runs it.
func (s *script) single(word, rest string) {
	s.t.Helper()
	switch word {
	case "exec":
		s.shot = shot{path: kit.Program(s.t, scratch), args: strings.Fields(rest)}
	case "exec-as":
		f := strings.Fields(rest)
		link := s.path(f[0])
		s.must(os.MkdirAll(filepath.Dir(link), 0o755))
		os.Remove(link)
		s.must(os.Symlink(kit.Program(s.t, scratch), link))
		s.shot = shot{path: link, args: f[1:]}
	case "stdin":
		s.shot.in += unfold(rest) + "\n"
	case "stdin-raw":
		s.shot.in += s.unquote(rest)
	case "out":
		s.shot.want = &rest
	case "code":
		want, err := strconv.Atoi(rest)
		s.must(err)
		if s.shots++; (s.shots-1)%s.sample == 0 {
			s.fire(want)
		}
	}
}

// fire runs the call and compares. Nothing may be on stderr unless the call ends with 2 (toolhost
// §2.1).
func (s *script) fire(wantCode int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.shot.path, s.shot.args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Env = s.root, environ(s.env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(s.shot.in), &out, &errs
	cmd.Run()
	call := s.where() + " " + strings.Join(s.shot.args, " ") + "\nstdin " + clip(s.shot.in)
	if got := cmd.ProcessState.ExitCode(); got != wantCode {
		s.t.Errorf("%s\nexit code %d, want %d; stdout %s, stderr %s", call, got, wantCode, clip(out.String()), clip(errs.String()))
	}
	if wantCode != 2 && errs.Len() > 0 {
		s.t.Errorf("%s\nstderr must be empty, got %s", call, clip(errs.String()))
	}
	if s.shot.want == nil {
		if out.Len() > 0 {
			s.t.Errorf("%s\nstdout must be empty, got %s", call, clip(out.String()))
		}
		if wantCode == 2 && errs.Len() == 0 {
			s.t.Errorf("%s\nno usage on stderr", call)
		}
		return
	}
	if !matches(*s.shot.want+"\n", out.String(), s.kept) {
		s.t.Errorf("%s\nwant %s\n got %s", call, clip(*s.shot.want), clip(out.String()))
	}
}
