package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

// newHelpCmd is the help of a command or a topic. That of cobra ends well when there is no such
// command.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND | topics | TOPIC]",
		Short: "Help about any command, and cheat sheets by topic",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if at, _, err := cmd.Root().Find(args); err == nil {
				for _, sub := range at.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name()+"\t"+sub.Short)
					}
				}
			}
			if len(args) == 0 {
				names = append(names, topicCompletions()...)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if done, err := helpTopic(cmd, args); done {
				return err
			}
			at := cmd.Root()
			for _, name := range args {
				next := childOf(at, name)
				if next == nil {
					return noHelp(at, name)
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}

// childOf returns the command below at of that name, nil if there is none.
func childOf(at *cobra.Command, name string) *cobra.Command {
	for _, sub := range at.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

func noHelp(at *cobra.Command, name string) error {
	err := cli.Errorf(cli.CodeUsage, "cannot help with %q: %s has no such command", name, at.CommandPath())
	// Of a command below the root, the distance is not set.
	if at.SuggestionsMinimumDistance <= 0 {
		at.SuggestionsMinimumDistance = at.Root().SuggestionsMinimumDistance
	}
	near := at.SuggestionsFor(name)
	if !at.HasParent() {
		for _, topic := range append(topicNames(), "topics") {
			if cli.Distance(topic, name) <= at.SuggestionsMinimumDistance && !slices.Contains(near, topic) {
				near = append(near, topic)
			}
		}
	}
	if len(near) > 0 {
		return err.WithHint("did you mean " + strings.Join(near, " or ") + "?")
	}
	return err.WithHint(helpHint(at))
}
