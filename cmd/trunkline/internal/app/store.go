package app

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/cluster/control"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/obs"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/handlers/ops"
)

// storage is the journal of an endpoint that keeps its state; nil in mode memory. It is made
// closed: open is what takes long.
type storage struct {
	cfg       *config.Store
	rows      string // the directory of the rows of agent threads
	mode      journal.Mode
	recoverTo journal.Index
	rt        *runtime.Runtime
	options   Options
	logger    *slog.Logger
	opener    func(embedded.Config) (diskStore, error)
	patience  time.Duration // interruptGrace, but in tests

	meter    *obs.Meter // as newStorageMeter
	progress progress
	store    atomic.Pointer[watched]     // once open
	log      atomic.Pointer[journal.Log] // once open
	last     atomic.Pointer[lastSnapshot]

	checkpoints checkpoints

	stopped atomic.Bool // recovery is to end
	left    atomic.Bool // recovery did not end in time, and whatever it holds ends with the process

	mu      sync.Mutex
	serves  bool  // open came to its end: from now on a failure ends the process
	failure error // the first failure before
}

// diskStore is embedded.Store, or what a test puts before it.
type diskStore interface {
	journal.Store
	Full() bool
	Broken() bool
	Stats() embedded.Stats
	Checkpoint(dir string, rows func(dir string) error) error
}

// lastSnapshot is what the journal reported last of its newest snapshot.
type lastSnapshot struct {
	index journal.Index
	at    time.Time
}

// newStorage returns the storage of rt, which is yet to be opened; nil in mode memory.
func newStorage(c *config.Store, rt *runtime.Runtime, o Options) (*storage, error) {
	if c.Mode == config.StoreMemory {
		if o.RecoverTo != 0 {
			return nil, fmt.Errorf("cannot recover to index %d: store.mode is memory, which keeps nothing", o.RecoverTo)
		}
		return nil, nil
	}
	mode, err := journal.ParseMode(c.Mode)
	if err != nil {
		return nil, err
	}
	s := &storage{
		cfg:       c,
		rows:      filepath.Join(c.Dir, o.lease.DirOf(embedded.RowsDir)),
		mode:      mode,
		recoverTo: o.RecoverTo,
		rt:        rt,
		options:   o,
		logger:    o.Logger,
		opener:    o.openStore,
		patience:  interruptGrace,
		meter:     newStorageMeter(o.recorder),
	}
	if o.lease != nil {
		s.opener = sharedOpener(o.lease)
	} else if s.opener == nil {
		s.opener = func(ec embedded.Config) (diskStore, error) { return embedded.Open(ec) }
	}
	return s, nil
}

// open opens the journal in store.dir, brings the service to where it ends, and has the service
// write to it from then on.
func (s *storage) open() error {
	if err := s.checkRecoverTo(); err != nil {
		return fmt.Errorf("cannot open store.dir = %q: %w", s.cfg.Dir, err)
	}
	disk, err := s.opener(embedded.Config{
		Dir: s.cfg.Dir, Mode: s.mode, AcceptLoss: s.recoverTo != 0, OnFatal: s.fatal, Logger: s.logger,
	})
	if err != nil {
		s.exactly(err)
		return fmt.Errorf("cannot open store.dir = %q: %w", s.cfg.Dir, err)
	}
	w := &watched{diskStore: disk, stopped: &s.stopped}
	var kept journal.Store = w
	if shared, ok := disk.(*control.Store); ok {
		kept = watchedShared{w, shared, shared}
		s.rt.Threads.SetArchive(watchedArchive{shared.Archive(), w, s.logger})
	}
	var log *journal.Log
	err = s.options.lease.Await(func() (err error) {
		log, err = journal.Open(kept, journal.Config{
			Mode: s.mode, RecoverTo: s.recoverTo, OnDurable: s.rt.Durable, OnWritten: s.written, OnFailure: s.fatal, Logger: s.logger,
		})
		return err
	})
	if err != nil {
		_ = disk.Close()
		return fmt.Errorf("cannot open store.dir = %q: %w", s.cfg.Dir, err)
	}
	s.store.Store(w)
	s.log.Store(log)
	s.progress.opened(time.Now())
	if err = s.rt.OpenRows(s.rows, s.fatal); err != nil {
		_ = log.Close()
		return err
	}
	ro := store.RecoverOptions{
		Full:     disk.Full,
		Broken:   disk.Broken,
		Progress: func(p store.RecoverProgress) { s.progress.report(p, time.Now()) },
	}
	if l := s.options.lease; l != nil {
		ro.Beat, ro.Stale = l.Beats, l.Stale
	}
	err = s.rt.Recover(log, ro)
	if err != nil {
		end := log.Appended()
		_ = log.Close()
		return fmt.Errorf("cannot recover from store.dir = %q: %w", s.cfg.Dir, &unrecovered{err, end})
	}
	if err = s.serve(); err != nil {
		_ = log.Close()
		return fmt.Errorf("cannot recover from store.dir = %q: %w", s.cfg.Dir, err)
	}
	if s.options.lease.Partition() == 0 {
		s.openCheckpoints()
	}
	return nil
}

// serve makes every further failure end the process, and returns the failure that came before, if
// there was one.
func (s *storage) serve() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serves = true
	return s.failure
}

// fatal ends the process: what was not acknowledged must not be answered, and what the system holds
// in memory is not what is on the disk. During a start nothing is answered, and open returns the
// failure. A claim that fails because nothing is to be written any more is no failure.
func (s *storage) fatal(err error) {
	if errors.Is(err, errInterrupted) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.serves {
		if s.failure == nil {
			s.failure = err
		}
		return
	}
	if l := s.options.lease; l != nil {
		l.Lose(err)
		return
	}
	s.logger.Error("the store failed, stopping at once", "error", err)
	os.Exit(1)
}

// Close writes what waits and gives the directory free.
func (s *storage) Close() error {
	if s == nil || s.left.Load() {
		return nil
	}
	s.checkpoints.server.Close()
	if log := s.log.Load(); log != nil {
		return log.Close()
	}
	return nil
}

// full reports whether the disk has no room for changes.
func (s *storage) full() bool {
	w := s.store.Load()
	return w != nil && w.Full()
}

// index returns the last record that there is, 0 before the journal is open.
func (s *storage) index() journal.Index {
	if log := s.log.Load(); log != nil {
		return log.Appended()
	}
	return 0
}

// lastSnapshot returns the newest snapshot, nil if there is none. While one is being written it is
// the one before.
func (s *storage) lastSnapshot(log *journal.Log) *lastSnapshot {
	if index, at, ok, known := log.LastSnapshot(); known {
		if !ok {
			return nil
		}
		s.last.Store(&lastSnapshot{index, at})
	}
	return s.last.Load()
}

// survives describes what is there after a restart.
func survives(c *config.Store) string {
	switch c.Mode {
	case config.StoreAlways:
		return "what was answered survives, in " + c.Dir
	case config.StoreInterval:
		return "what was answered survives the death of the process, and a power loss but for two seconds of answers, in " + c.Dir
	}
	return "nothing survives a restart"
}

// viewStore returns what /store shows.
func (s *server) viewStore() ops.Store {
	now := time.Now()
	v := s.first().kernel.store.view(now)
	v.Cluster = s.options.cluster.Standing()
	if len(s.parts) == 1 {
		return v
	}
	for _, r := range s.replicas() {
		own := r.kernel.store.view(now)
		v.Partitions = append(v.Partitions, ops.StorePartition{Partition: r.partition, Recovery: own.Recovery, Journal: own.Journal, Disk: own.Disk, Warnings: own.Warnings})
	}
	return v
}

// view is what /store shows of it.
func (s *storage) view(now time.Time) ops.Store {
	if s == nil {
		return ops.Store{Mode: config.StoreMemory, Warnings: []string{}}
	}
	v := ops.Store{Mode: s.cfg.Mode, Dir: absolute(s.cfg.Dir), Recovery: s.recovery(), Warnings: []string{}}
	log, w := s.log.Load(), s.store.Load()
	if log == nil {
		return v
	}
	disk := s.disk(w)
	v.Journal = s.viewJournal(log, now)
	v.Disk = &ops.Disk{UsedBytes: disk.DiskBytes, FreeBytes: disk.FreeBytes, Full: disk.Full}
	for _, c := range []condition{{reasonFull, v.Disk.Full}, {"overloaded", v.Journal.Overloaded}, {"stopped", v.Journal.Error != ""}} {
		if c.holds {
			v.Warnings = append(v.Warnings, c.name)
		}
	}
	return v
}

// disk returns what is known of the disk, the rows included: those of a cluster are not in the
// directory of its store.
func (s *storage) disk(w *watched) embedded.Stats {
	st := w.Stats()
	if rows := s.rt.Rows(); rows != nil && s.options.lease != nil {
		st.DiskBytes += rows.Stats().DiskBytes
	}
	return st
}

type condition struct {
	name  string
	holds bool
}

func (s *storage) viewJournal(log *journal.Log, now time.Time) *ops.Journal {
	st := log.Stats()
	j := &ops.Journal{
		Epoch: log.Epoch(), Appended: log.Appended(), Durable: log.Durable(),
		QueueRecords: st.QueueRecords, QueueBytes: st.QueueBytes, Overloaded: log.Overloaded(),
		Groups: st.Groups, Records: st.Records, Bytes: st.Bytes,
		Snapshots: st.Snapshots, SnapshotBytes: st.SnapshotBytes,
	}
	if last := s.lastSnapshot(log); last != nil {
		j.LastSnapshot = &ops.Snapshot{Index: last.index, AgeSecs: max(now.Sub(last.at).Seconds(), 0)}
	}
	if err := log.Err(); err != nil {
		j.Error = err.Error()
	}
	return j
}

// exactly completes an error of a store that did not open with the file, where one can be named: a
// torn log shows only to who looks at all of it.
func (s *storage) exactly(err error) {
	var damage *journal.DamageError
	if !errors.As(err, &damage) || damage.Index == 0 {
		return
	}
	s.inspect(func(v *embedded.View, _ *journal.Inspector) error {
		if found := v.Damage(); found != nil {
			damage.Where = found.Where
		}
		return nil
	})
}

var errSeen = errors.New("seen")

// checkRecoverTo refuses an index in the middle of a block, before the store is opened: once it was
// opened with a loss accepted, what is behind the damage is gone.
func (s *storage) checkRecoverTo() error {
	to := s.recoverTo
	if to == 0 {
		return nil
	}
	var first, last journal.Index
	s.inspect(func(_ *embedded.View, in *journal.Inspector) error {
		return in.Blocks(to, func(b *journal.BlockView) error {
			first, last = b.First, b.Last
			return errSeen
		}, func(journal.Damage) error { return errSeen })
	})
	if first <= to && to < last {
		return fmt.Errorf("cannot recover to index %d: it is inside of a block; the ends of blocks around it are %d and %d", to, first-1, last)
	}
	return nil
}

// inspect shows f what is in the directory, if it can be read: the opening reports better what is
// wrong with it.
func (s *storage) inspect(f func(*embedded.View, *journal.Inspector) error) {
	v, err := embedded.Inspect(embedded.Config{Dir: s.cfg.Dir})
	if err == nil {
		_ = f(v, journal.NewInspector(v, 0, v.Mode()))
		_ = v.Close()
	}
}
