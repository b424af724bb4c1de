package toolset

import (
	"os"
	"strings"
	"testing"

	"trunkline/handlers/toolhost"
)

// wrappedScript answers a call with a variable that a wrapper may have set; as one that makes
// embeddings as well.
const wrappedScript = `while read -r line; do
	printf '{"status":"OK","output_json":"%s","error":"%s"}\n' "$WRAPPED" "$WRAPPED"
done
`

// TestWrapper: it is in front of every external tool, kept or not, and of the program that makes
// embeddings; built-in tools have none.
func TestWrapper(t *testing.T) {
	clean(t)
	root := t.TempDir()
	write(t, root, "w.sh", wrappedScript)
	wrap := write(t, root, "wrap.sh", "#!/bin/sh\nWRAPPED=$1; export WRAPPED; shift; exec \"$@\"\n")
	if err := os.Chmod(wrap, 0o755); err != nil {
		t.Fatal(err)
	}
	path := write(t, root, "m.json", manifestOf(worker("AID.KEPT.v1", "w.sh", ""),
		declare("AID.ONCE.v1", `,"exec":{"kind":"process","command":["sh","w.sh"],"mode":"oneshot"}`)))
	t.Setenv("MACHINA_EMBED_PROVIDER", "cmd")
	t.Setenv("MACHINA_EMBED_CMD", "sh w.sh")
	o := plain(path)
	o.Builtins, o.Root = true, root
	for line, want := range map[string]string{`./wrap.sh "a b"`: "a b", "env WRAPPED=c": "c", wrap + " d": "d"} {
		t.Setenv(wrapperName, line)
		s := open(t, o)
		for _, aid := range []string{"AID.KEPT.v1", "AID.ONCE.v1"} {
			if got := s.run(aid, "{}"); !strings.Contains(got, `"output_json":"`+want+`"`) {
				t.Errorf("%s: %s: %s", line, aid, got)
			}
		}
		if got := s.run("AID.EMBED.TEXT.v1", `{"inputs":{"text":"x"}}`); !strings.Contains(got, `"error":"embedding failed: `+want+`"`) {
			t.Errorf("%s: embedding: %s", line, got)
		}
		if got := s.run("AID.NOOP.v1", "{}"); status(t, got) != "OK" {
			t.Errorf("%s: %s", line, got)
		}
		if list := s.Unusable(); list != nil {
			t.Errorf("%s: %v", line, list)
		}
		s.config(t)
	}
}

// TestWrapperThatCannotBeUsed: what is no command line opens nothing, one whose program is missing
// serves nothing, and a list names each tool that it stops.
func TestWrapperThatCannotBeUsed(t *testing.T) {
	clean(t)
	for _, line := range []string{"", " ", `""`, `env "x`} {
		t.Setenv(wrapperName, line)
		want := "cannot use MACHINA_PROC_WRAPPER: not a command line: " + line
		if _, err := Open(plain("builtin")); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
	dir := t.TempDir()
	write(t, dir, "w.sh", wrappedScript)
	t.Setenv(wrapperName, "no-such-wrapper --strict")
	s := open(t, plain(write(t, dir, "m.json", manifestOf(worker("AID.KEPT.v1", "w.sh", ""), declare("AID.NOOP.v1", "")))))
	why := "cannot use the wrapper: executable not found in PATH: no-such-wrapper"
	if _, err := s.ServerConfig(toolhost.Config{}); err == nil ||
		err.Error() != "cannot use MACHINA_PROC_WRAPPER: executable not found in PATH: no-such-wrapper" {
		t.Errorf("it serves: %v", err)
	}
	if list := s.Unusable(); len(list) != 1 || list[0].AID != "AID.KEPT.v1" || list[0].Why != why {
		t.Errorf("%v", list)
	}
	if got := s.run("AID.KEPT.v1", "{}"); !strings.Contains(got, `"error":"toolhost launch failed: `+why+`"`) {
		t.Error(got)
	}
	if got := s.run("AID.NOOP.v1", "{}"); status(t, got) != "OK" {
		t.Error(got)
	}
}
