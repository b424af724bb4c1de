// Package systemd takes the sockets that the supervisor of the process has opened, and reports to
// it.
package systemd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/config"
)

// Sockets are listening sockets that the supervisor of the process has opened and keeps open when
// the process ends (socket activation): clients that connect during a restart wait. Their names are
// the settings that they stand for.
type Sockets struct{ open []socket }

// socket is one that no part of the server has taken yet.
type socket struct {
	key, addr string // as it is written in the setting
	ln        net.Listener
}

// maxSockets bounds LISTEN_FDS: eight settings have addresses, 64 each at most.
const maxSockets = 512

// Open returns the sockets that the process was started with, nil if there are none. It
// takes them out of the environment. A name that is no setting with addresses is an error.
func Open() (*Sockets, error) {
	// activation.Files allocates for any number.
	if n, err := strconv.Atoi(os.Getenv("LISTEN_FDS")); err == nil && n > maxSockets && os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) {
		return nil, fmt.Errorf("cannot use LISTEN_FDS = %d: at most %d sockets are taken", n, maxSockets)
	}
	files := activation.Files(true)
	if len(files) == 0 {
		return nil, nil
	}
	s := new(Sockets)
	for _, f := range files {
		if err := s.add(f); err != nil {
			s.Close()
			return nil, err
		}
		_ = f.Close() // the listener has a descriptor of its own
	}
	return s, nil
}

func (s *Sockets) add(f *os.File) error {
	key := f.Name()
	ln, err := listenerOf(f)
	if err != nil {
		return fmt.Errorf("cannot use the socket named %s: it is no listening stream socket: %w", key, err)
	}
	addr := ln.Addr().String()
	if ln.Addr().Network() == "unix" {
		addr = "unix://" + addr
	}
	s.open = append(s.open, socket{key, addr, ln})
	if !config.IsAddress(key) {
		return fmt.Errorf("cannot use the socket named %q: its name (FileDescriptorName=) has to be a setting with addresses, such as %s", key, config.NearestAddress(key))
	}
	if strings.Contains(addr, ",") {
		return fmt.Errorf("cannot use the socket %s for %s: an address may have no comma", addr, key)
	}
	return nil
}

// listenerOf returns the listener of a TCP or unix stream socket. net.FileListener takes sockets of
// packets too, and those on which no one listens: each accept would fail.
func listenerOf(f *os.File) (net.Listener, error) {
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	listens := 0
	raw, err := f.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) { listens, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ACCEPTCONN) })
		err = errors.Join(err, failed)
	}
	network := ln.Addr().Network()
	if err == nil && (listens == 0 || network != "tcp" && network != "unix") {
		err = fmt.Errorf("%s socket, listening %t", network, listens != 0)
	}
	if err != nil {
		_ = ln.Close()
		return nil, err
	}
	return ln, nil
}

// Addrs returns the addresses by setting; none of a nil s.
func (s *Sockets) Addrs() map[string][]string {
	if s == nil {
		return nil
	}
	addrs := make(map[string][]string)
	for _, o := range s.open {
		addrs[o.key] = append(addrs[o.key], o.addr)
	}
	return addrs
}

// Take returns the socket with an address of a setting, nil if there is none.
func (s *Sockets) Take(key, addr string) net.Listener {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.open, func(o socket) bool { return o.key == key && o.addr == addr })
	if i < 0 {
		return nil
	}
	ln := s.open[i].ln
	s.open = slices.Delete(s.open, i, i+1)
	return ln
}

// Check refuses sockets that no part of the server has taken: their clients would wait for ever.
func (s *Sockets) Check() error {
	if s == nil || len(s.open) == 0 {
		return nil
	}
	return fmt.Errorf("cannot use the socket %s for %s: that part of the server is off", s.open[0].addr, s.open[0].key)
}

// Close closes what was not taken.
func (s *Sockets) Close() {
	if s == nil {
		return
	}
	for _, o := range s.open {
		_ = o.ln.Close()
	}
	s.open = nil
}

// notifyWithin is how long a supervisor may take to read states.
const notifyWithin = time.Second

// Notify sends states to the supervisor of the process (sd_notify(3)), if it wants them. One
// that does not listen, or does not read in time, is no failure: daemon.SdNotify would wait for it
// for ever.
func Notify(states string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetWriteDeadline(time.Now().Add(notifyWithin))
	_, _ = c.Write([]byte(states))
}

// WatchdogInterval returns how often the supervisor of the process wants a sign of life, 0 for
// never.
func WatchdogInterval() time.Duration {
	d, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return 0
	}
	return d
}

// The states of sd_notify(3).
const (
	Ready     = daemon.SdNotifyReady
	Reloading = daemon.SdNotifyReloading
	Stopping  = daemon.SdNotifyStopping
	Alive     = daemon.SdNotifyWatchdog
)

// Status describes for people what the server does. A state is one line.
func Status(format string, args ...any) string {
	return "STATUS=" + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
}

// Monotonic is the clock by which the supervisor knows one reload from the one before.
func Monotonic() string { return strings.TrimSpace(daemon.SdNotifyMonotonicUsec()) }

// Extend asks for more time before a start or a stop counts as failed.
func Extend(by time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(by.Microseconds(), 10)
}
