package main

import (
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/engine/envelope"
)

// stepSize is the size of the envelope in bytes that the goal is about.
const stepSize = 4 << 10

// stepBatch is how many calls one side makes before it is the other's turn: short, so that what else the machine does hits both.
const stepBatch = 50

// measureStep compares one engine step with decoding the same bytes into a map and encoding that again.
func measureStep(o options) ([]goal, error) {
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
	g := goal{what: fmt.Sprintf("engine step on a flat envelope of %d bytes against encoding/json decode to map and encode", len(src)), must: 5}
	var ours, theirs []float64
	for range o.rounds {
		a, b, err := inTurns(step, twice, o.window)
		if err != nil {
			return nil, err
		}
		ours, theirs, g.ratios = append(ours, a), append(theirs, b), append(g.ratios, b/a)
	}
	fmt.Printf("\nengine step %.0f ns, encoding/json %.0f ns of CPU\n", median(ours), median(theirs))
	return []goal{g}, nil
}

// inTurns calls a and b in turns for about as long as within and returns the CPU time in nanoseconds that one call of each took. It is
// the whole process's, so that garbage collection counts for the side that made the garbage.
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
