package app

import (
	"fmt"
	"log/slog"
	"os"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/handlers/ipc"
)

// storage is the journal of an endpoint that keeps its state; nil in mode memory.
type storage struct {
	log *journal.Log
}

// openStorage opens the journal in store.dir, brings svc to where it ends, and has svc write to it from then on.
func openStorage(c *config.Store, svc *ipc.Service, logger *slog.Logger) (*storage, error) {
	if c.Mode == config.StoreMemory {
		return nil, nil
	}
	mode, err := journal.ParseMode(c.Mode)
	if err != nil {
		return nil, err
	}
	fatal := func(err error) {
		// What was not acknowledged must not be answered, and what the system holds in memory is not what is on the disk.
		logger.Error("the store failed, stopping at once", "error", err)
		os.Exit(1)
	}
	began := time.Now()
	store, err := embedded.Open(embedded.Config{Dir: c.Dir, Mode: mode, OnFatal: fatal, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("cannot open store.dir = %q: %w", c.Dir, err)
	}
	log, err := journal.Open(store, journal.Config{Mode: mode, OnDurable: svc.Durable, OnFailure: fatal, Logger: logger})
	if err != nil {
		_ = store.Close()
		return nil, fmt.Errorf("cannot open store.dir = %q: %w", c.Dir, err)
	}
	if err := svc.Recover(log, ipc.RecoverOptions{Full: store.Full}); err != nil {
		_ = log.Close()
		return nil, fmt.Errorf("cannot recover from store.dir = %q: %w", c.Dir, err)
	}
	logger.Info("recovered", "dir", c.Dir, "records", log.Appended(), "secs", time.Since(began).Seconds())
	return &storage{log}, nil
}

// Close writes what waits and gives the directory free.
func (s *storage) Close() error {
	if s == nil {
		return nil
	}
	return s.log.Close()
}

// survives says for people what is there after a restart.
func survives(c *config.Store) string {
	switch c.Mode {
	case config.StoreAlways:
		return "what was answered survives, in " + c.Dir
	case config.StoreInterval:
		return "what was answered survives the death of the process, and a power loss but for the last second, in " + c.Dir
	}
	return "nothing survives a restart"
}
