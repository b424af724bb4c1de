package embedded

import (
	"context"
	"errors"
	"fmt"

	"trunkline/engine/internal/pebbledir"
)

// Scrub implements journal.Scrubber. Pebble keeps log files for reuse, with what they held, and a
// log that was made of one has the rest of that after its end: so logs are emptied twice.
func (s *Store) Scrub() error {
	err := s.own()
	if err == nil {
		err = s.flush()
	}
	if err == nil { // blocks and chunks
		err = s.db.Compact(context.Background(), []byte{kindBlock}, []byte{kindChunk + 1}, false)
	}
	for i := 0; i < 2 && err == nil; i++ {
		err = s.emptyLogs()
	}
	if err == nil {
		err = pebbledir.AwaitDeleted(s.db)
	}
	if err != nil {
		return fmt.Errorf("cannot scrub journal %s: %w", s.cfg.Dir, typed(err))
	}
	return nil
}

// emptyLogs begins another log and empties those before it, whose content a flush has sorted.
func (s *Store) emptyLogs() error {
	names, err := s.cfg.FS.List(s.cfg.Dir)
	if err == nil {
		err = s.flush()
	}
	for _, name := range names {
		if err == nil && kindOf(name) == fileLog {
			err = s.fs.empty(s.cfg.FS.PathJoin(s.cfg.Dir, name))
		}
	}
	return errors.Join(err, pebbledir.Sync(s.cfg.FS, s.cfg.Dir))
}

// empty replaces a log that is not in use by an empty file, unless it was reused or removed.
func (l *logFS) empty(name string) error {
	l.reusing.Lock()
	defer l.reusing.Unlock()
	if _, err := l.FS.Stat(name); err != nil || l.failed() {
		return l.err()
	}
	f, err := l.FS.Create(name, "trunkline-scrub")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
