package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocsOfProjects runs the commands that the page of projects shows: their output is the one of
// the page.
func TestDocsOfProjects(t *testing.T) {
	page, err := os.ReadFile("../../docs/exacta.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## From the command line\n")
	_, text, _ = strings.Cut(text, "```console\n")
	text, _, _ = strings.Cut(text, "```")
	s := startProjects(t, demo())
	t.Chdir(s.dir)
	t.Setenv(envExactaAddr, s.addr)
	ran := 0
	for shown := range strings.SplitSeq(strings.TrimPrefix(text, "$ "), "\n$ ") {
		command, want, _ := strings.Cut(strings.TrimSuffix(shown, "\n"), "\n")
		words, isOurs := strings.CutPrefix(command, "trunkline ")
		if !isOurs {
			continue
		}
		ran++
		var out bytes.Buffer
		run(shellWords(words), strings.NewReader(""), &out, &out)
		got := strings.TrimSuffix(strings.ReplaceAll(out.String(), s.dir, "/srv/demo"), "\n")
		if milliseconds := regexp.MustCompile(`\d+ ms`); milliseconds.ReplaceAllString(got, "N ms") != milliseconds.ReplaceAllString(want, "N ms") {
			t.Errorf("%s\ngot\n%s\nthe page has\n%s", command, got, want)
		}
	}
	if ran != 6 {
		t.Errorf("%d commands", ran)
	}
}

// shellWords splits a command whose words may have single quotes around them.
func shellWords(line string) []string {
	var words []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	return words
}
