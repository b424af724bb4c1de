package reactor

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// raiseFileLimit lifts the soft limit of open files to the hard one. The Go runtime does so at start; this covers a process
// that had it lowered since.
func raiseFileLimit(log *slog.Logger) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur >= l.Max {
		return
	}
	l.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		log.Warn("cannot raise the limit of open files", "to", l.Max, "err", err)
	}
}
