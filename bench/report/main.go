// Command report makes BENCHMARKS.md and its charts of the files of figures in bench/data.
//
//	go -C bench/report run .           write the page
//	go -C bench/report run . -check    exit 1 if the page is not what the files give
//	go -C bench/report run . -lenient  show on the page what keeps it from being published
//
// It measures nothing and evaluates nothing: goals come evaluated in the files. Without -lenient it
// takes no figures of sources that are in no commit of this history, of quick or partial runs, or of
// more than one machine. What is in no file is not on the page; the page states which parts have
// none.
//
// It is a module of its own, so that what reads profiles never enters the main one.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"trunkline/bench/report/internal/page"
)

// Places in the repository.
const (
	pageFile     = "BENCHMARKS.md"
	chartsFolder = "docs/charts"
	dataFolder   = "bench/data"
	notesFolder  = "bench/report/notes"
)

func main() { os.Exit(command(os.Args[1:], os.Stderr)) }

// command runs with these arguments and returns the exit status: 1 for a page that is not up to
// date or may not be published, 2 for everything that went wrong.
func command(args []string, complaints io.Writer) int {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	f.SetOutput(complaints)
	root := f.String("root", "../..", "folder of the repository")
	check := f.Bool("check", false, "write nothing, exit 1 if the page or a chart is not what the files give")
	lenient := f.Bool("lenient", false, "show on the page what keeps it from being published, and write it")
	if f.Parse(args) != nil {
		return 2
	}
	if f.NArg() > 0 {
		fmt.Fprintf(complaints, "report: cannot run with arguments: %q\n", f.Args())
		return 2
	}
	p, err := build(*root)
	if err != nil {
		fmt.Fprintln(complaints, "report:", err)
		return 2
	}
	if len(p.Problems) > 0 && !*lenient {
		for _, s := range p.Problems {
			fmt.Fprintln(complaints, "report: cannot publish", s)
		}
		return 1
	}
	files := map[string][]byte{pageFile: p.Markdown}
	old, _ := filepath.Glob(filepath.Join(*root, chartsFolder, "*.svg")) // the pattern is well-formed
	for _, at := range old {
		files[chartsFolder+"/"+filepath.Base(at)] = nil
	}
	for name, svg := range p.Charts {
		files[chartsFolder+"/"+name] = svg
	}
	stale := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at, want := filepath.Join(*root, name), files[name]
		if got, err := os.ReadFile(at); err == nil && want != nil && bytes.Equal(got, want) {
			continue
		}
		stale++
		if *check {
			fmt.Fprintf(complaints, "report: %s is not what %s and %s give\n", name, dataFolder, notesFolder)
		} else if err := replace(at, want); err != nil {
			fmt.Fprintln(complaints, "report:", err)
			return 2
		}
	}
	if *check && stale > 0 {
		fmt.Fprintln(complaints, "hint: make bench-report writes them")
		return 1
	}
	return 0
}

// replace writes a file and its folder, or removes one that is to have no content: a chart that the
// page does not show.
func replace(at string, content []byte) error {
	if content == nil {
		return os.Remove(at)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the charts: %w", err)
	}
	return os.WriteFile(at, content, 0o644)
}

// build makes the page of the repository, and its charts, in memory.
func build(root string) (*page.Page, error) {
	set, err := page.Read(os.DirFS(filepath.Join(root, dataFolder)))
	if err != nil {
		return nil, err
	}
	isPast := func(revision string) bool {
		return exec.Command("git", "-C", root, "merge-base", "--is-ancestor", revision, "HEAD").Run() == nil
	}
	return page.Build(set, os.DirFS(filepath.Join(root, notesFolder)), chartsFolder, isPast)
}
