package part

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"trunkline/bench/internal/goal"
	"trunkline/bench/internal/load"
)

// Section is a piece of a part.
type Section struct {
	Name    string // for -only
	Measure func(*Run) error
}

// Sections measures the sections that -only takes, one after the other. None finds processes that
// the one before started. It is an error if -only takes none.
func (r *Run) Sections(all ...Section) error {
	var names []string
	taken := 0
	for _, s := range all {
		names = append(names, s.Name)
		if !r.Asked(s.Name) {
			continue
		}
		taken++
		start := time.Now()
		err := s.Measure(r)
		r.StopAll()
		if err != nil {
			return fmt.Errorf("cannot measure %s: %w", s.Name, err)
		}
		fmt.Fprintf(os.Stderr, "%s took %.0f s\n", s.Name, time.Since(start).Seconds())
	}
	if taken == 0 {
		return fmt.Errorf("cannot measure: -only takes none of %q", names)
	}
	return nil
}

// Config is a load by as many workers as the options ask for, on the CPUs that are left for it.
func (r *Run) Config(addr string, p load.Protocol, tapes []*load.Tape, depth int) load.Config {
	return load.Config{Addr: addr, Protocol: p, Tapes: tapes, Depth: depth, Workers: r.Workers, CPUs: r.LoadCPUs, Spin: r.Spin}
}

// Step is the step that measures a server under a load. The cell is named up to its size, which is
// that of the load.
func (r *Run) Step(c goal.Cell, s *load.Server, cfg load.Config) goal.Step {
	c.Conns, c.Depth = len(cfg.Tapes), cfg.Depth
	return goal.One(c, func() (goal.Sample, error) { return load.Measure(cfg, s, r.Warmup, r.Window) })
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

// profileTime is how long a profile is taken for.
const profileTime = 2 * time.Second

// Profiled keeps a CPU profile of a server under a load in the file name.pprof of the folder that
// -profile names, and notes how to read it. Without that flag it does nothing.
func (r *Run) Profiled(name string, s *load.Server, cfg load.Config) error {
	if r.Profile == "" {
		return nil
	}
	path := filepath.Join(r.Profile, name+".pprof")
	if err := s.Profile(cfg, r.Warmup, profileTime, path); err != nil {
		return fmt.Errorf("cannot profile %s: %w", name, err)
	}
	r.Report.Note("Profile of %s, %d connections, %d in flight: go tool pprof -top %s",
		name, len(cfg.Tapes), cfg.Depth, path)
	return nil
}

// roomyTemp is the folder for temporary files that the file system hierarchy wants kept on a disk.
const roomyTemp = "/var/tmp"

// onDisk returns dir, or a folder that is found where it is empty. A folder whose files are kept in
// memory is refused: a sync there costs nothing and saves nothing.
func onDisk(dir string) (string, error) {
	candidates := []string{dir}
	if dir == "" {
		candidates = []string{roomyTemp, "."}
	}
	var refused error
	for _, c := range candidates {
		path, err := filepath.Abs(c)
		if err == nil {
			_, err = os.Stat(path)
		}
		if held := filesystem(path); err == nil && (strings.HasPrefix(held, "tmpfs ") || strings.HasPrefix(held, "ramfs ")) {
			err = fmt.Errorf("the files of %s are kept in memory (%s)", path, held)
		}
		if err == nil {
			return path, nil
		}
		refused = errors.Join(refused, err)
	}
	return "", fmt.Errorf("cannot find a folder on a disk, give one with -dir: %w", refused)
}

// filesystem names the file system and the device that hold path, as "ext4 on /dev/sda1".
func filesystem(path string) string {
	out, err := exec.Command("findmnt", "-no", "FSTYPE,SOURCE", "-T", path).Output()
	if f := strings.Fields(string(out)); err == nil && len(f) == 2 {
		return f[0] + " on " + f[1]
	}
	return "unknown"
}
