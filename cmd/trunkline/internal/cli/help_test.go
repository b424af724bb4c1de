package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrap(t *testing.T) {
	f := func(text string, width int, want ...string) {
		t.Helper()
		if got := Wrap(text, width); !slices.Equal(got, want) {
			t.Errorf("%q in %d: %q, want %q", text, width, got, want)
		}
	}
	f("", 10, "")
	f("one two", 7, "one two")
	f("one two", 6, "one", "two")
	f("one  two\nthree", 9, "one two", "three")
	f("äö üß", 5, "äö üß")
	f("a longword b", 3, "a", "longword", "b")
}

func TestFold(t *testing.T) {
	f := func(line, want string) {
		t.Helper()
		got := fold(line)
		if got != want {
			t.Errorf("%q:\n%s\nwant\n%s", line, got, want)
		}
	}
	x := func(n int) string { return strings.Repeat("x", n) }
	f("  short", "  short")
	f("  "+x(78), "  "+x(78))
	f("  "+x(76)+" yy", "  "+x(76)+" \\\n      yy")
	f("  "+x(77)+" yy", "  "+x(77)+" \\\n      yy") // there is no room for the backslash
	f("  a "+x(74)+" "+x(70)+" b", "  a "+x(74)+" \\\n      "+x(70)+" b")
	f("  a "+x(75)+" "+x(70)+" b", "  a \\\n      "+x(75)+" \\\n      "+x(70)+" b")
	f("  call '"+x(40)+" "+x(20)+"' --json --and more", "  call '"+x(40)+" "+x(20)+"' --json \\\n      --and more")
	f("  call "+x(60)+" --json value more", "  call "+x(60)+" \\\n      --json value more")
	f("  call '"+x(40)+" "+x(40)+"'", "  call \\\n      '"+x(40)+" "+x(40)+"'")
}

func TestHelpFits(t *testing.T) {
	long := strings.Repeat("word ", 40)
	root := &cobra.Command{Use: "root", Short: "r"}
	cmd := &cobra.Command{Use: "sub " + strings.Repeat("[ARG] ", 20), Short: long, Long: long + "\n\n  kept as  it is\n" + long, Example: "  root sub " + long, Aliases: []string{"s"}, Run: func(*cobra.Command, []string) {}}
	cmd.Flags().String("flag", "", long)
	root.PersistentFlags().Bool("json", false, "j")
	root.AddCommand(cmd)
	FitHelp(root)
	for args, words := range map[string][]string{
		"--help":     {"r\n\nUsage:\n  root [command]\n", "Available Commands:\n", "\n  sub         word word", "\n              word", "Flags:\n", "Use \"root [command] --help\""},
		"sub --help": {"word\n\n  kept as  it is\nword", "\nUsage:\n  root sub [ARG]", "\n      [ARG]", "Aliases:\n  sub, s\n", "Examples:\n  root sub word", " \\\n      word", "--flag string", "Global Flags:\n", "--json"},
	} {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if len(strings.TrimRight(line, "\n")) > helpWidth {
				t.Errorf("%s: %d columns: %s", args, len(line)-1, line)
			}
		}
		for _, w := range words {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: no %q in\n%s", args, w, out.String())
			}
		}
	}
}
