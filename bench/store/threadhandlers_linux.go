package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
)

// The handlers of MCP alone are measured by the benchmark beside them: no socket, no token, and a
// method that does nothing.
const (
	handlerSource = "./handlers/threads/mcp"
	viaNothing    = "handler alone"
)

// handlerServers are the servers of the table by the benchmarks.
var handlerServers = map[string]string{"Front": threadServer, "SDK": goSDK}

// buildHandlers builds the benchmark once, so that no round waits for a compiler.
func (t *talk) buildHandlers() error {
	t.handlerTest = filepath.Join(t.Dir, "mcp.test")
	if out, err := exec.Command("go", "test", "-c", "-o", t.handlerTest, handlerSource).CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the benchmark of the handlers: %w\n%s", err, out)
	}
	return nil
}

// handlers runs the benchmark once. It has four rows, which take a window together.
func (t *talk) handlers() ([]goal.Sample, error) {
	cmd := exec.Command(t.handlerTest, "-test.run", "^$", "-test.bench", "^Benchmark(Front|SDK)$", "-test.benchtime", (t.o.window / 4).String(),
		"-test.timeout", time.Minute.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot run the benchmark of the handlers: %w\n%s", err, out)
	}
	return readHandlers(out)
}

// readHandlers reads the rows of the benchmark's report.
func readHandlers(out []byte) (all []goal.Sample, err error) {
	row := regexp.MustCompile(`^Benchmark(Front|SDK)/(\d{4}-\d\d-\d\d)\S*\s+(\d+)\s+([0-9.]+) ns/op`)
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		m := row.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		n, err := strconv.ParseUint(m[3], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", in.Text(), err)
		}
		ns, err := strconv.ParseFloat(m[4], 64)
		if err != nil || ns <= 0 {
			return nil, fmt.Errorf("cannot read %q", in.Text())
		}
		all = append(all, goal.Sample{Cell: handlerCell(handlerServers[m[1]], m[2]), Requests: n, PerSec: 1e9 / ns})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot find a row in the report of the handlers: %q", out)
	}
	return all, nil
}

// handlerCell is a handler under the calls of a revision.
func handlerCell(server, revision string) goal.Cell {
	return over(viaNothing, server, "tools/call, "+revision, size{1, 1})
}

// handlerGoal compares the handlers alone.
func handlerGoal(all []goal.Sample) bounded {
	g := bounded{Goal: goal.Goal{What: "threads: MCP / Go SDK, handler alone", Must: 10, AtLeast: true}}
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		g.Add(revision, goal.Ratio(all, handlerCell(threadServer, revision), handlerCell(goSDK, revision), goal.Rate))
	}
	g.Evaluate()
	return g
}
