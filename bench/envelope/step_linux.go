package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
	"trunkline/engine/envelope"
)

// stepSize is the size of the envelope in bytes that the goal is about.
const stepSize = 4 << 10

// stepBatch is how many calls one side makes before it is the other's turn: short, so that what
// else the machine does hits both.
const stepBatch = 50

// measureStep compares one engine step with decoding the same bytes into a map and encoding that
// again.
func measureStep(_ *load.Rig, o options) ([]asked, error) {
	src := flatEnvelope(stepSize)
	engine := envelope.NewEngine(envelope.Options{})
	var dst []byte
	step := func() error {
		out, _, err := engine.Process(dst[:0], src)
		dst = out
		if err != nil {
			return err
		}
		return nil
	}
	twice := func() error {
		var m map[string]any
		if err := json.Unmarshal(src, &m); err != nil {
			return err
		}
		_, err := json.Marshal(m)
		return err
	}
	what := fmt.Sprintf("engine step on a flat envelope of %d bytes against encoding/json decode to map and encode", len(src))
	ours, theirs := goal.Cell{Server: "engine step"}, goal.Cell{Server: "encoding/json"}
	all, err := goal.Rounds(o.rounds, []goal.Step{{Name: what, Measure: func() ([]goal.Sample, error) {
		a, b, err := inTurns(step, twice, o.window)
		return []goal.Sample{{Cell: ours, CPU: a}, {Cell: theirs, CPU: b}}, err
	}}}, io.Discard)
	if err != nil {
		return nil, err
	}
	cells := goal.Summarize(all)
	fmt.Printf("\nengine step %.0f ns, encoding/json %.0f ns of CPU\n", cells[0].Median.CPU, cells[1].Median.CPU)
	return []asked{ask(what, 5, goal.Ratios(all, theirs, ours, goal.CPU))}, nil
}

// inTurns calls a and b in turns for about as long as within and returns the CPU time in
// nanoseconds that one call of each took. It is the whole process's, so that garbage collection
// counts for the side that made the garbage.
func inTurns(a, b func() error, within time.Duration) (perA, perB float64, err error) {
	var spent [2]int64
	turns := 0
	for start := time.Now(); time.Since(start) < within; turns++ {
		for side, call := range []func() error{a, b} {
			before := cpuTime()
			for range stepBatch {
				if err := call(); err != nil {
					return 0, 0, err
				}
			}
			spent[side] += cpuTime() - before
		}
	}
	calls := float64(turns * stepBatch)
	return float64(spent[0]) / calls, float64(spent[1]) / calls, nil
}

func cpuTime() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
		panic("BUG: the process has no clock: " + err.Error())
	}
	return t.Nano()
}
