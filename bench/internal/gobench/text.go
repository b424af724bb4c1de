package gobench

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The units of every benchmark, and that of the processor time, which some report.
const (
	Time      = "ns/op"
	Bytes     = "B/op"
	Allocs    = "allocs/op"
	Processor = "cpu-ns/op"
)

// Result is one line of benchmark text.
type Result struct {
	Name   string // without the word Benchmark before it and the number of CPUs behind it
	N      int    // iterations
	Values map[string]float64
}

// processors is the number of CPUs behind the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

// parse reads benchmark text (golang.org/design/14313). A line that begins as a result and is none
// is an error, because a figure would be lost; other lines are for people and left out.
func parse(text string) (all []Result, err error) {
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "Benchmark")
		if !ok {
			continue
		}
		f := strings.Fields(name)
		if len(f) < 4 || len(f)%2 != 0 {
			return nil, fmt.Errorf("cannot read %q: a result is a name, a count, and pairs of value and unit", line)
		}
		r := Result{Name: processors.ReplaceAllString(f[0], ""), Values: map[string]float64{}}
		if r.N, err = strconv.Atoi(f[1]); err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", line, err)
		}
		for i := 2; i < len(f); i += 2 {
			if r.Values[f[i+1]], err = strconv.ParseFloat(f[i], 64); err != nil {
				return nil, fmt.Errorf("cannot read %q: %w", line, err)
			}
		}
		all = append(all, r)
	}
	return all, nil
}
