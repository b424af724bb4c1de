package app

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

// OpenSockets returns the sockets that the process was started with, nil if there are none. It
// takes them out of the environment. A name that is no setting with addresses is an error.
func OpenSockets() (*Sockets, error) {
	files := activation.Files(true)
	if len(files) == 0 {
		return nil, nil
	}
	s := new(Sockets)
	var errs []error
	for _, f := range files {
		errs = append(errs, s.add(f))
		_ = f.Close() // the listener has a descriptor of its own
	}
	if err := errors.Join(errs...); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Sockets) add(f *os.File) error {
	key := f.Name()
	if !config.IsAddress(key) {
		return fmt.Errorf("cannot use the socket named %q: its name (FileDescriptorName=) has to be a setting with addresses, such as %s", key, config.NearestAddress(key))
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("cannot use the socket named %s: it is no listening stream socket: %w", key, err)
	}
	addr := ln.Addr().String()
	if ln.Addr().Network() == "unix" {
		addr = "unix://" + addr
	}
	s.open = append(s.open, socket{key, addr, ln})
	return nil
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

// take returns the socket with an address of a setting, nil if there is none.
func (s *Sockets) take(key, addr string) net.Listener {
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

// check refuses sockets that no part of the server has taken: their clients would wait for ever.
func (s *Sockets) check() error {
	if s == nil || len(s.open) == 0 {
		return nil
	}
	return fmt.Errorf("cannot use the socket %s for %s: that part of the server is off", s.open[0].addr, s.open[0].key)
}

// close closes what was not taken.
func (s *Sockets) close() {
	if s == nil {
		return
	}
	for _, o := range s.open {
		_ = o.ln.Close()
	}
	s.open = nil
}

// NotifySystemd sends states to the supervisor of the process (sd_notify(3)), if it wants them. One
// that does not listen is no failure.
func NotifySystemd(states string) { _, _ = daemon.SdNotify(false, states) }

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
	stateReady     = daemon.SdNotifyReady
	stateReloading = daemon.SdNotifyReloading
	stateStopping  = daemon.SdNotifyStopping
	stateAlive     = daemon.SdNotifyWatchdog
)

// stateStatus describes for people what the server does.
func stateStatus(format string, args ...any) string { return "STATUS=" + fmt.Sprintf(format, args...) }

// stateMonotonic is the clock by which the supervisor knows one reload from the one before.
func stateMonotonic() string { return strings.TrimSpace(daemon.SdNotifyMonotonicUsec()) }

// stateExtend asks for more time before a start or a stop counts as failed.
func stateExtend(by time.Duration) string {
	return "EXTEND_TIMEOUT_USEC=" + strconv.FormatInt(by.Microseconds(), 10)
}
