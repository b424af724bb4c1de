package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"trunkline/bench/report/internal/figures"
	"trunkline/bench/report/internal/page"
)

// Places in the repository.
const (
	pageFile     = "BENCHMARKS.md"
	chartsFolder = "docs/charts"
	dataFolder   = "bench/data"
	notesFolder  = "bench/report/notes"
	suiteFolder  = "bench/questions"
)

func main() {
	os.Exit(command(os.Args[1:], os.Stderr))
}

// command runs with these arguments and returns the exit status: 1 for a page that is not up to
// date, 2 for everything that went wrong.
func command(args []string, complaints io.Writer) int {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	f.SetOutput(complaints)
	root := f.String("root", "../..", "folder of the repository")
	check := f.Bool("check", false, "write nothing, exit 1 if the page or a chart is not what the files give")
	if f.Parse(args) != nil {
		return 2
	}
	if f.NArg() > 0 {
		fmt.Fprintf(complaints, "report: cannot run with arguments: %q\n", f.Args())
		return 2
	}
	files, err := build(*root)
	if err != nil {
		fmt.Fprintln(complaints, "report:", err)
		return 2
	}
	if *check {
		return checked(*root, files, complaints)
	}
	if err := files.write(*root); err != nil {
		fmt.Fprintln(complaints, "report:", err)
		return 2
	}
	return 0
}

// build makes the page of the repository, and its charts, in memory.
func build(root string) (files, error) {
	set, err := figures.Read(os.DirFS(filepath.Join(root, dataFolder)))
	if err != nil {
		return nil, err
	}
	if set.Asked, err = figures.Asked(os.DirFS(filepath.Join(root, suiteFolder))); err != nil {
		return nil, err
	}
	p, err := page.Build(set, os.DirFS(filepath.Join(root, notesFolder)), chartsFolder)
	if err != nil {
		return nil, err
	}
	all := files{pageFile: p.Markdown}
	for name, svg := range p.Charts {
		all[chartsFolder+"/"+name] = svg
	}
	return all, nil
}

// checked reports which files are not what they should be.
func checked(root string, files files, complaints io.Writer) int {
	stale, err := files.stale(root)
	if err != nil {
		fmt.Fprintln(complaints, "report:", err)
		return 2
	}
	if len(stale) == 0 {
		return 0
	}
	for _, name := range stale {
		fmt.Fprintf(complaints, "report: %s is not what %s and %s give\n", name, dataFolder, notesFolder)
	}
	fmt.Fprintln(complaints, "hint: make bench-report writes them")
	return 1
}
