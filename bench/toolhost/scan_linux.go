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

// fieldScan is the kind of the cells that bench/peers/jsonscan measures.
const fieldScan = "field scan"

// The libraries of the field scan that check the whole line, as trunkline does, and the one that
// does not.
func checking() []string { return []string{"fastjson", "sonic-valid-searcher", "sonic-root"} }

const unchecked = "sonic-searcher"

// buildScan builds the benchmark of the field scan once, so that no round waits for a compiler.
func (b *bench) buildScan() error {
	b.scanTest = filepath.Join(b.Dir, "jsonscan.test")
	cmd := exec.Command("go", "test", "-c", "-o", b.scanTest, "./jsonscan")
	cmd.Dir = b.o.peers
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the field scan: %w\n%s", err, out)
	}
	return nil
}

// scan runs the benchmark once.
func (b *bench) scan() ([]goal.Sample, error) {
	cmd := exec.Command(b.scanTest, "-test.run", "^$", "-test.bench", ".", "-test.count", "1", "-test.benchtime", b.o.scan.String(),
		"-test.timeout", time.Minute.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot run the field scan: %w\n%s", err, out)
	}
	return readScan(out)
}

// readScan reads the rows of the benchmark's report: the processor time of the thread for each
// line.
func readScan(out []byte) (all []goal.Sample, err error) {
	row := regexp.MustCompile(`^BenchmarkFind/([^/\s]+)/([^\s]+?)(?:-\d+)?\s+(\d+)\s.*\s([0-9.]+) cpu-ns/op`)
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
		all = append(all, goal.Sample{Cell: scanCell(m[2], m[1]), Requests: n, CPU: ns, PerSec: 1e9 / ns})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot find a row in the report of the field scan: %q", out)
	}
	return all, nil
}

func scanCell(library, line string) goal.Cell {
	return goal.Cell{Server: library, Method: fieldScan, Via: line}
}
