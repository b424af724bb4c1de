package app

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/storesocket"
	"trunkline/engine/journal"
)

// checkpoints makes checkpoints of the store for 'trunkline store backup' beside the server. They
// are below one directory, each in a new one of its own.
type checkpoints struct {
	dir    string // where they are made
	prefix string // of the names of this store's
	made   atomic.Uint64
	server *storesocket.Server // nil where the socket could not be opened
}

// openCheckpoints removes what a server that died has left, and answers from then on. Without a
// socket there is no backup beside this server, and everything else works.
func (s *storage) openCheckpoints() {
	store := absolute(s.cfg.Dir)
	c := &s.checkpoints
	c.dir, c.prefix = filepath.Join(store, storesocket.Dir), "checkpoint-"
	c.sweep(s) // whatever the name and the settings of the store were then
	if s.cfg.BackupDir != "" {
		h := fnv.New64a()
		_, _ = h.Write([]byte(store))
		c.dir, c.prefix = absolute(s.cfg.BackupDir), fmt.Sprintf("%s%016x-", c.prefix, h.Sum64()) // it may be that of several stores
		c.sweep(s)
	}
	var err error
	if c.server, err = storesocket.Serve(storesocket.Config{Store: store, Take: s.takeCheckpoint, Logger: s.logger}); err != nil {
		s.logger.Warn("'trunkline store backup' cannot reach this server", "dir", s.cfg.Dir, "error", err)
	}
}

// sweep removes the checkpoints of an earlier server. No other one has this store.
func (c *checkpoints) sweep(s *storage) {
	entries, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.logger.Warn("cannot look for checkpoints that are left", "dir", c.dir, "error", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), c.prefix) {
			c.remove(s, filepath.Join(c.dir, e.Name()))
		}
	}
}

func (c *checkpoints) remove(s *storage, place string) {
	if err := os.RemoveAll(place); err != nil {
		s.logger.Warn("cannot remove a checkpoint", "dir", place, "error", err)
	}
}

// takeCheckpoint implements storesocket.Config.Take.
func (s *storage) takeCheckpoint(ctx context.Context) (made storesocket.Checkpoint, release func(), err error) {
	c, began := &s.checkpoints, time.Now()
	if err = os.MkdirAll(c.dir, 0o700); err != nil {
		return made, nil, err
	}
	place := filepath.Join(c.dir, fmt.Sprint(c.prefix, c.made.Add(1)))
	if err = os.Mkdir(place, 0o700); err != nil { // never over one that is there
		return made, nil, err
	}
	made.Dir = filepath.Join(place, "store")
	err = s.log.Load().Checkpoint(ctx, func(upTo journal.Index) error {
		made.Index = upTo
		return s.store.Load().Checkpoint(made.Dir, s.rt.Rows().Checkpoint)
	})
	if err != nil {
		c.remove(s, place)
		return made, nil, err
	}
	s.logger.Info("checkpoint of the store made", "dir", place, "index", made.Index, "secs", time.Since(began).Seconds())
	return made, func() {
		c.remove(s, place)
		s.logger.Info("checkpoint of the store removed", "dir", place)
	}, nil
}
