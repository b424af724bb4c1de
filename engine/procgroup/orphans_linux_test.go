package procgroup

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// roleName is the variable that makes the test binary a process which adopts orphans.
const roleName = "PROCGROUP_ROLE"

func init() {
	if Adopts() {
		runtime.LockOSThread()
	}
}

func TestMain(m *testing.M) {
	switch os.Getenv(roleName) {
	case "":
		os.Exit(m.Run())
	case "become": // what a process is made by its starter stays with the program that it executes
		os.Setenv(roleName, "adopter")
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err == nil {
			err = unix.Exec("/proc/self/exe", os.Args[:1], os.Environ())
			fmt.Println(err)
		}
		os.Exit(1)
	}
	if !Adopts() {
		fmt.Println("it adopts nothing")
		os.Exit(1)
	}
	go func() {
		adopter()
		os.Exit(0)
	}()
	ReapOrphans()
}

// adopter starts processes that leave orphans of every kind behind, and waits for each itself. It
// prints what is wrong.
func adopter() {
	const starters, rounds = 4, 25
	var all sync.WaitGroup
	for i := range starters {
		all.Go(func() {
			for k := range rounds {
				want := 1 + (i+k)%100
				script := fmt.Sprintf("sleep 0 & (sleep 0.01 & sleep 0.02 &) ; exit %d", want)
				code, err := 0, error(nil)
				if k%2 == 0 {
					var p *Process
					if p, err = Start("/bin/sh", []string{"sh", "-c", script}, &os.ProcAttr{}); err == nil {
						code = p.Wait()
					}
				} else {
					cmd := exec.Command("/bin/sh", "-c", script)
					if err = cmd.Run(); cmd.ProcessState != nil {
						code = cmd.ProcessState.ExitCode()
					}
				}
				if code != want {
					fmt.Printf("a child that ended with %d: %d, %v\n", want, code, err)
				}
			}
		})
	}
	all.Wait()
	left := exec.Command("/bin/sh", "-c", "exit 9") // ended long before it is waited for
	if err := left.Start(); err != nil {
		fmt.Println(err)
	}
	zombies := 0
	for range 1000 {
		if zombies = zombiesOf(os.Getpid()); zombies == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if zombies != 1 {
		fmt.Printf("%d zombies beside a child that nothing waited for yet\n", zombies-1)
	}
	if err := left.Wait(); err == nil || err.Error() != "exit status 9" {
		fmt.Println("a child that was waited for late:", err)
	}
	fmt.Println("done")
}

// zombiesOf counts the children of a process that have ended and were not reaped.
func zombiesOf(parent int) (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err == nil && strings.Contains(string(stat), fmt.Sprintf(") Z %d ", parent)) {
			n++
		}
	}
	return n
}

// TestReapOrphans: none of the orphans stays, and no exit code of an own child is lost.
func TestReapOrphans(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), roleName+"=become")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	last := ""
	for lines.Scan() {
		if last = lines.Text(); last != "done" {
			t.Error(last)
		}
	}
	if err := cmd.Wait(); err != nil || last != "done" {
		t.Errorf("%v, %q", err, last)
	}
}
