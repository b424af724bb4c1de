package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// traceLine is a line that GODEBUG=gctrace=1 has the Go runtime write for each collection, with its
// three phases on the clock, of which the first and the third stop the program, and their CPU time:
// stop, assist by the program's own goroutines, background workers, workers on processors without
// other work, stop.
//
//	gc 7 @2.104s 0%: 0.018+1.3+0.002 ms clock, 0.037+0.33/1.2/0+0.004 ms cpu, …
var traceLine = regexp.MustCompile(`^gc (\d+) @\S+ \d+%: ([\d.]+)\+[\d.]+\+([\d.]+) ms clock, ([\d.]+)\+([\d.]+)/([\d.]+)/([\d.]+)\+([\d.]+) ms cpu`)

// cycle is one collection.
type cycle struct {
	n     int
	pause float64 // milliseconds that the longer of its two stops took
	cpu   float64 // milliseconds of CPU time, without sweeping
}

// cycles returns the collections in a server's output that come after number last.
func cycles(output string, last int) (found []cycle) {
	for line := range strings.Lines(output) {
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var v [7]float64
		for i := range v {
			v[i], _ = strconv.ParseFloat(m[2+i], 64) // digits by the pattern; nonsense counts as 0
		}
		n, err := strconv.Atoi(m[1])
		if err == nil && n > last {
			found = append(found, cycle{n, max(v[0], v[1]), v[2] + v[3] + v[4] + v[5] + v[6]})
		}
	}
	return found
}

// collected is what the collector did in a window.
type collected struct {
	name   string
	cycles int
	pause  float64 // worst, in milliseconds
	share  float64 // of the server's CPU time, as a part
	sample goal.Sample
}

// collectedIn sums up the collections of a window.
func collectedIn(name string, found []cycle, s goal.Sample) collected {
	c := collected{name: name, cycles: len(found), sample: s}
	used := s.CPU * float64(s.Requests) / 1e6
	for _, f := range found {
		c.pause = max(c.pause, f.pause)
		c.share += f.cpu / used
	}
	return c
}

// tracer follows the collections of a server, whose output is kept for its last lines only.
type tracer struct {
	server *load.Server
	last   int
	found  []cycle
}

func (t *tracer) look() {
	more := cycles(t.server.Output(), t.last)
	if len(more) > 0 {
		t.last = slices.MaxFunc(more, func(a, b cycle) int { return a.n - b.n }).n
		t.found = append(t.found, more...)
	}
}

// follow looks again and again for as long.
func (t *tracer) follow(lasting time.Duration) {
	for end := time.Now().Add(lasting); time.Now().Before(end); {
		time.Sleep(min(20*time.Millisecond, time.Until(end)))
		t.look()
	}
}
