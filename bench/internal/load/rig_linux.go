package load

import (
	"cmp"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Rig is what a run stands on: a folder that goes with it, the binary of the server under test, and
// the processes started so far. It is not safe for concurrent use.
type Rig struct {
	Dir    string
	Binary string // trunkline; empty where the run has none
	CPUs   []int  // pin the servers to these CPUs; empty: anywhere

	servers []*Server
}

// NewRig makes a rig whose folder is in parent, or with the system's temporary files if that is
// empty. name begins the folder's.
func NewRig(parent, name string) (*Rig, error) {
	dir, err := os.MkdirTemp(parent, name)
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the run: %w", err)
	}
	return &Rig{Dir: dir}, nil
}

// exitInterrupted is what a shell reports of a program that SIGINT ended.
const exitInterrupted = 130

// GoesWithSignal ends the program on SIGINT or SIGTERM without leaving the folder behind. The
// processes go with the program.
func (r *Rig) GoesWithSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		_ = os.RemoveAll(r.Dir) // in a directory for what may stay behind
		os.Exit(exitInterrupted)
	}()
}

// FindServer looks for the server's binary in path, or builds it if path is empty.
func (r *Rig) FindServer(path string) (err error) {
	r.Binary, err = FindBinary(path, "./cmd/trunkline", r.Dir)
	return err
}

// Divide pins the servers to one half of the CPUs that this process may use and returns the other,
// for the load, so that neither takes the other's time. With one there is nothing to divide and
// both are empty.
func (r *Rig) Divide() (loads []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("cannot read the CPU affinity: %w", err)
	}
	var all []int
	for c := 0; len(all) < set.Count(); c++ {
		if set.IsSet(c) {
			all = append(all, c)
		}
	}
	half := len(all) / 2
	if r.CPUs = all[:half]; half > 0 {
		loads = all[half:]
	}
	return loads, nil
}

// Start starts a process that Close ends.
func (r *Rig) Start(c Command) (*Server, error) {
	c.CPUs, c.TempDir = r.CPUs, r.Dir
	s, err := StartServer(c)
	if err != nil {
		return nil, err
	}
	r.servers = append(slices.DeleteFunc(r.servers, func(s *Server) bool { return !s.Alive() }), s)
	return s, nil
}

// Trunkline starts the server under test (see the function Trunkline).
func (r *Rig) Trunkline(settings ...string) (*Server, error) {
	return r.Start(Trunkline(r.Binary, settings...))
}

// Self is this program.
const Self = "/proc/self/exe"

// Peer starts a program that reports where it listens as the peers do (PeerListening). An empty
// path is this program itself.
func (r *Rig) Peer(name, path string, args ...string) (*Server, error) {
	return r.Start(Command{Name: name, Path: cmp.Or(path, Self), Args: args, Listening: PeerListening})
}

// Redis starts a redis-server on a free port, with a folder of its own and the settings in args.
func (r *Rig) Redis(name, path string, args ...string) (*Server, error) {
	dir, err := os.MkdirTemp(r.Dir, "redis-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for redis: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot find a port for redis: %w", err)
	}
	addr := ln.Addr().(*net.TCPAddr)
	ln.Close()
	args = append([]string{"--port", strconv.Itoa(addr.Port), "--bind", "127.0.0.1", "--dir", dir}, args...)
	s, err := r.Start(Command{Name: name, Path: path, Args: args, Listening: redisReady})
	if err == nil {
		s.Addr = addr.String()
	}
	return s, err
}

// StopAll ends every process that runs.
func (r *Rig) StopAll() {
	for _, s := range r.servers {
		s.Stop()
	}
	r.servers = nil
}

// Close ends every process that runs and removes the folder.
func (r *Rig) Close() {
	r.StopAll()
	_ = os.RemoveAll(r.Dir) // in a directory for what may stay behind
}

// DirectoryBytes adds up the files below dir; ones that go meanwhile count nothing.
func DirectoryBytes(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
