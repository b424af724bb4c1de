package prompt

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	resume = []string{"codex", "exec", "resume", "{session_id}", "{prompt}"}
	spawn  = []string{"codex", "exec", "{prompt}"}
)

func TestDisplayCommand(t *testing.T) {
	f := func(template []string, prompt, want string) {
		t.Helper()
		if got := DisplayCommand(template, "sess_rv_12", prompt); got != want {
			t.Errorf("%q: %s, want %s", prompt, got, want)
		}
	}
	f(resume, "Read & reply", `codex exec resume sess_rv_12 "Read & reply"`)
	f(spawn, "Read & reply", `codex exec "Read & reply"`)
	f(spawn, "A_z9@%+=:,./-", "codex exec A_z9@%+=:,./-")
	f(spawn, "", `codex exec ""`)
	f(spawn, "a\\\"$`'", `codex exec "a\\\"\$`+"\\`"+`'"`)
	f(spawn, "a!", "codex exec 'a!'")
	f(spawn, "it's $(x)!\\", `codex exec 'it'\''s $(x)!\'`)
	f(spawn, "a\nb", "codex exec \"a\nb\"")
	f(spawn, "é", `codex exec "é"`)
	f(spawn, "a\n", "codex exec \"a\n\"")
	f(spawn, "{session_id}", `codex exec "{session_id}"`)
	f([]string{"my tool", "--prompt={prompt}"}, "a", `"my tool" "--prompt={prompt}"`)
	f(nil, "a", "")
}

// TestShellReadsDisplayCommand has a shell take commands apart again.
func TestShellReadsDisplayCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	piece := rapid.SampledFrom([]string{"a", " ", "'", `"`, `\`, "$", "`", "!", "$(x)", "\n", "é", ";", "&", "*", "~", "#", "-"})
	var want, script []string
	rapid.Check(t, func(t *rapid.T) {
		arg := strings.Join(rapid.SliceOf(piece).Draw(t, "argument"), "")
		if want = append(want, arg); arg == "" && quoteArg(arg) != `""` {
			t.Fatalf("an empty argument is %s", quoteArg(arg))
		}
		script = append(script, quoteArg(arg))
	})
	out, err := exec.Command(sh, "-c", `printf '%s\0' `+strings.Join(script, " ")).Output()
	if got := strings.Split(string(out), "\x00"); err != nil || !slices.Equal(got, append(want, "")) {
		t.Errorf("%v\ngot  %q\nwant %q", err, got, want)
	}
}

func TestArgv(t *testing.T) {
	f := func(template []string, session, prompt string, want ...string) {
		t.Helper()
		if got, err := Argv(template, session, prompt); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	f(resume, "sess_rv_12", "[a]\n$(id);", "codex", "exec", "resume", "sess_rv_12", "[a]\n$(id);")
	f(spawn, "--not used", "[a]", "codex", "exec", "[a]")
	f([]string{"run", "x{prompt}", "{prompt", "{prompt}", "{prompt}"}, "", "[{session_id}", "run", "x{prompt}", "{prompt", "[{session_id}", "[{session_id}")
	f([]string{"run"}, "", "-x", "run")

	refuse := func(template []string, session, prompt, want string) {
		t.Helper()
		if got, err := Argv(template, session, prompt); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v, want %q", template, got, err, want)
		}
	}
	refuse(nil, "s", "[a]", "without a program")
	refuse([]string{""}, "s", "[a]", "without a program")
	refuse([]string{"{prompt}"}, "s", "[a]", "no program")
	refuse([]string{"{session_id}"}, "s", "[a]", "no program")
	refuse(resume, "-c", "[a]", `cannot resume session "-c"`)
	refuse(resume, "", "[a]", "cannot resume")
	refuse(resume, "s", "-a", "bracket")
	refuse(spawn, "", "", "bracket")
	refuse(spawn, "", "[a\x00", "null character")
	refuse([]string{"run", "\x00"}, "", "", "null character")
	template := slices.Clone(resume)
	if Argv(template, "s", "[a]"); !slices.Equal(template, resume) {
		t.Errorf("the template became %q", template)
	}
}

func TestResumableSession(t *testing.T) {
	f := func(id string, want bool) {
		t.Helper()
		if ResumableSession(id) != want {
			t.Errorf("%.140q: %v", id, !want)
		}
	}
	f("sess_rv_12", true)
	f("_", true)
	f("0a.b:c-d_", true)
	f("a"+strings.Repeat("-", 127), true)
	f("a"+strings.Repeat("-", 128), false)
	for _, id := range []string{"", "-a", ".a", ":a", "a b", "a\n", "\na", "a/b", "é", "a$"} {
		f(id, false)
	}
}
