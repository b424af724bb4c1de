package app

import (
	"log/slog"

	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/config"
)

// spareFiles is what the process opens beside its connections: listeners and their locks, event
// loops, logs, the admin endpoint's connections.
const spareFiles = 128

// warnFiles warns when the limit of open files, raised as far as it went, may be hit before the
// limits of connections are. It must be called after the event loops have started, which raises the
// limit.
func warnFiles(log *slog.Logger, cfg *config.Config) {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		log.Warn("cannot read the limit of open files", "error", err)
		return
	}
	compareFiles(log, uint64(l.Cur), cfg)
}

// compareFiles counts two descriptors per connection of the kernel endpoint, because one that
// leaves its event loop needs a second one for a moment, and one per connection of HTTP.
func compareFiles(log *slog.Logger, limit uint64, cfg *config.Config) {
	k, h := cfg.Kernel.MaxConnections, cfg.HTTP.MaxConnections*len(cfg.HTTP.ListenAddr)
	if wanted := 2*uint64(k) + uint64(h) + spareFiles; limit < wanted {
		log.Warn("the limit of open files (RLIMIT_NOFILE) is low for kernel.max_connections and http.max_connections: connections may be refused or closed before they are reached",
			"limit", limit, "wanted", wanted, "kernel.max_connections", k, "http.max_connections", cfg.HTTP.MaxConnections)
	}
}
