package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// grpcProgram serves the method and makes the calls.
const grpcProgram = "grpcunary"

func (f *field) enterGRPC() error {
	s, err := f.peer(grpcgo, grpcProgram, "-reply", f.replySize())
	if err != nil {
		return err
	}
	f.entrants = append(f.entrants, entrant{grpcgo, unary, func(conns, depth int) goal.Step {
		return goal.One(cell(grpcgo, unary, conns, depth), func() (goal.Sample, error) { return f.grpcCell(s, conns, depth) })
	}})
	return nil
}

// grpcCell has another process make the calls, which prints a sample.
func (f *field) grpcCell(s *load.Server, conns, depth int) (sample goal.Sample, err error) {
	request := len(load.RowRequest(evaluated, 0))
	cmd := exec.Command(filepath.Join(f.bin, grpcProgram), "-load", s.Addr, "-pid", strconv.Itoa(s.PID()), "-conns", strconv.Itoa(conns), "-inflight", strconv.Itoa(depth),
		"-request", strconv.Itoa(request), "-reply", f.replySize(), "-warmup", f.Warmup.String(), "-window", f.Window.String())
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err = load.StartPinned(cmd, f.LoadCPUs); err == nil {
		err = cmd.Wait()
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &sample)
	}
	if err != nil {
		return sample, fmt.Errorf("cannot make gRPC calls: %w: %s", err, strings.TrimSpace(complaints.String()))
	}
	return sample, nil
}
