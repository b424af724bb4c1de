package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// oneShot is the kind of a cell that starts a program for one request.
const oneShot = "start and answer"

// starts starts the program and the small one in turns, each for one request, and takes the
// medians.
func (b *bench) starts() ([]goal.Sample, error) {
	input := filepath.Join(b.Dir, "request.json")
	if err := os.WriteFile(input, []byte(`{"input_json":"{}","ds_state":{"slots":{}}}`+"\n"), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the request: %w", err)
	}
	sides := []struct {
		server, path string
		args         []string
	}{{trunkline, b.Binary, []string{"tool_exec", noopAID}}, {small, b.worker, nil}}
	wall, cpu := make([][]float64, len(sides)), make([][]float64, len(sides))
	for range (b.o.runs + b.o.rounds - 1) / b.o.rounds {
		for i, side := range sides {
			cmd := exec.Command(side.path, side.args...)
			cmd.Env = append(os.Environ(), b.env()...)
			took, used, err := runOnce(cmd, input)
			if err != nil {
				return nil, err
			}
			wall[i], cpu[i] = append(wall[i], float64(took)), append(cpu[i], float64(used))
		}
	}
	var all []goal.Sample
	for i, side := range sides {
		s := goal.Sample{Cell: cell(side.server, oneShot, "processes", 1, 1), Requests: uint64(len(wall[i])), CPU: goal.Median(cpu[i])}
		s.PerSec = float64(time.Second) / goal.Median(wall[i])
		s.P50, s.P99 = goal.Median(wall[i])/1e3, goal.Quantile(wall[i], 0.99)/1e3
		all = append(all, s)
	}
	return all, nil
}

// runOnce runs a program to its end and returns what passed and the CPU time it used.
func runOnce(cmd *exec.Cmd, input string) (wall, cpu time.Duration, err error) {
	in, err := os.Open(input)
	if err != nil {
		return 0, 0, err
	}
	defer in.Close()
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, os.Stderr
	if wall, cpu, err = load.RunOnce(cmd); err != nil {
		return 0, 0, fmt.Errorf("%w: %s", err, out.String())
	}
	if !strings.HasPrefix(out.String(), `{"ok":true,"status":"OK",`) {
		return 0, 0, fmt.Errorf("cannot take the reply %q of %s", out.String(), cmd.Path)
	}
	return wall, cpu, nil
}
