package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the width of help in columns: that of the narrowest common terminal.
const helpWidth = 80

// FitHelp has root and the commands below it print their help and usage within 80 columns, however
// the lines of their texts are broken. A line of an example is broken as a shell continues it,
// where that is possible.
func FitHelp(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStderr(), usage(cmd))
		return err
	})
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := cmd.Long
		text = cmp.Or(text, cmd.Short)
		// The root command's help is written to a stdout that keeps its own errors.
		_, _ = io.WriteString(cmd.OutOrStdout(), strings.Join(reflow(text), "\n")+"\n\n"+usage(cmd))
	})
}

// usage is the form of a command: how it is called, examples, commands and flags.
func usage(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	if cmd.Runnable() {
		b.WriteString(hanging("  ", cmd.UseLine(), 6))
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " [command]\n")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\nAliases:\n" + hanging("  ", cmd.NameAndAliases(), 2))
	}
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n")
		for line := range strings.Lines(cmd.Example) {
			b.WriteString(fold(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nAvailable Commands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				name := fmt.Sprintf("  %-*s ", sub.NamePadding(), sub.Name())
				b.WriteString(hanging(name, sub.Short, len(name)))
			}
		}
	}
	flags := func(title string, fs *pflag.FlagSet) {
		if fs.HasAvailableFlags() {
			b.WriteString("\n" + title + ":\n" + strings.TrimRight(fs.FlagUsagesWrapped(helpWidth), " \n") + "\n")
		}
	}
	flags("Flags", cmd.LocalFlags())
	flags("Global Flags", cmd.InheritedFlags())
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n" + hanging("", fmt.Sprintf("Use %q for more about a command.", cmd.CommandPath()+" [command] --help"), 0))
	}
	return b.String()
}

// hanging is text behind a first word, its further lines indented.
func hanging(first, text string, indent int) string {
	lines := Wrap(text, helpWidth-max(indent, len(first)))
	return first + strings.Join(lines, "\n"+strings.Repeat(" ", indent)) + "\n"
}

// reflow breaks paragraphs into lines of help. A line that is indented stays as it is.
func reflow(text string) (lines []string) {
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			lines = append(lines, Wrap(strings.Join(paragraph, " "), helpWidth)...)
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			end()
			lines = append(lines, line)
		} else {
			paragraph = append(paragraph, line)
		}
	}
	end()
	return lines
}

// Wrap breaks text at its spaces into lines of at most width characters. A word that is longer has
// a line of its own. Empty text is one empty line.
func Wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
			line, used = word, n
		case used+1+n <= width:
			line, used = line+" "+word, used+1+n
		default:
			lines = append(lines, line)
			line, used = word, n
		}
	}
	return append(lines, line)
}

// continued begins the lines of an example behind its first one.
const continued = "      "

// fold breaks a command line before the last flag that leaves room for the backslash, else before
// the last such space outside of quotes, else before the first one, and goes on with the rest.
func fold(line string) string {
	if utf8.RuneCountInString(line) <= helpWidth {
		return line
	}
	at, flagAt, column, quote := -1, -1, 0, rune(0)
	indented := len(line) - len(strings.TrimLeft(line, " "))
	for i, r := range line {
		switch {
		case quote == r:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == ' ' && i > indented && (column <= helpWidth-2 || at < 0):
			at = i
			if strings.HasPrefix(line[i:], " -") {
				flagAt = i
			}
		}
		column++
	}
	if at < 0 {
		return line
	}
	if flagAt > 0 {
		at = flagAt
	}
	return line[:at] + " \\\n" + fold(continued+strings.TrimLeft(line[at:], " "))
}

// maxCompared bounds the quadratic work on a name that is not even close.
const maxCompared = 128

// Distance is the Levenshtein distance of two names in bytes; of a the first 128 are compared. A
// small one separates misspellings from other names.
func Distance(a, b string) int {
	a = a[:min(len(a), maxCompared)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
