package builtin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/sessionstate"
	"trunkline/handlers/toolhost/tool"
)

// bench is a folder with a root and something beside it that no one may see: the text of
// outside/secret.
type bench struct {
	t    testing.TB
	env  *Env
	dir  string
	byID map[string]Builtin
}

const secret = "nobody may see this"

func newBench(t testing.TB) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir}
	b.write("outside/secret", secret)
	b.write("base/a.txt", "hello")
	b.write("base/sub/b.txt", "deep")
	b.setEnv(nil)
	return b
}

// setEnv makes the tools from the variables given; the root is base unless they state otherwise.
func (b *bench) setEnv(vars map[string]string) {
	b.t.Helper()
	env, err := EnvFrom(func(name string) string { return vars[name] }, filepath.Join(b.dir, "base"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.env, b.byID = env, make(map[string]Builtin)
	for _, tl := range Builtins(env) {
		b.byID[tl.AID] = tl
	}
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, content string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// link makes the symbolic link name, a path in the bench, state target as it is.
func (b *bench) link(target, name string) {
	b.t.Helper()
	if err := os.Symlink(target, b.path(name)); err != nil {
		b.t.Fatal(err)
	}
}

// content returns what is in the file name, a path in the bench; "-" if there is none.
func (b *bench) content(name string) string {
	data, err := os.ReadFile(b.path(name))
	if err != nil {
		return "-"
	}
	return string(data)
}

// run runs a tool on s; the output is checked to be JSON.
func (b *bench) run(aid, input string, s *sessionstate.State) tool.Result {
	b.t.Helper()
	r := b.byID[aid].Run(context.Background(), callOf(aid, []byte(input), s))
	if (r.Status() == tool.OK) != (r.ErrorText() == "") || r.Dispatch() != nil {
		b.t.Errorf("%s %.200s: status %v with error %q", aid, input, r.Status(), r.ErrorText())
	}
	if len(r.Output) > 0 && !jsonx.Check(r.Output, maxDepth).OK() {
		b.t.Errorf("%s %.200s: output is not JSON: %.200q", aid, input, r.Output)
	}
	return r
}

func callOf(aid string, input []byte, s *sessionstate.State) *tool.Call {
	return &tool.Call{AID: aid, Input: input, State: s, Now: time.Now}
}

// want runs a tool on an empty state and compares its output; <base> stands for the root.
func (b *bench) want(aid, input, output string) *sessionstate.State {
	b.t.Helper()
	s := new(sessionstate.State)
	b.wantOn(s, aid, input, output)
	return s
}

func (b *bench) wantOn(s *sessionstate.State, aid, input, output string) {
	b.t.Helper()
	r := b.run(aid, strings.ReplaceAll(input, "<base>", b.path("base")), s)
	output = strings.ReplaceAll(output, "<base>", b.path("base"))
	if r.Status() != tool.OK || string(r.Output) != output {
		b.t.Errorf("%s %.200s:\n got %v %q %.300s\nwant %.300s", aid, input, r.Status(), r.ErrorText(), r.Output, output)
	}
}

// wantFail runs a tool that must fail with that text and change nothing.
func (b *bench) wantFail(aid, input, text string) {
	b.t.Helper()
	s := new(sessionstate.State)
	r := b.run(aid, strings.ReplaceAll(input, "<base>", b.path("base")), s)
	text = strings.ReplaceAll(text, "<base>", b.path("base"))
	if r.Status() != tool.ToolError || r.ErrorText() != text || len(r.Output) > 0 {
		b.t.Errorf("%s %.200s:\n got %v %.300q %.300s\nwant %.300q", aid, input, r.Status(), r.ErrorText(), r.Output, text)
	}
	if *s != (sessionstate.State{}) {
		b.t.Errorf("%s %.200s: a failing tool wrote the state", aid, input)
	}
}

// wantSlot compares one slot; <base> stands for the root.
func (b *bench) wantSlot(s *sessionstate.State, slot int, want sessionstate.Artifact) {
	b.t.Helper()
	want.Content = strings.ReplaceAll(want.Content, "<base>", b.path("base"))
	if got, ok := s.Get(slot); !ok || *got != want {
		b.t.Errorf("DS%d: got %+v, want %+v", slot, got, want)
	}
}

// quote returns s as JSON.
func quote(s string) string { return string(jsonx.AppendString(nil, s)) }
