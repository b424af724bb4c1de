package workers

import (
	"context"
	"os"
	"runtime"
	"sync"

	"trunkline/handlers/toolhost/procgroup"
	"trunkline/handlers/toolhost/shim"
)

// Limits bound what a worker process may use; 0 leaves a resource as the server has it. MB of
// toolhost §4.9 is MiB here. Best effort: nothing is limited on systems other than Linux.
type Limits = shim.Limits

// Spawner starts processes from one OS thread that lives as long as it does: the signal that ends a worker when the server dies is
// sent when the thread that started it ends (toolhost §4.9), and Go ends threads as it likes. Any number of tools may share one.
type Spawner struct {
	jobs      chan *spawnJob
	done      chan struct{}
	stop      sync.Once
	compiling chan struct{} // has room for maxCompiles
	sweep     sync.Once     // of what earlier servers left behind
	watches   bool          // this system reports when a worker takes its request
	census    census
}

// spawnJob is one process to be started.
type spawnJob struct {
	file  string
	argv  []string
	attr  *os.ProcAttr
	ended chan struct{}

	proc *procgroup.Process
	err  error
}

// NewSpawner starts the thread. Close ends it.
func NewSpawner() *Spawner {
	s := &Spawner{jobs: make(chan *spawnJob), done: make(chan struct{}), compiling: make(chan struct{}, maxCompiles), watches: canWatch()}
	ready := make(chan struct{})
	go s.loop(ready)
	<-ready
	return s
}

func (s *Spawner) loop(ready chan<- struct{}) {
	runtime.LockOSThread()
	// Without this the thread would end with the goroutine, and every process it started with it.
	defer runtime.UnlockOSThread()
	close(ready)
	for {
		select {
		case j := <-s.jobs:
			j.proc, j.err = procgroup.Start(j.file, j.argv, j.attr)
			close(j.ended)
		case <-s.done:
			return
		}
	}
}

// start starts a process in a process group of its own. It waits for its turn until ctx ends.
func (s *Spawner) start(ctx context.Context, j *spawnJob) (*procgroup.Process, error) {
	select {
	case s.jobs <- j:
		<-j.ended
		return j.proc, j.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.done:
		return nil, os.ErrClosed
	}
}

// Close ends the thread. Tools that use it must be closed before. It may be called again.
func (s *Spawner) Close() {
	s.stop.Do(func() {
		close(s.done)
		s.census.close()
	})
}
