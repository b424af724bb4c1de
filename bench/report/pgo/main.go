package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/pprof/profile"
)

func main() { os.Exit(command(os.Args[1:], os.Stderr)) }

// command runs with these arguments and returns the exit status.
func command(args []string, complaints io.Writer) int {
	f := flag.NewFlagSet("pgo", flag.ContinueOnError)
	f.SetOutput(complaints)
	out := f.String("o", "", "file to write")
	if f.Parse(args) != nil {
		return 2
	}
	if *out == "" || f.NArg() != 1 {
		fmt.Fprintln(complaints, "pgo: cannot run without -o FILE and one folder of profiles")
		return 2
	}
	if err := convert(f.Arg(0), *out); err != nil {
		fmt.Fprintln(complaints, "pgo:", err)
		return 1
	}
	return 0
}

// convert merges the profiles of a folder, *.pprof, into one file.
func convert(dir, out string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.pprof"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("cannot find a profile in %s", dir)
	}
	if err != nil {
		return err
	}
	var all []*profile.Profile
	for _, name := range names {
		p, err := read(name)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	p, err := profile.Merge(all)
	if err != nil {
		return fmt.Errorf("cannot merge the profiles: %w", err)
	}
	anonymize(p)
	return write(p, out)
}

func read(name string) (*profile.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read a profile: %w", err)
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return p, nil
}

// anonymize leaves functions, lines and values.
func anonymize(p *profile.Profile) {
	p.TimeNanos, p.DurationNanos, p.Comments = 0, 0, nil
	for _, m := range p.Mapping {
		m.File, m.BuildID = "", ""
	}
}

func write(p *profile.Profile, out string) error {
	f, err := os.Create(out)
	if err != nil {
		return fmt.Errorf("cannot write the profile: %w", err)
	}
	if err := errors.Join(p.Write(f), f.Close()); err != nil {
		return fmt.Errorf("cannot write the profile: %w", err)
	}
	return nil
}
