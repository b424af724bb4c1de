package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// key names a benchmark: its name has neither the number of CPUs at its end nor the word Benchmark
// before it.
type key struct{ pkg, name string }

// String is the benchmark in a message.
func (k key) String() string { return k.pkg + " " + k.name }

// result is one line of benchmark text.
type result struct {
	key
	procs  int // GOMAXPROCS; 0 where the line has none
	iters  int
	values map[string]float64 // by unit
}

// text is a file in the format of golang.org/design/14313. The configuration holds the last value
// of each key; pkg is with the results instead.
type text struct {
	config  map[string]string
	results []result
}

var (
	configLine = regexp.MustCompile(`^([a-z][^\sA-Z:]*):[ \t]*(.*)$`)
	resultName = regexp.MustCompile(`^Benchmark([^a-z\s]\S*?|)(?:-([1-9]\d{0,6}))?$`)
)

// parse reads benchmark text. Lines that are neither configuration nor results are for people and
// left out; a line that begins as a result and is none is an error, because a figure would be lost.
func parse(r io.Reader) (text, error) {
	t := text{config: map[string]string{}}
	pkg := ""
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "Benchmark") {
			res, err := parseResult(line)
			if err != nil {
				return text{}, fmt.Errorf("cannot read line %d of the benchmark text: %w", n, err)
			}
			res.pkg = pkg
			t.results = append(t.results, res)
		} else if m := configLine.FindStringSubmatch(line); m != nil && m[1] == "pkg" {
			pkg = strings.TrimSpace(m[2])
		} else if m != nil {
			t.config[m[1]] = strings.TrimSpace(m[2])
		}
	}
	if err := lines.Err(); err != nil {
		return text{}, fmt.Errorf("cannot read benchmark text: %w", err)
	}
	return t, nil
}

// parseResult takes a line apart: name, iterations, and pairs of value and unit.
func parseResult(line string) (result, error) {
	f := strings.Fields(line)
	m := resultName.FindStringSubmatch(f[0])
	if m == nil || m[1] == "" || len(f) < 4 || len(f)%2 != 0 {
		return result{}, fmt.Errorf("%q is no result: it is a name, a count, and pairs of value and unit", line)
	}
	r := result{key: key{name: m[1]}, values: map[string]float64{}}
	if m[2] != "" {
		r.procs, _ = strconv.Atoi(m[2]) // the expression lets nothing else through
	}
	n, err := strconv.Atoi(f[1])
	if err != nil || n < 1 {
		return result{}, fmt.Errorf("%q is no count of iterations", f[1])
	}
	r.iters = n
	for i := 2; i < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return result{}, fmt.Errorf("%q is no figure", f[i])
		}
		if _, twice := r.values[f[i+1]]; twice {
			return result{}, fmt.Errorf("there are two figures in %s", f[i+1])
		}
		r.values[f[i+1]] = v
	}
	return r, nil
}

// write writes t so that parse and benchstat read it.
func (t text) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, k := range slices.Sorted(maps.Keys(t.config)) {
		fmt.Fprintf(b, "%s: %s\n", k, t.config[k])
	}
	pkg := ""
	for _, r := range t.results {
		if r.pkg != pkg {
			pkg = r.pkg
			fmt.Fprintf(b, "pkg: %s\n", pkg)
		}
		name := "Benchmark" + r.name
		if r.procs > 0 {
			name += "-" + strconv.Itoa(r.procs)
		}
		fmt.Fprintf(b, "%s\t%d", name, r.iters)
		for _, unit := range slices.SortedFunc(maps.Keys(r.values), timeFirst) {
			fmt.Fprintf(b, "\t%s %s", strconv.FormatFloat(r.values[unit], 'g', -1, 64), unit)
		}
		fmt.Fprintln(b)
	}
	return b.Flush()
}

// timeFirst orders units as they matter to who reads benchstat's tables.
func timeFirst(a, b string) int {
	if (a == unitTime) != (b == unitTime) {
		return map[bool]int{true: -1, false: 1}[a == unitTime]
	}
	return strings.Compare(a, b)
}
