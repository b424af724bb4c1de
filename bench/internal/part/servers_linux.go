package part

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// Config is a load by as many workers as the options ask for, on the CPUs that are left for it.
func (r *Run) Config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: r.Workers, CPUs: r.LoadCPUs, Spin: r.Spin}
}

// Step measures a cell: a server under a load, for a warm-up and a window.
func (r *Run) Step(c goal.Cell, s *load.Server, cfg load.Config) goal.Step {
	return goal.One(c, func() (goal.Sample, error) { return load.Measure(cfg, s, r.Warmup, r.Window) })
}

// profileTime is how long a server is profiled.
const profileTime = 3 * time.Second

// KeepProfile keeps a CPU profile of a trunkline under a load in the file NAME.pprof, and prints
// the functions at its top, where the options ask for profiles.
func (r *Run) KeepProfile(name string, s *load.Server, cfg load.Config) error {
	if r.Options.Profile == "" {
		return nil
	}
	path := filepath.Join(r.Options.Profile, name+".pprof")
	top, err := s.Profile(cfg, r.Warmup, profileTime, path)
	if err != nil {
		return fmt.Errorf("cannot profile %s: %w", name, err)
	}
	fmt.Fprintf(os.Stderr, "\nprofile of %s, %d connections, %d in flight: %s\n%s", name, len(cfg.Tapes), cfg.Depth, path, top)
	return nil
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
