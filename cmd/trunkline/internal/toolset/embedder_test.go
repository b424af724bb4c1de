package toolset

import (
	"path/filepath"
	"strings"
	"testing"
)

// embedScript answers with its process id and what it must not see, and ends when the text asks for
// it.
const embedScript = `while read -r line; do
	case "$line" in
	*die*) echo no model >&2; exit 3;;
	*garbage*) echo loading; continue;;
	*leak*) printf '{"error":"%s"}\n' "$MACHINA_API_TOKEN$MACHINA_OPERATOR_TOKEN$(pwd -P)"; continue;;
	esac
	printf '{"embedding":[%s,0]}\n' $$
done
`

// TestEmbedder: the operator's program is one process, which is kept, is shown no token, and is
// started again after it failed.
func TestEmbedder(t *testing.T) {
	clean(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, "bin/embed.sh", embedScript)
	t.Setenv("MACHINA_API_TOKEN", "secret")
	t.Setenv("MACHINA_EMBED_PROVIDER", "cmd")
	t.Setenv("MACHINA_EMBED_CMD", `sh "bin/embed.sh"`)
	t.Setenv("MACHINA_TOOL_FAIL_THRESHOLD", "2")
	o := plain()
	o.Builtins, o.Root = true, root
	s := open(t, o)
	ask := func(text string) string {
		return s.run("AID.EMBED.TEXT.v1", `{"inputs":{"dim":2,"normalize":false,"text":"`+text+`"}}`)
	}
	first := ask("a")
	if second := ask("b"); !strings.Contains(first, `"status":"OK"`) || first != second {
		t.Errorf("two processes?\n%s\n%s", first, second)
	}
	if got := ask("leak"); !strings.Contains(got, `"error":"embedding failed: `+root+`"`) {
		t.Errorf("in its environment and its folder: %s", got)
	}
	if got := ask("garbage"); !strings.Contains(got, `"error":"embedding failed: toolhost invalid response JSON: `) || !strings.Contains(got, "loading") {
		t.Errorf("the line is not shown: %s", got)
	}
	first = ask("a")
	dies := func(want string) {
		t.Helper()
		if got := ask("die"); !strings.Contains(got, `"error":"embedding failed: `+want+`"`) {
			t.Errorf("want %s, got %s", want, got)
		}
	}
	dies(`toolhost exit 3: no model `)
	if again := ask("c"); !strings.Contains(again, `"status":"OK"`) || again == first {
		t.Errorf("after a crash: %s", again)
	}
	dies(`toolhost exit 3: no model `)
	dies(`toolhost exit 3: no model `)
	dies(`circuit breaker open for AID.EMBED.TEXT.v1`)
}

func TestEmbedderCannotBeMade(t *testing.T) {
	clean(t)
	f := func(provider, command, want string) {
		t.Helper()
		t.Setenv("MACHINA_EMBED_PROVIDER", provider)
		t.Setenv("MACHINA_EMBED_CMD", command)
		if _, err := Open(plain("builtin")); err == nil || err.Error() != want {
			t.Errorf("%q %q: %v, want %s", provider, command, err, want)
		}
	}
	f("cmd", `sh "x`, `cannot use MACHINA_EMBED_CMD: not a command line: sh "x`)
	f("cmd", ` `, `cannot use MACHINA_EMBED_CMD: not a command line:  `)
	f("cmd", `""`, `cannot use MACHINA_EMBED_CMD: not a command line: ""`)
	f("semantic", `sh x`, `cannot use MACHINA_EMBED_PROVIDER = "semantic": want hash or cmd`)
}
