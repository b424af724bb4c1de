package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
)

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
