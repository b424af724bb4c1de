package load

import (
	"net/netip"
	"os/exec"
	"regexp"
	"strconv"
)

// listening is the process in what ss prints of a listener.
var listening = regexp.MustCompile(`pid=(\d+)`)

// ListenerPID returns the process of this machine that listens on the port of addr, an IP
// host:port, and 0 if there is none, it is another user's, or ss is not installed. It does not
// compare hosts beyond asking that this one is a loopback address: one port is seldom two servers'.
func ListenerPID(addr string) int {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return 0
	}
	out, _ := exec.Command("ss", "-Htlnp", "sport", "=", strconv.Itoa(int(at.Port()))).Output() // empty without it
	pid := 0
	if m := listening.FindSubmatch(out); m != nil {
		pid, _ = strconv.Atoi(string(m[1])) // digits by the pattern
	}
	return pid
}
