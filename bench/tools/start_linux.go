package tools

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// start measures the program and the small one, each started for one request.
func (b *bench) start() error {
	input := []byte(`{"input_json":"{}","ds_state":{"slots":{}}}` + "\n")
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

// starting starts a program often, with a request as its input.
func (b *bench) starting(input []byte, path string, args ...string) (goal.Sample, error) {
	return load.Starts(func() *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.Stdin, cmd.Env = bytes.NewReader(input), append(os.Environ(), b.env()...)
		return cmd
	}, good, func(n int, _ time.Duration) bool { return n*b.Options.Rounds >= b.starts })
}

// good takes a good reply.
func good(out []byte) error {
	if !bytes.HasPrefix(out, []byte(began)) {
		return errors.New("it is no good one")
	}
	return nil
}
