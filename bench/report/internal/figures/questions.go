package figures

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// Questions is what comparing Go benchmarks with their baseline found, as bench/compare writes it.
type Questions struct {
	Machine    Machine     `json:"machine"`
	Baseline   *Baseline   `json:"baseline"`
	Rounds     int         `json:"rounds"`
	Benchtime  float64     `json:"benchtime_seconds"`
	Benchmarks []Benchmark `json:"benchmarks"`
}

// Baseline is what the benchmarks were compared with.
type Baseline struct {
	Revision string `json:"revision"`
	Date     string `json:"date"`
	Measured bool   `json:"measured"` // in the same run; else only memory was compared
}

// Benchmark is one row of an answer: now, and how that compares with the baseline.
type Benchmark struct {
	Name    string  `json:"name"` // without "Benchmark": "FrameSplit/64"
	Package string  `json:"package"`
	Verdict string  `json:"verdict"` // of the time
	Now     *Side   `json:"now"`     // nil for one that is gone
	Change  *Change `json:"change"`  // of the time; nil if there was nothing to compare with
	Memory  []Move  `json:"memory"`
}

// Side is the medians of what one side's rounds showed.
type Side struct {
	Nanos  float64            `json:"ns_per_op"`
	Low    float64            `json:"ns_per_op_q1"` // the quartiles
	High   float64            `json:"ns_per_op_q3"`
	Bytes  float64            `json:"bytes_per_op"`
	Allocs float64            `json:"allocs_per_op"`
	Extra  map[string]float64 `json:"extra"` // by unit
}

// Change is the time now over the time of the baseline, with the ends of its interval.
type Change struct {
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Move is a unit of memory that is not what it was.
type Move struct {
	Unit string  `json:"unit"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Top is the name of the benchmark function, without "Benchmark", and the case below it.
func (b *Benchmark) Top() (name, variant string) {
	name, variant, _ = strings.Cut(b.Name, "/")
	return name, variant
}

var (
	questionText  = regexp.MustCompile(`(?m)^// Question: ((?:.*\n)(?:// ?.*\n)*)`)
	benchmarkName = regexp.MustCompile(`(?m)^func Benchmark(\w+)\(b \*testing\.B\)`)
)

// Asked reads the question of every benchmark out of the sources of the suite: the comment on top
// of its file. It is empty if the sources are not there.
func Asked(sources fs.FS) (map[string]string, error) {
	files, err := fs.Glob(sources, "*_timing_test.go")
	if err != nil {
		return nil, fmt.Errorf("cannot list the questions: %w", err)
	}
	asked := map[string]string{}
	for _, f := range files {
		b, err := fs.ReadFile(sources, f)
		if err != nil {
			return nil, fmt.Errorf("cannot read a question: %w", err)
		}
		text := questionText.FindSubmatch(b)
		if text == nil {
			continue
		}
		question := strings.Join(strings.Fields(strings.ReplaceAll(string(text[1]), "\n//", "\n")), " ")
		for _, name := range benchmarkName.FindAllSubmatch(b, -1) {
			asked[string(name[1])] = strings.ToUpper(question[:1]) + question[1:]
		}
	}
	return asked, nil
}
