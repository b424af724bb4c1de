package main

import (
	"embed"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
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

// newManCmd writes the pages that packages and the documentation carry. Users do not need it.
func newManCmd() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the pages of all commands into a directory",
		Long:   "Write a page of each command into a directory, which is made if it is missing: manual pages of section 1, or Markdown. $SOURCE_DATE_EPOCH is the date of manual pages, if it is set.",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&format, "format", "man", "man or markdown")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if format != "man" && format != "markdown" {
			return cli.Errorf(cli.CodeUsage, "cannot use --format %q: want man or markdown", format)
		}
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		root := newRootCmd()
		eachCommand(root, func(cmd *cobra.Command) {
			cmd.DisableAutoGenTag, cmd.Long = true, asMarkdown(cmd.Long)
		})
		var err error
		if format == "markdown" {
			err = doc.GenMarkdownTree(root, args[0])
		} else {
			err = doc.GenManTree(root, &doc.GenManHeader{
				Section: "1", Source: "trunkline " + obs.ReadBuild(version, revision).Version, Manual: "Trunkline",
			}, args[0])
		}
		if err != nil {
			return fmt.Errorf("cannot write the pages: %w", err)
		}
		return nil
	}
	return cmd
}

// asMarkdown makes Markdown of the text of a help, from which both forms are made: lines that are
// indented stay as they are, and < begins no tag.
func asMarkdown(text string) string {
	var b strings.Builder
	verbatim := false
	for line := range strings.SplitSeq(text, "\n") {
		if indented := strings.HasPrefix(line, " "); indented {
			if !verbatim {
				b.WriteByte('\n')
			}
			line, verbatim = "    "+line, true
		} else {
			if verbatim {
				b.WriteByte('\n')
			}
			line, verbatim = strings.ReplaceAll(line, "<", `\<`), false
		}
		b.WriteString(line + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// sheets are the cheat sheets. The first line of each is its title, each line that is indented is
// of a command, and a test runs all of them in their order.
//
//go:embed topics/*.txt
var sheets embed.FS

// topicNames lists the sheets in the order of a new user's way.
func topicNames() []string {
	return []string{"calling", "events", "pipelines", "tools", "threads", "projects", "store", "operating"}
}

// sheet returns the title and the whole text of a topic; ok is false if there is none.
func sheet(topic string) (title, text string, ok bool) {
	whole, err := sheets.ReadFile("topics/" + topic + ".txt")
	if err != nil {
		return "", "", false
	}
	title, _, _ = strings.Cut(string(whole), "\n")
	return title, string(whole), true
}

func topicCompletions() []string {
	names := []string{"topics\tlist the cheat sheets"}
	for _, name := range topicNames() {
		title, _, _ := sheet(name)
		names = append(names, name+"\t"+title)
	}
	return names
}

// helpTopic answers 'help topics' and 'help TOPIC'; done is false for everything else. The help of
// a command of the same name comes before its sheet.
func helpTopic(cmd *cobra.Command, args []string) (done bool, err error) {
	if len(args) != 1 {
		return false, nil
	}
	if args[0] == "topics" {
		return true, listTopics(cmd)
	}
	_, text, ok := sheet(args[0])
	if !ok {
		return false, nil
	}
	out := cmd.OutOrStdout()
	if at := childOf(cmd.Root(), args[0]); at != nil {
		at.InitDefaultHelpFlag()
		if err := at.Help(); err != nil {
			return true, err
		}
		text = "\n" + text
	}
	if _, err := io.WriteString(out, text); err != nil {
		return true, fmt.Errorf("cannot write output: %w", err)
	}
	return true, nil
}

// listedTopic is an entry of help topics --json.
type listedTopic struct {
	Topic string `json:"topic"`
	Title string `json:"title"`
}

func listTopics(cmd *cobra.Command) error {
	list, rows := []listedTopic{}, [][]string{}
	for _, name := range topicNames() {
		title, _, _ := sheet(name)
		list, rows = append(list, listedTopic{name, title}), append(rows, []string{name, title})
	}
	if err := cli.Show(cmd, list, rows); err != nil || cli.JSON(cmd) {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "\n'trunkline help TOPIC' prints one.")
	return err
}
