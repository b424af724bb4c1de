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
	return b.compare([]pair{{goal: goal.Goal{What: "start and answer / small program"}, member: "starts/s", ours: ours, peer: least,
		measure: func(c goal.Cell) (goal.Sample, error) {
			if c.Server == small {
				return b.starting(input, b.worker)
			}
			return b.starting(input, b.Binary, "tool_exec", noopAID)
		}}})
}

// starting starts a program often, one after the other, and takes the medians.
func (b *bench) starting(input, path string, args ...string) (goal.Sample, error) {
	var wall, cpu []float64
	for range (b.starts + b.Options.Rounds - 1) / b.Options.Rounds {
		cmd := exec.Command(path, args...)
		cmd.Env = append(os.Environ(), b.env()...)
		took, used, err := runOnce(cmd, input)
		if err != nil {
			return goal.Sample{}, err
		}
		wall, cpu = append(wall, float64(took)), append(cpu, float64(used))
	}
	half := goal.Median(wall)
	return goal.Sample{Requests: uint64(len(wall)), PerSec: float64(time.Second) / half, CPU: goal.Median(cpu),
		P50: half / 1e3, P99: goal.Quantile(wall, 0.99) / 1e3}, nil
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
