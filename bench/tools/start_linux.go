package tools

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

// start measures the program and the small one, each started for one request.
func (b *bench) start() error {
	input := filepath.Join(b.Rig.Dir, "request.json")
	if err := os.WriteFile(input, []byte(`{"input_json":"{}","ds_state":{"slots":{}}}`+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write the request: %w", err)
	}
	ours := goal.Cell{Server: trunkline, Method: "start and answer", Via: "processes", Conns: 1, Depth: 1}
	least := ours
	least.Server = small
	err := b.Rounds([]goal.Step{{Name: "starts", Measure: func() ([]goal.Sample, error) {
		return b.starting((b.starts+b.Options.Rounds-1)/b.Options.Rounds, []program{{ours, []string{b.Binary, "tool_exec", noopAID}}, {least, []string{b.worker}}}, input)
	}}})
	if err != nil {
		return err
	}
	b.against(goal.Goal{What: "start and answer / small program"}, "starts/s", ours, small)
	return nil
}

// program is one that a cell starts.
type program struct {
	cell goal.Cell
	args []string
}

// starting starts the programs in turns, n times, and takes the medians.
func (b *bench) starting(n int, programs []program, input string) (all []goal.Sample, err error) {
	wall, cpu := make([][]float64, len(programs)), make([][]float64, len(programs))
	for range n {
		for i, p := range programs {
			cmd := exec.Command(p.args[0], p.args[1:]...)
			cmd.Env = append(os.Environ(), b.env()...)
			took, used, err := runOnce(cmd, input)
			if err != nil {
				return nil, err
			}
			wall[i], cpu[i] = append(wall[i], float64(took)), append(cpu[i], float64(used))
		}
	}
	for i, p := range programs {
		half := goal.Median(wall[i])
		all = append(all, goal.Sample{Cell: p.cell, Requests: uint64(n), PerSec: float64(time.Second) / half, CPU: goal.Median(cpu[i]),
			P50: half / 1e3, P99: goal.Quantile(wall[i], 0.99) / 1e3})
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
	if !strings.HasPrefix(out.String(), began) {
		return 0, 0, fmt.Errorf("cannot take the reply %q of %s", out.String(), cmd.Path)
	}
	return wall, cpu, nil
}
