package tools

import (
	"bytes"
	"context"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// maxStatus bounds what is read of the system's page about the process; it has about 1.5 KiB.
const maxStatus = 64 << 10

// selfMetrics returns what the server's own process uses.
func selfMetrics(context.Context, *Env, *tool.Call) ([]byte, error) {
	return appendMetrics(nil, os.Getpid(), readStatus("/proc/self/status"), countEntries("/dev/fd")), nil
}

// appendMetrics appends the output. What the system does not report is 0: Linux reports everything,
// others not all of it.
func appendMetrics(dst []byte, pid int, status []byte, fds int64) []byte {
	return jsonx.Build(dst).Bool("ok", true).Int("pid", int64(pid)).Int("rss_kb", statusValue(status, "VmRSS:")).
		Int("vmsize_kb", statusValue(status, "VmSize:")).Int("threads", statusValue(status, "Threads:")).
		Int("open_fds", fds).End()
}

func readStatus(name string) []byte {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	status, _ := io.ReadAll(io.LimitReader(f, maxStatus)) // what was read before a fault is good
	return status
}

// statusValue returns the number in the line of status that begins with name, 0 if there is none.
func statusValue(status []byte, name string) int64 {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			if fields := bytes.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
				return max(n, 0)
			}
		}
	}
	return 0
}

// countEntries returns how many entries the directory path has, 0 if it cannot be read. In the
// directory of open files the one that it is read with does not count.
func countEntries(path string) (n int64) {
	d, err := openDir(unix.AT_FDCWD, path, path, 0)
	if err != nil {
		return 0
	}
	defer d.close()
	_ = d.names(func(string) bool { n++; return true })
	return max(n-2, 0) // d, and the second one that names reads with
}
