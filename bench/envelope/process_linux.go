package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"

	"trunkline/bench/internal/load"
)

// httpListening is the line by which trunkline says where boundary A listens.
var httpListening = regexp.MustCompile(`http listening on (127\.0\.0\.1:\d+)`)

// measureProcess starts one process per envelope, and then asks for the same over kept HTTP connections.
func measureProcess(o options) ([]goal, error) {
	envelope := flatEnvelope(stepSize)
	if err := spawnAll(o, envelope); err != nil {
		return nil, err
	}
	c := load.Trunkline(o.server, "kernel.loops="+strconv.Itoa(o.loops))
	c.Listening = httpListening
	s, err := load.StartServer(c)
	if err != nil {
		return nil, err
	}
	defer s.Stop()
	for _, conns := range []int{1, 32} {
		var tapes []*load.Tape
		for range conns {
			tape := new(load.Tape)
			tape.Add(0, load.AppendPost(nil, "/api/v1/process", envelope))
			tapes = append(tapes, tape)
		}
		cfg := load.Config{Addr: s.Addr, Protocol: load.HTTP, Tapes: tapes, Depth: 1, Spin: conns > 1}
		at := &cell{name: fmt.Sprintf("http ×%d", conns), server: s, cfg: cfg}
		for range o.rounds {
			if err := at.measure(o); err != nil {
				return nil, err
			}
		}
		at.print()
	}
	return nil, nil
}

// spawnAll runs the command once per envelope, one after the other, and prints what each took.
func spawnAll(o options, envelope []byte) error {
	took, cpu := make([]time.Duration, o.count), make([]time.Duration, o.count)
	var out bytes.Buffer
	begin := time.Now()
	for i := range o.count {
		cmd := exec.Command(o.server, "process")
		out.Reset()
		cmd.Stdin, cmd.Stdout = bytes.NewReader(envelope), &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("cannot process envelope %d: %w", i, err)
		}
		took[i] = time.Since(start)
		cpu[i] = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if !bytes.HasSuffix(out.Bytes(), []byte("}\n")) || !bytes.Contains(out.Bytes(), []byte(`"current_stage":"intent"`)) {
			return fmt.Errorf("cannot take the answer to envelope %d: %q", i, out.Bytes())
		}
	}
	total := time.Since(begin)
	slices.Sort(took)
	slices.Sort(cpu)
	at := func(v []time.Duration, q float64) time.Duration {
		return v[int(q*float64(len(v)-1))].Round(10 * time.Microsecond)
	}
	fmt.Printf("\n%d processes one after the other, %d bytes each: %.0f/s, p50 %v, p99 %v, slowest %v, CPU p50 %v\n",
		o.count, len(envelope), float64(o.count)/total.Seconds(), at(took, 0.5), at(took, 0.99), took[len(took)-1].Round(time.Microsecond), at(cpu, 0.5))
	return nil
}
