package main

import (
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

// verbs lists every subcommand; a new verb is one file and one line here.
func verbs() []*cobra.Command {
	return append([]*cobra.Command{
		newServeCmd(),
		newCallCmd(),
		newSubCmd(),
		newPubCmd(),
		newStatusCmd(),
		newBenchCmd(),
		newConfigCmd(),
		newStoreCmd(),
		newToolExecCmd(),
		newCompletionCmd(),
	}, newExchangeCmds()...)
}

// newRootCmd builds the command tree anew, so that two runs in one process share nothing.
func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "trunkline",
		Short: "A high-throughput wire engine in one binary",
		Long: "Trunkline serves length-prefixed MessagePack over TCP, TLS and unix sockets, and speaks it from the command line. It takes\n" +
			"envelopes a step further over HTTP and on stdin; without arguments, stdin names the command.\n\n" +
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
	root.AddCommand(verbs()...)
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
	err.Usage = cmd.UsageString()
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

func helpHint(cmd *cobra.Command) string { return "run '" + cmd.CommandPath() + " --help' for usage" }

// markStart sets the returned flag once a verb's own code runs: an error before that moment is
// about the command line. No verb may have a PersistentPreRun of its own, which would hide this
// one.
func markStart(root *cobra.Command) *bool {
	started := new(bool)
	root.PersistentPreRun = func(*cobra.Command, []string) { *started = true }
	return started
}
