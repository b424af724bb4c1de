package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// httpListening is the line by which trunkline reports where boundary A listens.
var httpListening = regexp.MustCompile(`http listening on (127\.0\.0\.1:\d+)`)

// measureProcess starts one process per envelope, and then asks for the same over kept HTTP
// connections.
func measureProcess(rig *load.Rig, o options) ([]asked, error) {
	envelope := flatEnvelope(stepSize)
	if err := spawnAll(rig.Binary, o.count, envelope); err != nil {
		return nil, err
	}
	c := load.Trunkline(rig.Binary, "kernel.loops="+strconv.Itoa(o.loops))
	c.Listening = httpListening
	s, err := rig.Start(c)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	var steps []goal.Step
	for _, conns := range []int{1, 32} {
		var tapes []*load.Tape
		for range conns {
			tape := new(load.Tape)
			tape.Add(0, load.AppendPost(nil, "/api/v1/process", envelope))
			tapes = append(tapes, tape)
		}
		cfg := load.Config{Addr: s.Addr, Protocol: load.HTTP, Tapes: tapes, Depth: 1, Spin: conns > 1}
		steps = append(steps, goal.One(goal.Cell{Server: fmt.Sprintf("http ×%d", conns)}, func() (goal.Sample, error) {
			return load.Measure(cfg, s, o.warmup, o.window)
		}))
	}
	all, err := goal.Rounds(o.rounds, steps, io.Discard)
	if err != nil {
		return nil, err
	}
	printCells(all)
	return nil, nil
}

// spawnAll runs the command once per envelope, one after the other, and prints what each took.
func spawnAll(binary string, count int, envelope []byte) error {
	took, cpu := make([]float64, count), make([]float64, count)
	var out bytes.Buffer
	begin := time.Now()
	for i := range count {
		cmd := exec.Command(binary, "process")
		out.Reset()
		cmd.Stdin, cmd.Stdout = bytes.NewReader(envelope), &out
		wall, used, err := load.RunOnce(cmd)
		if err != nil {
			return fmt.Errorf("cannot process envelope %d: %w", i, err)
		}
		took[i], cpu[i] = float64(wall), float64(used)
		if !bytes.HasSuffix(out.Bytes(), []byte("}\n")) || !bytes.Contains(out.Bytes(), []byte(`"current_stage":"intent"`)) {
			return fmt.Errorf("cannot take the answer to envelope %d: %q", i, out.Bytes())
		}
	}
	total := time.Since(begin)
	at := func(v []float64, q float64, unit time.Duration) time.Duration {
		return time.Duration(goal.Quantile(v, q)).Round(unit)
	}
	const unit = 10 * time.Microsecond
	fmt.Printf("\n%d processes one after the other, %d bytes each: %.0f/s, p50 %v, p99 %v, slowest %v, CPU p50 %v\n",
		count, len(envelope), float64(count)/total.Seconds(), at(took, 0.5, unit), at(took, 0.99, unit), at(took, 1, time.Microsecond), at(cpu, 0.5, unit))
	return nil
}
