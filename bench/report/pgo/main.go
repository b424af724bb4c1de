// Command pgo merges CPU profiles of the server into the profile that its builds are guided by.
//
//	go -C bench/report run ./pgo -o ../../cmd/trunkline/default.pgo DIR
//
// What names the machine, the files of its binary and the moments of the profiles, is left out: a
// compiler has no use for it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

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

// asWritten are functions that the profile does not guide: what is inlined of a digest decides
// whether it stays on the stack of its caller.
var asWritten = regexp.MustCompile(`^crypto/`)

// convert merges the profiles of a folder, *.pprof, into one file, and leaves functions, lines and
// values of them.
func convert(dir, out string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.pprof"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("cannot find a profile in %s", dir)
	}
	if err != nil {
		return err
	}
	all := make([]*profile.Profile, len(names))
	for i, name := range names {
		if all[i], err = read(name); err != nil {
			return fmt.Errorf("cannot read %s: %w", name, err)
		}
	}
	p, err := profile.Merge(all)
	if err != nil {
		return fmt.Errorf("cannot merge the profiles: %w", err)
	}
	p.Prune(asWritten, nil)
	p = p.Compact()
	p.TimeNanos, p.DurationNanos, p.Comments = 0, 0, nil
	for _, m := range p.Mapping {
		m.File, m.BuildID = "", ""
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return fmt.Errorf("cannot encode the profile: %w", err)
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

func read(name string) (*profile.Profile, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return profile.ParseData(b)
}
