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
	for name, svg := range p.Charts {
		files[chartsFolder+"/"+name] = svg
	}
	if *check {
		return checked(*root, files, complaints)
	}
	if err := write(*root, files); err != nil {
		fmt.Fprintln(complaints, "report:", err)
		return 2
	}
	return 0
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

// write puts every file in its place and removes charts that the page does not show.
func write(root string, files map[string][]byte) error {
	for _, name := range surplus(root, files) {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			return fmt.Errorf("cannot remove an old chart: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, chartsFolder), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the charts: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(root, name), files[name], 0o644); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
	}
	return nil
}

// checked reports which files are not what they should be: different, missing, or charts that the
// page does not show.
func checked(root string, files map[string][]byte, complaints io.Writer) int {
	stale := surplus(root, files)
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || !bytes.Equal(got, want) {
			stale = append(stale, name)
		}
	}
	if len(stale) == 0 {
		return 0
	}
	slices.Sort(stale)
	for _, name := range stale {
		fmt.Fprintf(complaints, "report: %s is not what %s and %s give\n", name, dataFolder, notesFolder)
	}
	fmt.Fprintln(complaints, "hint: make bench-report writes them")
	return 1
}

// surplus lists the charts in the repository that are none of files.
func surplus(root string, files map[string][]byte) (list []string) {
	charts, _ := filepath.Glob(filepath.Join(root, chartsFolder, "*.svg")) // the pattern is well-formed
	for _, at := range charts {
		if name := chartsFolder + "/" + filepath.Base(at); files[name] == nil {
			list = append(list, name)
		}
	}
	return list
}
