package gobench

import (
	"fmt"
	"strings"

	"golang.org/x/perf/benchfmt"
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

// parse reads benchmark text (golang.org/design/14313). A line that begins as a result and is none
// is an error, because a figure would be lost; other lines are for people and left out.
func parse(text string) (all []Result, err error) {
	in := benchfmt.NewReader(strings.NewReader(text), "the benchmarks' output")
	for in.Scan() {
		switch line := in.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, fmt.Errorf("cannot read a result: %w", line)
		case *benchfmt.Result:
			_, parts := line.Name.Parts()
			r := Result{Name: line.Name.String(), N: line.Iters, Values: map[string]float64{}}
			if n := len(parts); n > 0 && parts[n-1][0] == '-' {
				r.Name = strings.TrimSuffix(r.Name, string(parts[n-1]))
			}
			for _, v := range line.Values {
				if v.OrigUnit != "" { // they become seconds
					v.Value, v.Unit = v.OrigValue, v.OrigUnit
				}
				r.Values[v.Unit] = v.Value
			}
			all = append(all, r)
		}
	}
	return all, in.Err()
}
