package workers

import (
	"os"
	"sync"
	"time"
)

const (
	// censusEvery is how often the processes of workers are counted where they have a limit.
	censusEvery = 25 * time.Millisecond
	// censusShare is which part of the time a count may take: with many processes it is less often.
	censusShare = 20
)

// census counts the processes in the groups of workers, and ends workers with too many. The system
// has no such limit: RLIMIT_NPROC counts all of the user's, the pids controller threads.
type census struct {
	mu     sync.Mutex
	proc   *os.File        // where the system lists all processes; nil until it is needed
	most   map[*worker]int // of those that are watched
	sizes  map[int]int     // by group; only used in look
	timer  *time.Timer     // nil if no count is due
	closed bool
}

func (c *census) watch(w *worker, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most == nil {
		c.most, c.sizes = make(map[*worker]int), make(map[int]int)
	}
	c.most[w] = most
	c.later(0)
}

func (c *census) forget(w *worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.most, w)
}

// later has the next count follow one that took so long. The caller holds the lock.
func (c *census) later(took time.Duration) {
	if c.timer == nil && !c.closed && len(c.most) > 0 {
		c.timer = time.AfterFunc(max(censusEvery, censusShare*took), c.look)
	}
}

// look counts once. A worker knows whether it was reaped: none is ended by a reused number.
func (c *census) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	begin := time.Now()
	clear(c.sizes)
	for w := range c.most {
		c.sizes[w.proc.Pid] = 0
	}
	countGroups(c.proc, c.sizes)
	for w, most := range c.most {
		if c.sizes[w.proc.Pid] > most {
			w.kill(reasonProcesses)
		}
	}
	c.timer = nil
	c.later(time.Since(begin))
}

func (c *census) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.proc != nil {
		_ = c.proc.Close() // only read
	}
}

// open makes sure that processes can be counted; nothing that has a limit is started otherwise.
func (c *census) open() (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return errClosed
	case c.proc == nil:
		c.proc, err = openProcesses()
	}
	return err
}

// CanCount reports why processes cannot be counted here (MaxProcesses), nil if they can.
func CanCount() error {
	f, err := openProcesses()
	if err == nil {
		_ = f.Close() // only read
	}
	return err
}
