package prompt

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseRuntime(t *testing.T) {
	f := func(runtime, session, window string, pane int) {
		t.Helper()
		want := Target{session, window, pane}
		if got, ok := ParseRuntime(runtime); !ok || got != want {
			t.Errorf("%q: %+v, %v, want %+v", runtime, got, ok, want)
		}
	}
	f("tmux:agents_core:reviewer.0", "agents_core", "reviewer", 0)
	f("tmux:agents_core:reviewer", "agents_core", "reviewer", -1)
	f("tmux://agents_core:reviewer.12", "agents_core", "reviewer", 12)
	f("tmux://agents_core:2", "agents_core", "2", -1)
	f("agents_core:reviewer.0", "agents_core", "reviewer", 0)
	f("tmux:tmux:tmux", "tmux", "tmux", -1)
	f("tmux:a:b.2147483647", "a", "b", 1<<31-1)
	long := strings.Repeat("a", 64)
	f(long+":"+long+".1", long, long, 1)
	f("@a%+=,-:%1.1", "@a%+=,-", "%1", 1)

	for _, runtime := range []string{
		"", "codex_cli", "tmux", "tmux:", "tmux://", "tmux:a", "tmux:a.0", ":", "tmux::", "tmux:a:", "tmux::b", "tmux::b.0",
		"a:b", ".", "a.0", ":.", "a:b.", "tmux:a:b.", "tmux:a:b.c", "tmux:a:b.-1", "tmux:a:b.0.0", "tmux:a:b:c", "a:b:c.0", "tmux:a:b.%1",
		"tmux:-a:b.0", "tmux:a:-b.0", "-a:b.0", "a:-t.0", "tmux:a b:c.0", "tmux:a:b.0\n", "\ntmux:a:b.0", "tmux:a:b.0 ", "tmux:a/b:c.0", "tmux:é:c.0",
		"tmux:a*:b.0", "TMUX:a:b", "tmux:/a:b.0", "tmux:///a:b.0", "tmux:a:b.00", "tmux:a:b.01", "tmux:a:b.2147483648", "tmux:a:b." + strings.Repeat("9", 64),
		"tmux:a" + long + ":b.0", "tmux:a:b" + long + ".0", "screen:a:b.c",
	} {
		if got, ok := ParseRuntime(runtime); ok || got != (Target{}) {
			t.Errorf("%q: %+v, %v", runtime, got, ok)
		}
	}
}

// TestRuntimes: whatever is accepted is written as it was read.
func TestRuntimes(t *testing.T) {
	piece := rapid.SampledFrom([]string{"tmux:", "tmux://", "a", "agents_x", ":", ".", "0", "17", "-", "@", " ", "é", "\n", "/"})
	rapid.Check(t, func(t *rapid.T) {
		runtime := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "runtime"), "")
		got, ok := ParseRuntime(runtime)
		if !ok {
			return
		}
		want := got.Session + ":" + got.Window
		if got.Pane >= 0 {
			want += fmt.Sprintf(".%d", got.Pane)
		}
		prefix, found := strings.CutSuffix(runtime, want)
		if !found || prefix != "tmux:" && prefix != "tmux://" && (prefix != "" || got.Pane < 0) || strings.ContainsAny(want, " é\n/") || want[0] == '-' {
			t.Fatalf("%q: %+v", runtime, got)
		}
	})
}

func FuzzRuntime(f *testing.F) {
	for _, runtime := range []string{"tmux:agents_core:reviewer.0", "tmux://a:b", "a:b.1", "codex_cli", "tmux:-a:b", "a:b.99999999999"} {
		f.Add(runtime)
	}
	f.Fuzz(func(t *testing.T, runtime string) {
		got, ok := ParseRuntime(runtime)
		if ok != (got != Target{}) {
			t.Fatalf("%q: %+v, %v", runtime, got, ok)
		}
		if !ok {
			return
		}
		if got.Pane < -1 || len(got.Session) > 64 || len(got.Window) > 64 || strings.ContainsAny(got.Session+got.Window, ":.#{}$;\n ") || got.Session[0] == '-' || got.Window[0] == '-' {
			t.Fatalf("%q: %+v", runtime, got)
		}
	})
}
