package load

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// listening is the state of a socket that listens, in the tables of /proc/net.
const listening = "0A"

// ListenerPID returns the process of this machine that listens on the port of addr, an IP
// host:port, and 0 if there is none or it is another program's, whose open files cannot be read. It
// does not compare hosts beyond asking that this one is a loopback address: one port is seldom two
// servers'.
func ListenerPID(addr string) int {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return 0
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			continue // a machine without IPv6
		}
		if inode := listenerInode(b, at.Port()); inode != "" {
			return ownerOf("socket:[" + inode + "]")
		}
	}
	return 0
}

// listenerInode returns the inode of the socket that listens on port in a table of /proc/net, or
// "".
func listenerInode(table []byte, port uint16) string {
	const local, state, inode = 1, 3, 9
	suffix := fmt.Appendf(nil, ":%04X", port)
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) > inode && string(f[state]) == listening && bytes.HasSuffix(f[local], suffix) {
			return string(f[inode])
		}
	}
	return ""
}

// ownerOf returns the first process that has file open, 0 if none can be seen.
func ownerOf(file string) int {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed, and that is its only error
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != file {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if err != nil {
			return 0
		}
		return pid
	}
	return 0
}
