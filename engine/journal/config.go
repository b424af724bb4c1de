package journal

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"
)

// Defaults of Config.
const (
	defaultBlockBytes   = 512 << 10
	defaultQueueBytes   = 64 << 20
	defaultQueueRecords = 1 << 20
)

// Smallest values that Open accepts: a common record fits, and no block is larger than the queue.
const (
	minBlockBytes = 512
	minQueueBytes = 512
)

// Config is what a Log is made of beside its store. The zero value means the defaults.
type Config struct {
	// Partition is in every block; a store that holds another partition is refused.
	Partition uint32
	// Mode is in every block. A store made in another mode is refused, and so is Memory.
	Mode Mode
	// MaxBlockBytes is where a group ends. A longer record has its own block. 0: defaultBlockBytes.
	MaxBlockBytes int
	// MaxQueueBytes and MaxQueueRecords may wait for acknowledgement before Overloaded reports
	// true. As much again is room for requests that asked before, and for work that cannot be
	// refused. Beyond it the journal stops, so memory is bounded. 0: defaultQueueBytes,
	// defaultQueueRecords.
	MaxQueueBytes   int64
	MaxQueueRecords int
	// RecoverTo, if not 0, is an operator's answer to a DamageError. Every record after this index,
	// every snapshot that holds one, and every damaged snapshot is dropped for good at the end of
	// Replay. The index must be the last of a block, as the one before a DamageError is. An index
	// at or after the end of the log drops damaged snapshots only.
	RecoverTo Index
	// Now reads the wall clock. nil: time.Now.
	Now func() time.Time
	// Elapsed reads a clock that runs evenly. nil: the time since Open.
	Elapsed func() time.Duration
	// Logger gets what an operator should know. nil: it is dropped.
	Logger *slog.Logger
	// OnDurable is called once for every group, in order, with the index of its last record: all
	// records up to it are acknowledged. It runs on the committer without a lock, and delays the
	// next group. It may call Append. It must not call Barrier or Close.
	OnDurable func(upTo Index)
	// OnWritten is called once for every group: how long it waited since it was first asked for,
	// less than zero if nothing waits for it, and how long the store took. It runs on the committer
	// without a lock, before OnDurable, and must be quick.
	OnWritten func(waited, took time.Duration)
	// OnFailure is called at most once, when the journal stops: nothing after the last OnDurable is
	// ever acknowledged. The owner sends no reply that depends on it and ends the process. It runs
	// on the committer without a lock. It must not call Close.
	OnFailure func(err error)
}

func (c *Config) complete() error {
	c.MaxBlockBytes = cmp.Or(c.MaxBlockBytes, defaultBlockBytes)
	c.MaxQueueBytes = cmp.Or(c.MaxQueueBytes, defaultQueueBytes)
	c.MaxQueueRecords = cmp.Or(c.MaxQueueRecords, defaultQueueRecords)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Elapsed == nil {
		opened := time.Now()
		c.Elapsed = func() time.Duration { return time.Since(opened) }
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.OnDurable == nil {
		c.OnDurable = func(Index) {}
	}
	if c.OnWritten == nil {
		c.OnWritten = func(_, _ time.Duration) {}
	}
	if c.OnFailure == nil {
		c.OnFailure = func(error) {}
	}
	return c.check()
}

func (c *Config) check() error {
	switch {
	case c.Mode >= Memory:
		return fmt.Errorf("cannot open journal in mode %s: nothing is written in it", c.Mode)
	case c.MaxBlockBytes < minBlockBytes || c.MaxBlockBytes > MaxStoredBlock:
		return fmt.Errorf("cannot open journal with blocks of %d bytes: want %d to %d", c.MaxBlockBytes, minBlockBytes, MaxStoredBlock)
	case c.MaxQueueBytes < minQueueBytes:
		return fmt.Errorf("cannot open journal with a queue of %d bytes: want at least %d", c.MaxQueueBytes, minQueueBytes)
	case c.MaxQueueRecords < 1:
		return fmt.Errorf("cannot open journal with a queue of %d records: want at least 1", c.MaxQueueRecords)
	}
	return nil
}

// Mode is what an acknowledged record has survived. It is fixed when a store is made.
type Mode uint8

// The modes. The zero value is the safest.
const (
	// Always acknowledges a record when its block is synced. A power loss loses no acknowledged
	// record.
	Always Mode = iota
	// Interval acknowledges a record when its block was handed to the operating system. The death
	// of the process loses nothing. A power loss loses at most what was acknowledged since the last
	// sync: on a good disk in one second, on any disk in two.
	Interval
	// Memory: nothing is written; a restart starts empty.
	Memory
)

// String returns the name of m as it is in the settings (store.mode).
func (m Mode) String() string {
	switch m {
	case Always:
		return "always"
	case Interval:
		return "interval"
	case Memory:
		return "memory"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode is the inverse of String.
func ParseMode(s string) (Mode, error) {
	for m := Always; m <= Memory; m++ {
		if s == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("cannot parse journal mode: %q (have always, interval, memory)", s)
}
