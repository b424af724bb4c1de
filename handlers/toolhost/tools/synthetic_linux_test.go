package tools

import (
	"os"
	"testing"
	"time"
)

// TestFilesOfTheKernel: what the kernel makes up is no regular file, whatever its mode says: a read of it may wait for ever.
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
	b.wantFail("AID.MEMORY.APPEND.v1", `{"text":"x"}`, openFailed)
}

// TestReadsThatWouldWait: a file that is not known to be none of the usual ones, and whose read would wait, fails instead.
func TestReadsThatWouldWait(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	defer read.Close()
	result := make(chan error, 1)
	go func() {
		_, err := nonblocking(int(read.Fd()), "pipe").Read(make([]byte, 1))
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
