package main

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
)

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
