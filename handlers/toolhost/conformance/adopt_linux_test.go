package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	linux "golang.org/x/sys/unix"
)

// adopterRole is the CONFORMANCE_WORKER that becomes an adopter.
const adopterRole = "adopter"

func init() { roles[adopterRole] = becomeAdopter }

// becomeAdopter makes this process one that adopts the orphans among its descendants, and then the
// program that its arguments name.
func becomeAdopter() int {
	err := linux.Prctl(linux.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		err = linux.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// adopting are the ways in which a server gets to adopt processes.
func adopting() map[string]origin {
	namespace := &syscall.SysProcAttr{Cloneflags: linux.CLONE_NEWPID}
	if uid := os.Getuid(); uid != 0 {
		namespace.Cloneflags |= linux.CLONE_NEWUSER
		namespace.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		namespace.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	return map[string]origin{
		"sub-reaper": {through: []string{worker}, env: []string{"CONFORMANCE_WORKER=" + adopterRole}},
		firstOfAll:   {attr: namespace},
	}
}

const firstOfAll = "first of a PID namespace"

// TestMaxProcsThatCannotBeCounted: in a PID namespace whose /proc is that of another one, the
// numbers there mean other processes.
func TestMaxProcsThatCannotBeCounted(t *testing.T) {
	s := newScript(t, stdio, "external")
	srv := serveAs(t, adopting()[firstOfAll], stdio, s.root, []string{"MACHINA_WORKER_MAX_PROCS=1"}, "--serve", "builtin")
	if got := srv.io.next(patience); got != `{"ok":false,"error":"cannot use MACHINA_WORKER_MAX_PROCS: /proc is that of another PID namespace"}` {
		t.Errorf("got %s", got)
	}
	if code := srv.exit(patience); code != 3 {
		t.Errorf("exit %d", code)
	}
}

// TestNothingStaysAZombie: what killed workers leave behind is reaped where the server is its new
// parent, and the exit codes of workers are those that they ended with.
func TestNothingStaysAZombie(t *testing.T) {
	for name, as := range adopting() {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits for timeouts
			s := newScript(t, unix, "external")
			s.copyFiles([]string{"ext.json"})
			srv := serveAs(t, as, unix, s.root, nil, "--serve", "ext.json", "--breaker-threshold", "1000000")
			leaveOrphans(t, srv, s.root)
			var zombies []string
			for range 500 {
				if zombies = zombiesOf(srv.cmd.Process.Pid); len(zombies) == 0 {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if len(zombies) > 0 {
				t.Errorf("%d zombies: %s", len(zombies), zombies)
			}
			srv.term()
			if code := srv.exit(patience); code != 0 {
				t.Errorf("exit %d: %s", code, srv.talk)
			}
		})
	}
}

// leaveOrphans has workers be killed that have children, and others exit with codes of their own at
// the same time.
func leaveOrphans(t *testing.T, srv *server, root string) {
	t.Helper()
	var all sync.WaitGroup
	for range 3 {
		c := srv.dial(t)
		all.Go(func() {
			for range 20 {
				say1(c, `{"aid":"AID.EXT.ONE.v1","inputs":{"do":"exit","n":41}}`)
				if got := c.next(patience); !strings.Contains(got, "toolhost exit 41: ") {
					t.Errorf("got %s", got)
					return
				}
			}
		})
	}
	c := srv.dial(t)
	left := 0
	for i := 0; i < 20 && left < 3; i++ { // a worker may be too slow to start anything before its timeout
		child := filepath.Join(root, "child"+strconv.Itoa(i))
		say1(c, `{"aid":"AID.EXT.PY.v1","inputs":{"do":"hang","reply":"`+child+`"}}`)
		if got := c.next(patience); !strings.Contains(got, `"type":"timeout"`) {
			t.Errorf("got %s", got)
		}
		if _, err := os.Stat(child); err == nil {
			left++
		}
	}
	if left < 3 {
		t.Errorf("%d workers left a process behind", left)
	}
	all.Wait()
}

// zombiesOf lists the children of a process that have ended and were not reaped.
func zombiesOf(parent int) (list []string) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(stat), fmt.Sprintf(") Z %d ", parent)) {
			list = append(list, strings.TrimSpace(string(stat)))
		}
	}
	return list
}
