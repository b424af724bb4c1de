package figures

import (
	"reflect"
	"testing"
)

func TestParseOutputs(t *testing.T) {
	f := func(text string, want ...Output) {
		t.Helper()
		if got := parseOutputs(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	f("")
	f("\n\n")
	f("PASS\n", Output{Text: "PASS"})
	f("command: make soak\ndate: 2026-01-02\nrevision: 12ab\n\na\n\n\nb\n\n", Output{"make soak", "2026-01-02", "12ab", "a\n\n\nb"})
	f("date: 2026-01-02\n\na", Output{Date: "2026-01-02", Text: "a"})
	f("command: x\n\na\ncommand: y\n\nb\n", Output{Command: "x", Text: "a"}, Output{Command: "y", Text: "b"})
	// What is printed may look like a head.
	f("a\ndate: 2026-01-02\nb", Output{Text: "a\ndate: 2026-01-02\nb"})
	f("command: x\n\nafter: RSS\nrevision: none\n", Output{Command: "x", Text: "after: RSS\nrevision: none"})
	// An empty line ends the head; what follows is what was printed.
	f("command: x\n\nrevision: of nothing\n", Output{Command: "x", Text: "revision: of nothing"})
	f("command: x\ncommand: y\n\nb", Output{Command: "y", Text: "b"}) // nothing was printed by x
	f("\n  indented: a\n", Output{Text: "  indented: a"})
}
