package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pageBlock is a fenced block of a page. mark is the HTML comment on the line before it.
type pageBlock struct {
	line           int
	language, text string
	mark           string
}

// Marks of blocks. One without a mark, of the language console, holds commands that are run in
// turn.
const (
	markFile   = "file "     // the block is this file of the directory in which the page is run
	markNotRun = "not run: " // why its commands are not run
	markWith   = "with "     // a server with this command line is running when its commands are
	markServer = "server"    // its command runs until the page starts another one, or ends
	markBeside = "beside"    // its command runs beside the next blocks; its output is compared when it has ended
	markStop   = "stop"      // SIGTERM ends the server; the block is the end of what it printed
)

var (
	pageMark  = regexp.MustCompile(`^ *<!-- (.*) -->$`)
	pageFence = regexp.MustCompile("^( *)```(\\S*)$")
)

func readPage(t *testing.T, path string) (text string, blocks []pageBlock) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), parsePage(string(data))
}

func parsePage(text string) (blocks []pageBlock) {
	var open *pageBlock
	var last, indent string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		fence := pageFence.FindStringSubmatch(line)
		switch {
		case fence != nil && open == nil:
			open, indent = &pageBlock{line: n, language: fence[2]}, fence[1]
			if m := pageMark.FindStringSubmatch(last); m != nil {
				open.mark = m[1]
			}
		case fence != nil:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
		last = line
	}
	return blocks
}

// pageCommand is a command and what the page shows of its output.
type pageCommand struct {
	line          int
	command, text string
}

// commands returns what follows each prompt of the block. A command goes on behind a backslash at
// its end, and on lines that begin as the second prompt of a shell.
func (b pageBlock) commands() (all []pageCommand, err error) {
	onCommand := false
	for i, line := range strings.Split(strings.TrimSuffix(b.text, "\n"), "\n") {
		first, isCommand := strings.CutPrefix(line, "$ ")
		second, isMore := strings.CutPrefix(line, "> ")
		switch {
		case isCommand:
			all = append(all, pageCommand{line: b.line + 1 + i, command: first})
			onCommand = true
		case len(all) == 0:
			return nil, fmt.Errorf("line %d: no prompt before it", b.line+1+i)
		case onCommand && isMore:
			all[len(all)-1].command += "\n" + second
		case onCommand && strings.HasSuffix(all[len(all)-1].command, `\`):
			all[len(all)-1].command += "\n" + line
		default:
			onCommand = false
			if c := &all[len(all)-1]; c.text == "" {
				c.text = line
			} else {
				c.text += "\n" + line
			}
		}
	}
	return all, nil
}

func TestPagesAreParsed(t *testing.T) {
	blocks := parsePage("x\n\n<!-- server -->\n```console\n$ a \\\n    b\nc\nd\n$ e\n$ cat <<E\n> f\n> E\nf\n```\ny\n  ```text\n  z\n  ```\n")
	if len(blocks) != 2 || blocks[0].mark != markServer || blocks[0].line != 4 || blocks[1].mark != "" || blocks[1].text != "z\n" {
		t.Fatalf("%+v", blocks)
	}
	all, err := blocks[0].commands()
	want := []pageCommand{{5, "a \\\n    b", "c\nd"}, {9, "e", ""}, {10, "cat <<E\nf\nE", "f"}}
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := blocks[1].commands(); err == nil {
		t.Error("a block without a prompt")
	}
}

// heldPages lists the pages that TestPages runs, each with the programs without which nothing of it
// can be run.
var heldPages = map[string][]string{
	"README.md":          {"make", "bash"},
	"docs/tour.md":       nil,
	"docs/operations.md": nil,
	"docs/upgrade.md":    nil,
	"docs/settings.md":   nil,
	"docs/kernel-ipc.md": nil,
	"docs/cluster.md":    {"make", "bash"},
	"docs/tls.md":        {"openssl"},

	"docs/command-line.md": nil,
	"docs/console.md":      nil,

	"docs/threads-operations.md": nil,
}

// heldElsewhere lists the pages that another test runs, or why none does.
var heldElsewhere = map[string]string{
	"docs/toolhost.md":          "handlers/toolhost/conformance, TestDocumentedCommands",
	"docs/envelope.md":          "handlers/ipc/conformance, TestDocumentedCommands",
	"docs/threads.md":           "handlers/threads/conformance, TestPage",
	"docs/tokens.md":            "TestScripts, token.txt: keys and tokens differ with each run",
	"docs/exacta.md":            "TestDocsOfProjects",
	"docs/exacta-transcript.md": "handlers/exacta/conformance, TestPage",
	"docs/store.md":             "TestScripts, store.txt and durable_damage.txt: damage and full disks take a hand",
	"BENCHMARKS.md":             "the report of the benchmarks writes it",
	"CONTRIBUTING.md":           "benchmarks and fuzzing, whose output no two runs share",
}

// maxNotRun is how many blocks of all pages may be left out, each with its reason.
const maxNotRun = 30

// TestEveryPageIsRun fails for a page with commands that no test runs.
func TestEveryPageIsRun(t *testing.T) {
	var pages []string
	// Those at the top are named: go test runs a test again when a directory that it listed has
	// changed, and that one changes with each commit.
	for _, pattern := range []string{"ARCHITECTURE.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "docs/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	notRun, shown := 0, 0
	for _, path := range pages {
		_, blocks := readPage(t, path)
		page := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		_, isHeld := heldPages[page]
		if elsewhere := heldElsewhere[page]; isHeld && elsewhere != "" {
			t.Errorf("%s is in both tables", page)
		} else if elsewhere != "" {
			continue
		}
		for _, b := range blocks {
			reason, left := strings.CutPrefix(b.mark, markNotRun)
			switch {
			case left && strings.TrimSpace(reason) == "":
				t.Errorf("%s:%d: a reason is missing", page, b.line)
			case left:
				notRun++
			case b.language == "console" && !isHeld:
				t.Errorf("%s:%d: no test runs the page: add it to heldPages", page, b.line)
			case b.language == "console":
				shown++
			}
		}
	}
	if notRun > maxNotRun || shown < notRun {
		t.Errorf("%d blocks are run, %d are not, at most %d", shown, notRun, maxNotRun)
	}
}
