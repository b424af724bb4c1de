package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/doctor"
)

// columns is the width of the narrowest common terminal.
const columns = 80

// TestHelpFitsATerminal walks all commands. A wide line would be broken in the middle of a word.
func TestHelpFitsATerminal(t *testing.T) {
	narrow := func(what, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%s: %d columns: %s", what, n, line)
			}
		}
	}
	seen := 0
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.InitDefaultHelpFlag()
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "Usage:\n") {
			t.Errorf("%s has no help: %s", cmd.CommandPath(), out.String())
		}
		narrow(cmd.CommandPath(), out.String())
		narrow(cmd.CommandPath(), cmd.UsageString())
		seen++
	})
	if seen < 40 {
		t.Errorf("%d commands were looked at", seen)
	}
	narrow("the modes of the tool server", toolUsage)
	for _, topic := range topicNames() {
		title, text, ok := sheet(topic)
		if !ok || title == "" || len(title) > 60 {
			t.Errorf("%s: title %q, there: %v", topic, title, ok)
		}
		narrow(topic, text)
	}
}

// TestDoctorFitsATerminal: evidence and fixes are longer than a line.
func TestDoctorFitsATerminal(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("evidence ", 40))
	cmd, out := newDoctorCmd(), new(bytes.Buffer)
	cmd.SetOut(out)
	if err := showChecks(cmd, &doctor.Report{Checks: []doctor.Finding{
		{ID: "store.filesystem", Subject: "store.dir", Result: doctor.Warning, Evidence: words, Fix: words},
	}}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Count(out.String(), "evidence") != 80 {
		t.Error(out.String())
	}
}

func TestHelpOfTopics(t *testing.T) {
	f := func(args string, code int, stdout, stderr string) {
		t.Helper()
		wantRun(t, runMain(strings.Fields(args)...), code, stdout, stderr)
	}
	f("help topics", 0, "pipelines  Pipelines: ", "")
	f("help topics --json", 0, `"topic": "calling"`, "")
	f("help events", 0, "Events: subscribing", "")
	f("help store", 0, "Available Commands:", "")
	f("help store", 0, "The store: what a server keeps", "")
	f("help call", 0, "Usage:\n  trunkline call", "")
	f("help store verify", 0, "Usage:\n  trunkline store verify", "")
	f("help", 0, "Available Commands:", "")
	f("help nosuch", 2, "", "cannot help with \"nosuch\"")
	f("help toopics", 2, "", "hint: did you mean topics?")
	f("help pipeline", 2, "", "hint: did you mean pipelines?")
	f("help stor", 2, "", "hint: did you mean store")
	f("help store toopics", 2, "", "hint: run 'trunkline store --help'")
	f("help events more", 2, "", "cannot help with \"events\"")
}

// runMain runs the whole program, without the start of a process.
func runMain(args ...string) ran {
	var out, errs bytes.Buffer
	code := run(args, strings.NewReader(""), &out, &errs)
	return ran{code, out.String(), errs.String()}
}

// TestHelpNamesEveryDefault: an empty default is a word, too.
func TestHelpNamesEveryDefault(t *testing.T) {
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		if u := cmd.UsageString(); strings.Contains(u, "default )") {
			t.Errorf("%s: a default without a name\n%s", cmd.CommandPath(), u)
		}
	})
}

// TestArgumentErrors: every command names what is missing of its arguments, or what is too much,
// and shows how it is called.
func TestArgumentErrors(t *testing.T) {
	ask := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &errs); code != 2 || out.Len() > 0 {
			t.Errorf("%q: exit code %d, stdout %q", args, code, out.String())
		}
		return errs.String()
	}
	missing, beyond := 0, 0
	eachCommand(newRootCmd(), func(cmd *cobra.Command) {
		names := strings.Fields(cmd.Use)[1:]
		if !cmd.HasParent() || cmd.HasSubCommands() || cmd.Name() == modeExec {
			return
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		use := "hint: it is '" + strings.Join(append([]string{cmd.CommandPath()}, names...), " ") + " [flags]'; run '" +
			cmd.CommandPath() + " --help' for usage\n"
		if len(names) > 0 && names[0][0] != '[' {
			missing++
			if got := ask(path...); !strings.HasPrefix(got, "trunkline: missing argument "+names[0]) ||
				!strings.Contains(got, use) {
				t.Errorf("%s without an argument: %s", cmd.CommandPath(), got)
			}
		}
		if len(names) > 0 && !strings.HasSuffix(names[len(names)-1], "...") {
			beyond++
			args := append(path, slices.Repeat([]string{"a"}, len(names))...)
			if cmd.Name() == "completion" {
				args = append(path, "bash")
			}
			if got := ask(append(args, "extra")...); !strings.HasPrefix(got, "trunkline: cannot use argument \"extra\"\n") ||
				!strings.Contains(got, use) {
				t.Errorf("%s with an argument too many: %s", cmd.CommandPath(), got)
			}
		}
	})
	if missing < 15 || beyond < 20 {
		t.Errorf("%d commands were called without an argument, %d with one too many", missing, beyond)
	}

	for args, want := range map[string]string{
		"ping --admin --count 3":    `missing value of --admin before "--count"`,
		"status --admin --json":     `missing value of --admin before "--json"`,
		"config show --set --json":  `missing value of --set before "--json"`,
		"serve --config --dev x":    `missing value of --config before "--dev"`,
		"ping --admin=--count":      `cannot ask "--count": want host:port`,
		"sub a --addr -- --json":    `missing value of --addr before "--"`,
		"exacta call a --addr --id": `missing value of --addr before "--id"`,
		"tool_exec":                 "want one argument, <aid>",
		"--run":                     "missing argument <plugin>",
	} {
		got := ask(strings.Fields(args)...)
		if got = strings.ReplaceAll(got, `\"`, `"`); !strings.Contains(got, want) {
			t.Errorf("%s: %s", args, got)
		}
	}
}

// TestUnknownVerb: the hint is in sight, also on a terminal of few lines.
func TestUnknownVerb(t *testing.T) {
	var out, errs bytes.Buffer
	code := run([]string{"serv"}, strings.NewReader(""), &out, &errs)
	const want = "trunkline: Unknown command: serv\nhint: did you mean serve?\nUsage:\n  trunkline [flags]\n  trunkline [command]\n"
	if code != 1 || out.Len() > 0 || errs.String() != want {
		t.Errorf("exit code %d, stdout %q, stderr %s", code, out.String(), errs.String())
	}
}
