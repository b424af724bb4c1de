package compare

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/gobench"
	"trunkline/bench/internal/part"
)

// tries is how often a process runs each benchmark, tryTime for how long each time.
const (
	tries   = 3
	tryTime = 10 * time.Millisecond
)

// Where the benchmarks are, and the file that names the revision of the baseline.
const (
	suite    = "bench/questions"
	baseline = "bench/data/baseline.txt"
)

// Part compares benchmarks with their baseline.
func Part() part.Part {
	c := comparison{again: 4 * time.Minute, fail: 5}
	update := false
	return part.Part{
		Name: "questions", What: "the benchmarks of bench/questions beside the baseline's sources: what moved?", Serverless: true,
		Defaults: func(o *part.Options) { o.Rounds, o.Window = 4, tryTime },
		Quick:    func(o *part.Options) { o.Window = tryTime },
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&c.again, "again", c.again, "questions: time for measuring again, worst first, what seems to have moved")
			f.Float64Var(&c.fail, "fail", c.fail, "questions: percent by which something may get slower")
			f.BoolVar(&c.long, "long", false, "questions: also what is left out of a short run, tables of ten million rows, which take half a minute to fill for each process")
			f.BoolVar(&update, "update", false, "questions: make HEAD the baseline, and measure nothing")
		},
		Run: func(r *part.Run) error {
			c.Run, c.pattern = r, "."
			if r.Only != nil {
				c.pattern = r.Only.String()
			}
			if update {
				return c.setBaseline()
			}
			return c.run()
		},
	}
}

// The sides of a comparison.
const (
	base = iota
	now
	sides
)

// comparison is one run.
type comparison struct {
	*part.Run
	again   time.Duration
	fail    float64
	long    bool
	pattern string // of the benchmarks, as for go test

	binaries [sides]*gobench.Binary // nil for a baseline that is not to be had
	groups   []string               // top-level benchmarks of either side
	list     []*benchmark           // in the order in which they first came
}

// benchmark is what both sides showed of one benchmark, and what is thought of it.
type benchmark struct {
	name    string
	figures [sides]map[string][]float64 // by unit, one for each round

	verdict verdict
	change  shift // of the time; zero if there is nothing to compare with
	memory  []memory
}

func (c *comparison) run() error {
	if err := c.build(now, "."); err != nil {
		return err
	}
	if len(c.groups) == 0 {
		return fmt.Errorf("cannot find benchmarks that match %q in %s", c.pattern, suite)
	}
	root, err := c.sources()
	if err != nil {
		return err
	}
	if root != "" {
		c.Report.Checked = true
		if err := c.build(base, root); err != nil {
			return fmt.Errorf("cannot build the baseline: %w", err)
		}
	}
	if err := c.look(); err != nil {
		return err
	}
	if err := c.evaluate(); err != nil {
		return err
	}
	c.report()
	return nil
}

// build makes the test binary of a side and lists the benchmarks that were asked for.
func (c *comparison) build(side int, root string) error {
	binary, err := gobench.Build(root, suite, filepath.Join(c.Rig.Dir, fmt.Sprintf("%d.test", side)))
	if err != nil {
		return err
	}
	c.binaries[side] = binary
	names, err := binary.List(c.pattern)
	for _, name := range names {
		if !slices.Contains(c.groups, name) {
			c.groups = append(c.groups, name)
		}
	}
	return err
}

// look is the first look: all benchmarks, the sides of each in turns, so that a pair is taken
// within moments. A process runs a top-level one with all that is below it, which share their
// inputs.
func (c *comparison) look() error {
	top, _, _ := strings.Cut(c.pattern, "/")
	var steps []goal.Step
	for _, name := range c.groups {
		steps = append(steps, c.steps(exactly(name)+c.pattern[len(top):], &c.list)...)
	}
	_, err := goal.Rounds(c.Options.Rounds, steps, os.Stderr)
	return err
}

// find returns the benchmark of that name in a list, to which it adds one that is not there yet.
func find(list *[]*benchmark, name string) *benchmark {
	for _, b := range *list {
		if b.name == name {
			return b
		}
	}
	b := &benchmark{name: name, figures: [sides]map[string][]float64{{}, {}}}
	*list = append(*list, b)
	return b
}

// steps have a process of each side run what a pattern asks for, and keep what it finds in a list.
// A benchmark shows up once in each round, or rounds of the two sides would be paired that have
// nothing in common.
func (c *comparison) steps(pattern string, list *[]*benchmark) (steps []goal.Step) {
	var flags []string
	if !c.long {
		flags = append(flags, "-test.short")
	}
	for side, binary := range c.binaries {
		if binary == nil {
			continue
		}
		round := 0
		steps = append(steps, goal.Step{Name: pattern, Measure: func() ([]goal.Sample, error) {
			results, err := binary.Run(pattern, c.Window, tries, flags...)
			round++
			for _, r := range results {
				figures := find(list, r.Name).figures[side]
				for unit, v := range r.Values {
					figures[unit] = append(figures[unit], v)
					if n := len(figures[unit]); n != round {
						return nil, fmt.Errorf("%s has %d figures in %s after %d rounds: want one of each", r.Name, n, unit, round)
					}
				}
			}
			return nil, err
		}})
	}
	return steps
}

// ratios returns now over base of the processor time in the rounds that both have, or of the time
// that passed where one side does not report the other.
func (b *benchmark) ratios() (r []float64) {
	before, after := b.figures[base][gobench.Processor], b.figures[now][gobench.Processor]
	if len(before) == 0 || len(after) == 0 {
		before, after = b.figures[base][gobench.Time], b.figures[now][gobench.Time]
	}
	for i := range min(len(before), len(after)) {
		if before[i] > 0 && after[i] > 0 {
			r = append(r, after[i]/before[i])
		}
	}
	return r
}

// worstFirst orders by what happened to the time, from slower to faster; last what cannot be
// compared.
func worstFirst(a, b *benchmark) int { return cmp.Compare(b.change.Ratio, a.change.Ratio) }

// exactly is a pattern for one benchmark, which may be below others.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
