// Command trunkline serves the trunkline wire engine and speaks to it: verbs first, one binary,
// behaviour by arguments.
//
// The way of the settings is flags > environment > file > defaults (internal/config); what the
// verbs share in output and errors is internal/cli; the wiring of listeners, protocols and the
// admin endpoint is internal/app.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
	"trunkline/engine/procgroup"
)

func init() {
	if procgroup.Adopts() {
		runtime.LockOSThread() // see ReapOrphans
	}
}

func main() {
	if serves() {
		hangups() // one that arrives before the server can reload waits
	}
	if err := hideSecrets(); err != nil {
		fmt.Fprintf(os.Stderr, "warning: tools can read the tokens of this process in its environment: %v\n", err)
	}
	keepLostStdout()
	keepDescriptors()
	// With a receiver, a write to a pipe without a reader is an error, also of stdout and stderr,
	// where the runtime would end the process. Children get the default action.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if procgroup.Adopts() {
		go exit()
		procgroup.ReapOrphans()
	}
	exit()
}

// exit runs the program to its end.
func exit() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program for one set of arguments; it returns the exit code. What it does never
// depends on the name it was started under.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if code, done := fastTools(args, stdin, stdout, stderr); done {
		return code
	}
	if code, done := fastExchange(args, stdin, stdout, stderr); done {
		return code
	}
	root := newRootCmd()
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, args, err) })
	if asksForCompletion(args) {
		completeAll(root)
	}
	started := markStart(root, args)
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &written{Writer: stdout}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		root.SetOut(out) // cobra drops the errors of this one
		help(cmd, args)
	})
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	if err != nil && !*started {
		err = usageError(cmd, args, err)
	}
	if err == nil {
		err = out.err
	}
	if cli.ReaderGone(err) {
		return cli.CodeReaderGone
	}
	cli.Render(stderr, err, cli.JSON(cmd) || cli.WantsJSON(args))
	return cli.Exit(err)
}

// written remembers the first error of a stdout whose writers do not look.
type written struct {
	io.Writer
	mu  sync.Mutex
	err error
}

// first returns the first error.
func (w *written) first() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Write implements io.Writer.
func (w *written) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// verbs lists every subcommand; a new verb is one file and one line here.
func verbs() []*cobra.Command {
	return append([]*cobra.Command{
		newServeCmd(),
		newCallCmd(),
		newSubCmd(),
		newPubCmd(),
		newStatusCmd(),
		newClusterCmd(),
		newTopCmd(),
		newPingCmd(),
		newConnectionsCmd(),
		newSlowlogCmd(),
		newMonitorCmd(),
		newReloadCmd(),
		newBenchCmd(),
		newConfigCmd(),
		newStoreCmd(),
		newTokenCmd(),
		newThreadsCmd(),
		newMCPStdioCmd(),
		newExactaCmd(),
		newToolExecCmd(),
		newCompletionCmd(),
		newManCmd(),
		newDoctorCmd(),
		newContextCmd(),
	}, append(newOperatorCmds(), newExchangeCmds()...)...)
}

// newRootCmd builds the command tree again, so that two runs in one process share nothing.
func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "trunkline",
		Short: "Keep what agents share, and serve it over five wire protocols",
		Long: "Trunkline keeps what agents share (processes with quotas, pipelines, messages, tools, threads, changes of projects), serves\n" +
			"it over five wire protocols, and speaks them from the command line. 'trunkline serve --dev' is a server to try things out,\n" +
			"'trunkline help topics' lists the cheat sheets. Without arguments, stdin names a command on envelopes.\n\n" +
			"Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 unavailable or timed out, 6 conflict. An unknown command\n" +
			"and every failure of process, create, can-continue, result, validate and version is 1.",
		Args:                       unknownVerb,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if on, _ := cmd.Flags().GetBool(flagVersion); on {
				return printVersion(cmd)
			}
			return cmd.Help()
		},
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true, // newCompletionCmd treats a wrong shell as an error
		},
	}
	root.PersistentFlags().Bool(cli.FlagJSON, false, "print JSON instead of text, errors included")
	root.Flags().Bool(flagVersion, false, "print which build this is")
	root.SetHelpCommand(newHelpCmd())
	root.AddCommand(verbs()...)
	cli.FitHelp(root)
	return root
}

// unknownVerb is reached when the first argument names no subcommand. Its words and its exit code,
// which is not that of other usage errors, are what clients of the envelope exchange look for
// (envelope §2.2).
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := cli.Errorf(cli.CodeFailed, "Unknown command: %s", args[0])
	form, _, _ := strings.Cut(cmd.UsageString(), "\n\n") // the list of commands would hide the hint
	err.Usage = form + "\n"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.WithHint("did you mean " + strings.Join(near, " or ") + "?")
	}
	return err.WithHint(helpHint(cmd))
}

// flagError separates an unknown verb followed by flags, of which cobra sees the flags first, from
// a wrong flag.
func flagError(cmd *cobra.Command, args []string, err error) error {
	if !cmd.HasParent() && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return unknownVerb(cmd, args)
	}
	return err
}

// usageError makes an error of cobra one of usage. To cobra an argument too many is an unknown
// command, also of a command that has none below it, and a wrong number of arguments has no names.
func usageError(cmd *cobra.Command, args []string, err error) error {
	text := err.Error()
	switch taken := takenFlag(cmd, args); {
	case taken != nil:
		return taken
	case strings.HasPrefix(text, "unknown command ") && !cmd.HasSubCommands():
		err = cli.Errorf(cli.CodeUsage, "cannot use argument %q", cmd.Flags().Arg(0)).WithHint(useHint(cmd))
	case strings.HasPrefix(text, "accepts ") || strings.HasPrefix(text, "requires "):
		err = argumentError(cmd)
	}
	return cli.AsUsage(err, helpHint(cmd))
}

// argumentError names the arguments of the command's Use that are missing, or the first one beyond
// them.
func argumentError(cmd *cobra.Command) error {
	args, names := cmd.Flags().Args(), strings.Fields(cmd.Use)[1:]
	if len(args) > len(names) {
		return cli.Errorf(cli.CodeUsage, "cannot use argument %q", args[len(names)]).WithHint(useHint(cmd))
	}
	missing := slices.DeleteFunc(names[len(args):], func(name string) bool { return name[0] == '[' })
	return cli.Errorf(cli.CodeUsage, "missing argument %s", strings.Join(missing, " ")).WithHint(useHint(cmd))
}

// takenFlag returns an error if a flag without its value took the flag that follows as the value.
func takenFlag(cmd *cobra.Command, args []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		flagOf := func(v string) bool { return strings.HasPrefix(v, "--") && slices.Contains(args, v) }
		if i := slices.IndexFunc(values, flagOf); i >= 0 {
			hint := fmt.Sprintf("--%s='%s' gives it this value; %s", f.Name, values[i], helpHint(cmd))
			err = cli.Errorf(cli.CodeUsage, "missing value of --%s before %q", f.Name, values[i]).WithHint(hint)
		}
	})
	return err
}

// useHint shows the arguments of a command.
func useHint(cmd *cobra.Command) string {
	return "it is '" + cmd.UseLine() + "'; " + helpHint(cmd)
}

func helpHint(cmd *cobra.Command) string { return "run '" + cmd.CommandPath() + " --help' for usage" }

// markStart sets the returned flag once a verb's own code runs: an error before that moment is
// about the command line, args. No verb may have a PersistentPreRun of its own, which would hide
// this one.
func markStart(root *cobra.Command, args []string) *bool {
	started := new(bool)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		err := takenFlag(cmd, args)
		*started = err == nil
		return err
	}
	return started
}

// version and revision are set by the linker (-ldflags "-X main.version=…"); empty in a plain go
// build.
var version, revision string

// flagVersion prints the build for people; the verb of that name belongs to the envelope exchange.
const flagVersion = "version"

func printVersion(cmd *cobra.Command) error {
	b := obs.ReadBuild(version, revision)
	if cli.JSON(cmd) {
		return cli.WriteJSON(cmd.OutOrStdout(), b)
	}
	modified := ""
	if b.Modified {
		modified = " modified"
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "trunkline %s (revision %s%s, %s, %s/%s)\n",
		b.Version, b.Revision, modified, b.Go, b.OS, b.Arch)
	return err
}
