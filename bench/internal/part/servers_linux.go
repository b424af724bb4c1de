package part

import (
	"errors"
	"fmt"
	"os/exec"

	"trunkline/bench/internal/load"
)

// Config is a load by as many workers as the options ask for, on the CPUs that are left for it.
func (r *Run) Config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: r.Workers, CPUs: r.LoadCPUs, Spin: r.Spin}
}

// StartRedis starts redis-server with the settings in args. It returns nil, and notes it, where
// redis is not to be measured or is not installed.
func (r *Run) StartRedis(name string, args ...string) (*load.Server, error) {
	path := r.Options.Redis
	if path == "auto" {
		path = "redis-server"
	}
	path, err := exec.LookPath(path)
	if r.Options.Redis == "off" || r.Options.Redis == "auto" && errors.Is(err, exec.ErrNotFound) {
		r.Report.Note("%s was not measured: redis-server is not installed, or not asked for.", name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find redis-server: %w", err)
	}
	return r.Rig.Redis(name, path, args...)
}
