package app

import (
	"log/slog"

	"golang.org/x/sys/unix"
)

// spareFiles is what the process opens beside its connections: listeners and their locks, event loops, logs, the admin
// endpoint's connections.
const spareFiles = 128

// warnFiles says when the limit of open files, raised as far as it went, may be hit before kernel.max_connections is. It must
// be called after the event loops have started, which raises the limit.
func warnFiles(log *slog.Logger, maxConnections int) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		log.Warn("cannot read the limit of open files", "error", err)
		return
	}
	compareFiles(log, uint64(l.Cur), maxConnections)
}

// compareFiles counts two descriptors per connection, because one that leaves its event loop needs a second one for a moment.
func compareFiles(log *slog.Logger, limit uint64, maxConnections int) {
	if wanted := 2*uint64(maxConnections) + spareFiles; limit < wanted {
		log.Warn("the limit of open files (RLIMIT_NOFILE) is low for kernel.max_connections: connections may be refused or closed before it is reached",
			"limit", limit, "wanted", wanted, "kernel.max_connections", maxConnections)
	}
}
