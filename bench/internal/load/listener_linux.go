package load

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

// ListenerPID returns the process of this machine that listens on the port of addr, an IP
// host:port, and 0 if there is none or it is another program's, whose open files cannot be read. It
// does not compare hosts beyond asking that this one is a loopback address: one port is seldom two
// servers'.
func ListenerPID(addr string) int {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return 0
	}
	var tables []byte
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, _ := os.ReadFile(name) // empty on a machine without IPv6
		tables = append(tables, b...)
	}
	inode := listenerInode(tables, at.Port())
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed, and that is its only error
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link)))) // the pattern asks for a digit
			return pid
		}
	}
	return 0
}

// listenerInode returns the inode of the socket that listens on port in tables of /proc/net, or "".
func listenerInode(tables []byte, port uint16) string {
	const local, state, inode = 1, 3, 9
	for line := range bytes.Lines(tables) {
		f := bytes.Fields(line)
		if len(f) > inode && string(f[state]) == "0A" && bytes.HasSuffix(f[local], fmt.Appendf(nil, ":%04X", port)) {
			return string(f[inode])
		}
	}
	return ""
}
