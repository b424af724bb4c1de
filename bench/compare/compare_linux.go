// Package compare measures the benchmarks of bench/questions beside those of a baseline and reports
// what moved.
//
//	go run ./bench questions                     all of bench/questions
//	go run ./bench questions -only KernelMethod  some of them
//	go run ./bench questions -update             make HEAD the baseline
//
// Times of another day or another machine mean nothing here: shared hardware moves by a third
// within minutes. The baseline is therefore a revision. Its sources are taken out of git, its test
// binary is built beside the present one, and both are measured in turns.
//
// A process runs one top-level benchmark with all that is below it, three times for a hundredth of
// a second each, and the fastest try counts: what else a machine does only ever adds, in bursts
// that are shorter than that, and many short tries show more than few long ones. What counts is the
// processor time, to which other programs add least, of benchmarks that report it on both sides.
// Fewer processes would put minutes between the two of a pair, in which the machine changes; one
// for each benchmark would fill large tables again and again.
//
// The first look, four rounds of everything, picks what seems to have moved. That alone would cry
// wolf: four pairs with 5 % of noise are off by 2 % now and then, and there are many benchmarks.
// What was picked is measured again, alone and clearest first, and only these new rounds decide, by
// the interval of the median of the paired ratios at a level that all share: one run in a thousand
// in which nothing moved reports that something did. It takes 8 rounds to 256, until the interval
// excludes 1 or a change; what stays open after -again is unsure.
//
// Memory needs no statistics: B/op and allocs/op moved when every round of one side is above every
// round of the other. Where the revision is not to be had, in a tarball or a shallow clone, nothing
// is compared. What the benchmarks leave out of a short run is left out without -long.
//
// What it does not show: where a function lies in the binary. A change elsewhere can move code to
// other cache lines and make it some percent faster or slower; that is measured, and is not what
// the change means.
package compare

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
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
	// The first pass runs every benchmark and alternates the two sides, so that a pair is close in
	// time. A process runs a top-level benchmark with all its sub-benchmarks, which share inputs.
	top, _, _ := strings.Cut(c.pattern, "/")
	var steps []goal.Step
	for _, name := range c.groups {
		steps = append(steps, c.steps(exactly(name)+c.pattern[len(top):], &c.list)...)
	}
	if _, err := goal.Rounds(c.Options.Rounds, steps, os.Stderr); err != nil {
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
						return nil, fmt.Errorf("%s has %d figures in %s after %d rounds: want one of each",
							r.Name, n, unit, round)
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

// revisionLine is the line of the baseline's file that names its revision.
var revisionLine = regexp.MustCompile(`(?m)^revision: ([0-9a-f]{40})$`)

// setBaseline writes the revision of the working directory to the file. Changes that it does not
// have are an error, apart from the folder of the file: measured figures are no source.
func (c *comparison) setBaseline() error {
	c.JSON = ""
	changed, err := gobench.Output(".", "git", "status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude)"+filepath.Dir(baseline))
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("cannot set a baseline: a revision has to name its sources, and these are not committed:\n%s", changed)
	}
	revision, err := gobench.Output(".", "git", "log", "-1", "--format=revision: %H%ndate: %cs")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(baseline), 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of the baseline: %w", err)
	}
	if err := os.WriteFile(baseline, []byte(revision+"\n"), 0o644); err != nil {
		return fmt.Errorf("cannot write the baseline: %w", err)
	}
	c.Report.Note("%s names this baseline:\n%s", baseline, revision)
	return nil
}

// sources unpacks the working directory as it was in the baseline and returns where. It is empty,
// and noted, where there is no baseline, or its revision is not there, as in a tarball or a shallow
// clone.
func (c *comparison) sources() (root string, err error) {
	text, err := os.ReadFile(baseline)
	if errors.Is(err, fs.ErrNotExist) {
		c.Report.Note("NOT COMPARED: there is no baseline %s; -update (make bench-baseline) sets one.", baseline)
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the baseline: %w", err)
	}
	m := revisionLine.FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("cannot take the baseline %s: it names no revision", baseline)
	}
	revision := string(m[1])
	if _, err := gobench.Output(".", "git", "cat-file", "-e", revision+"^{commit}"); err != nil {
		c.Report.Note("NOT COMPARED: there is no revision %s here.", revision)
		return "", nil
	}
	root = filepath.Join(c.Rig.Dir, "sources")
	packed := root + ".tar"
	if err := os.Mkdir(root, 0o755); err != nil {
		return "", fmt.Errorf("cannot unpack the baseline: %w", err)
	}
	if _, err := gobench.Output(".", "git", "archive", "--output="+packed, revision); err != nil {
		return "", err
	}
	c.Report.Note("The baseline is revision %s.", revision)
	_, err = gobench.Output(".", "tar", "-x", "-C", root, "-f", packed)
	return root, err
}
