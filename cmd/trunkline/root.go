package main

import (
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

// verbs lists every subcommand; a new verb is one file and one line here.
func verbs() []*cobra.Command {
	return []*cobra.Command{
		newServeCmd(),
		newCallCmd(),
		newSubCmd(),
		newPubCmd(),
		newStatusCmd(),
		newConfigCmd(),
		newCompletionCmd(),
		newVersionCmd(),
	}
}

// newRootCmd builds the command tree anew, so that two runs in one process share nothing.
func newRootCmd() *cobra.Command {
	root := &cobra.Command{
		Use:   "trunkline",
		Short: "A high-throughput wire engine in one binary",
		Long: "Trunkline serves length-prefixed MessagePack over TCP, TLS and unix sockets, and speaks it from the command line.\n\n" +
			"Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 not allowed, 5 unavailable or timed out, 6 conflict.",
		Args:                       unknownVerb,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{
			DisableDefaultCmd: true, // newCompletionCmd treats a wrong shell as an error
		},
	}
	root.PersistentFlags().Bool(cli.FlagJSON, false, "print JSON instead of text, errors included")
	root.AddCommand(verbs()...)
	return root
}

// unknownVerb is reached when the first argument names no subcommand.
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := cli.Errorf(cli.CodeUsage, "unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return err.WithHint("did you mean " + strings.Join(near, " or ") + "?")
	}
	return err.WithHint(helpHint(cmd))
}

func helpHint(cmd *cobra.Command) string { return "run '" + cmd.CommandPath() + " --help' for usage" }

// markStart sets the returned flag once a verb's own code runs: an error before that moment is about the command line. No
// verb may have a PersistentPreRun of its own, which would hide this one.
func markStart(root *cobra.Command) *bool {
	started := new(bool)
	root.PersistentPreRun = func(*cobra.Command, []string) { *started = true }
	return started
}
