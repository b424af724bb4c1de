package builtin

import (
	"os"
	"testing"
	"time"

	"trunkline/handlers/toolhost/tool"

	"golang.org/x/sys/unix"
)

// TestFilesOfTheKernel: what the kernel makes up is no regular file, whatever its mode states: a
// read of it may wait for ever.
func TestFilesOfTheKernel(t *testing.T) {
	b := newBench(t)
	b.setEnv(map[string]string{"MACHINA_ROOT": "/"})
	paths := []string{"/proc/self/status", "/proc/sys/kernel/ostype", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/cgroup.controllers"}
	if os.Getuid() == 0 { // others cannot open it
		paths = append(paths, "/proc/kmsg")
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			b.wantEscape(path, readError)
		}
	}
	b.setEnv(map[string]string{"MACHINA_ROOT": "/proc/sys/kernel", "MACHINA_MEMORY_ROOT": "/proc/sys/kernel"})
	b.wantEscape("ostype", readError)
	b.wantFail("AID.MEMORY.APPEND.v1", `{"text":"x"}`, errOpenFailed.Error())
}

// TestReadsThatWouldWait: a file that is not known to be none of the usual ones, and whose read
// would wait, fails instead.
func TestReadsThatWouldWait(t *testing.T) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends[1])
	read := tool.Nonblocking(ends[0], "pipe")
	defer read.Close()
	result := make(chan error, 1)
	go func() {
		_, err := read.Read(make([]byte, 1))
		result <- err
	}()
	select {
	case err := <-result:
		if err == nil {
			t.Error("something is read of an empty pipe")
		}
	case <-time.After(10 * time.Second):
		t.Error("the read waits")
	}
}
