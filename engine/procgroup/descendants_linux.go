package procgroup

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of what Descendants follows.
const (
	maxDescendants = 1024 // each has a handle
	maxScans       = 32   // of all processes, while new ones are found
)

// Descendants are processes that a process has started, in whatever group or session they are. One
// goroutine uses it.
type Descendants struct {
	held map[int]held // by number
}

// held is a process whose handle stays with it, whatever becomes of its number.
type held struct {
	fd    int
	start string // when it began: the same number again is another process
}

// proc is what the system shows of a process.
type proc struct {
	parent int
	start  string
}

// Descendants returns what the process has started so far. What was given up by its parent is not
// found: take them before any of them is ended. Kill must follow.
func (p *Process) Descendants() *Descendants {
	d := &Descendants{held: make(map[int]held)}
	p.mu.Lock() // or its number could be free
	defer p.mu.Unlock()
	if !p.reaped {
		d.find(p.Pid)
	}
	return d
}

// Started returns what this process has started so far. Kill must follow: it is for the end of a
// program that waits for none of them.
func Started() *Descendants {
	d := &Descendants{held: make(map[int]held)}
	d.find(os.Getpid())
	return d
}

// Kill ends the processes that are left, with what they have started since. They are stopped first,
// so that they start no more.
func (d *Descendants) Kill() {
	for range maxScans {
		for pid, h := range d.held {
			if unix.PidfdSendSignal(h.fd, unix.SIGSTOP, nil, 0) != nil { // it has ended
				d.drop(pid)
			}
		}
		if len(d.held) == 0 || !d.find(0) {
			break
		}
	}
	for pid, h := range d.held {
		_ = unix.PidfdSendSignal(h.fd, unix.SIGKILL, nil, 0)
		d.drop(pid)
	}
}

func (d *Descendants) drop(pid int) {
	_ = unix.Close(d.held[pid].fd)
	delete(d.held, pid)
}

// find adds all processes below root and below those that are held. It reports whether there are
// new ones.
func (d *Descendants) find(root int) (found bool) {
	all := processes()
	children := make(map[int][]int)
	for pid, p := range all {
		children[p.parent] = append(children[p.parent], pid)
	}
	var next []int
	if root != 0 {
		next = append(next, root)
	}
	for pid, h := range d.held {
		if all[pid].start == h.start {
			next = append(next, pid)
		}
	}
	for len(next) > 0 {
		pid := next[0]
		next = next[1:]
		for _, child := range children[pid] {
			if _, have := d.held[child]; !have && d.hold(child, all[child]) {
				found = true
				next = append(next, child)
			}
		}
	}
	return found
}

// hold opens the handle of a process, unless its number has become that of another one.
func (d *Descendants) hold(pid int, p proc) bool {
	if len(d.held) == maxDescendants {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	if now, ok := look(strconv.Itoa(pid)); !ok || now.start != p.start {
		_ = unix.Close(fd)
		return false
	}
	d.held[pid] = held{fd, p.start}
	return true
}

// processes returns all processes that run.
func processes() map[int]proc {
	all := make(map[int]proc)
	dir, err := os.Open("/proc")
	if err != nil {
		return all
	}
	defer func() { _ = dir.Close() }() // only read
	names, _ := dir.Readdirnames(-1)   // what was read counts
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, ok := look(name); ok {
				all[pid] = p
			}
		}
	}
	return all
}

// StartOf returns when a process began, in a form that is the same for all who look, and only for
// that process among all of its number. It is empty if there is none, and on other systems.
func StartOf(pid int) string {
	p, _ := look(strconv.Itoa(pid))
	return p.start
}

// look returns what is shown of a process; ok is false if it has ended.
func look(pid string) (p proc, ok bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return p, false
	}
	return parseStat(string(stat))
}

// parseStat reads the fields state, ppid and starttime (proc_pid_stat(5)). The name of the program
// before them has any bytes.
func parseStat(stat string) (p proc, ok bool) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return p, false
	}
	parent, err := strconv.Atoi(fields[1])
	return proc{parent, fields[19]}, err == nil
}
