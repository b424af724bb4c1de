package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// Store is a journal in a directory. journal.Store has the rules of its calls; Full, Stats and
// Checkpoint may be called at any time.
type Store struct {
	cfg   Config
	log   *slog.Logger
	fs    *logFS
	lock  *pebble.Lock
	was   markState // what the marks held when they were read
	mark  *mark     // once owned
	db    *pebble.DB
	owned atomic.Bool          // db is open for writing, and not for reading only
	cut   *logDamage           // where the log ends in damage that was accepted, until then
	torn  tornTail             // of the opening for reading
	lost  map[uint64]error     // snapshots of which a file is missing or is not what it was, till then
	bad   []string             // the files of them that are there
	early earlyMetas           // till then
	seen  []pebble.SSTableInfo // the SSTables, till then
	space space
	usage pebbledir.Usage

	window  window     // mode Interval only
	syncing sync.Mutex // one at a time runs syncAndMark

	batch *pebble.Batch // of WriteBlock
	key   []byte        // of WriteBlock
	last  atomic.Uint64 // first of the last block that was acknowledged

	writing  *snapshotWriter // the snapshot that is not complete yet, nil for none
	undone   bool            // whether a range of chunks may be deleted in memory only, of dropped or a snapshot before it
	dropped  uint64
	incoming atomic.Uint64 // bytes of it that are written

	corrupt atomic.Pointer[string] // the file in which pebble found damage last
	closed  atomic.Bool
	using   sync.RWMutex // Close waits for Stats and Checkpoint
	stop    chan struct{}
	running sync.WaitGroup
}

const maxIndex = ^journal.Index(0)

var _ journal.Store = (*Store)(nil)

// Open opens the journal in cfg.Dir, or makes it. It refuses a directory that is in use
// (journal.ErrLocked), that was made in another mode (journal.ErrModeMismatch), and one that is
// damaged (journal.DamageError). Nothing changes before the first change of the journal: until then
// the directory is open for reading only, so a caller that replays it can refuse it too. The first
// change opens it for writing; meanwhile only Full, Stats and Close may run. Until that is done, an
// error of the system ends it: nothing is retried, and OnFatal is not called.
func Open(cfg Config) (*Store, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, log: cfg.Logger.With("dir", cfg.Dir), stop: make(chan struct{})}
	s.space.init(cfg.FreeBytes, s.log)
	s.fs = newLogFS(cfg.FS, cfg.Dir, cfg.Mode == journal.Interval || cfg.Bulk)
	s.fs.fatal, s.fs.pause, s.fs.slow.log = s.stopped, s.pauseFlush, s.log
	s.window.init(s.log)
	if err := s.open(); err != nil {
		if also := s.release(); also != nil {
			err = errors.Join(err, also)
		}
		return nil, err
	}
	s.running.Add(2)
	go s.keep()
	go s.watch()
	return s, nil
}

func (s *Store) open() (err error) {
	if err = pebbledir.Make(s.cfg.FS, s.cfg.Dir); err != nil {
		return fmt.Errorf("cannot open journal: %w", typed(err))
	}
	stamped, refused := checkStamp(s.cfg.FS, s.cfg.Dir, s.cfg.Mode)
	if refused != nil && !stamped { // it is not ours to make a lock in
		return refused
	}
	if s.lock, err = lockDir(s.cfg.FS, s.cfg.Dir); err != nil {
		return err
	}
	if refused == nil && !stamped {
		refused = makeStamp(s.cfg.FS, s.cfg.Dir, s.cfg.Mode)
	}
	if refused != nil {
		return refused
	}
	return s.look()
}

// openDB opens the database. Pebble can panic in its replay of a damaged log.
func (s *Store) openDB(o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, panicError(s.cfg.Dir, "opening", r)
		}
	}()
	db, err = pebble.Open(s.cfg.Dir, o)
	if err != nil {
		return nil, s.openError(err)
	}
	if failed := s.err(); failed != nil {
		return nil, errors.Join(s.openError(failed), s.closeDB(db))
	}
	if got := db.FormatMajorVersion(); got != o.FormatMajorVersion && !o.ReadOnly {
		return nil, errors.Join(fmt.Errorf("cannot open journal %s: format %d, want %d", s.cfg.Dir, got, o.FormatMajorVersion), db.Close())
	}
	return db, nil
}

// own opens the directory for writing, before the first change, or returns why nothing can be
// changed. Only the log is read again: pebble cannot write what it keeps in memory of a read-only
// directory.
func (s *Store) own() error {
	if err := s.err(); err != nil || s.owned.Load() {
		return err
	}
	s.using.Lock()
	defer s.using.Unlock()
	if err := s.err(); err != nil || s.owned.Load() {
		return err
	}
	if err := s.begin(); err != nil {
		s.fs.failure.CompareAndSwap(nil, &err) // nothing is read or written any more; the caller gets the error
		return err
	}
	s.owned.Store(true)
	return nil
}

// begin closes what was open for reading and takes the content as the journal: pebble has sorted
// it, so it is on the disk.
func (s *Store) begin() (err error) {
	var mends []pebble.KeyRange
	if s.db != nil {
		if mends, err = s.toMend(); err != nil {
			return err
		}
		err, s.db, s.seen = s.closeDB(s.db), nil, nil
		if err != nil {
			return err
		}
	}
	if s.cut != nil {
		if err = s.setAside(*s.cut); err != nil {
			return err
		}
	}
	if s.mark, err = openMark(s.cfg.FS, s.cfg.Dir, s.was); err != nil {
		return err
	}
	if len(mends) > 0 {
		if err = s.mend(mends); err != nil {
			return err
		}
	}
	if s.db, err = s.openDB(s.options()); err != nil {
		return err
	}
	last, _, err := s.lastBlock(s.db, maxIndex)
	if err != nil {
		return err
	}
	if read := s.last.Load(); last != read {
		return fmt.Errorf("cannot open journal %s: the last block is at %d, and was at %d", s.cfg.Dir, last, read)
	}
	if err = s.sweep(); err != nil {
		return err
	}
	s.batch = s.db.NewBatch()
	if err = s.mark.write(last, false); err != nil {
		return err
	}
	return s.fs.opened()
}

// readable returns why nothing can be read: the store is closed, or could not be opened for
// writing.
func (s *Store) readable() error {
	if s.closed.Load() {
		return journal.ErrClosed
	}
	if !s.owned.Load() {
		return s.fs.err()
	}
	return nil
}

// keep syncs the log (in mode Interval) and marks how far it is synced.
func (s *Store) keep() {
	defer s.running.Done()
	tick := time.NewTicker(s.cfg.SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.syncAndMark()
		case <-s.window.ask:
			s.syncAndMark()
		}
	}
}

func (s *Store) syncAndMark() {
	if !s.owned.Load() {
		return
	}
	s.syncing.Lock()
	defer s.syncing.Unlock()
	first := s.last.Load() // before the sync: it covers what was written before it
	s.window.begin()
	s.fs.sync()
	s.window.end()
	if s.err() != nil {
		return
	}
	if err := s.mark.set(first, false); err != nil {
		s.log.Warn("journal goes on with an older mark", "err", err)
	}
}

// watch looks at what the disk has not answered, and at the free space.
func (s *Store) watch() {
	defer s.running.Done()
	tick := time.NewTicker(spaceEvery)
	defer tick.Stop()
	for {
		s.fs.slow.look(time.Now())
		s.space.look(time.Now())
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
	}
}

// Full reports whether nothing new should be written, because the disk is full or its files cannot
// be written. It is one atomic load. What was appended before is still written while there is room.
func (s *Store) Full() bool { return s.space.full() }

// Broken reports whether Full has another cause than a full disk: the files of the database could
// not be written. The cause is in the log.
func (s *Store) Broken() bool { return s.space.broken() }

// stopped is called once with the end of the store. It may run under locks of pebble.
func (s *Store) stopped(err error) {
	s.log.Error("journal stops", "err", err)
	s.cfg.OnFatal(err)
}

// err returns why nothing can be written, if so.
func (s *Store) err() error {
	if err := s.fs.err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return journal.ErrClosed
	}
	return nil
}

// Close syncs what was written, in every mode, and releases the directory. After a final error it
// returns that error.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	close(s.stop)
	s.running.Wait()
	s.using.Lock()
	defer s.using.Unlock()
	err := s.release()
	return errors.Join(s.fs.err(), err)
}

// release undoes open, as far as it came.
func (s *Store) release() (err error) {
	if s.writing != nil {
		_ = s.writing.discard() // the next opening removes what is left
	}
	if s.batch != nil {
		err = s.batch.Close()
	}
	if s.db != nil {
		err = errors.Join(err, s.closeDB(s.db))
	}
	if s.mark != nil {
		if s.owned.Load() && err == nil && !s.fs.failed() {
			err = typed(errors.Join(s.mark.set(s.last.Load(), true), s.mark.sync()))
		}
		err = errors.Join(err, s.mark.close())
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// closeDB closes the database. After a failure pebble's books need not balance; that is no news.
func (s *Store) closeDB(db *pebble.DB) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot close journal %s: %v", s.cfg.Dir, r)
		}
		if s.fs.failed() {
			err = nil
		}
	}()
	return typed(db.Close())
}

// Stats is what an operator asks of a store. Sizes are in bytes.
type Stats struct {
	// DiskBytes is all that the directory takes, as pebbledir.Used has it.
	DiskBytes uint64
	// WALBytes is what of it is log, laid out ahead and kept for the next one included.
	WALBytes uint64
	// TableBytes and Tables are the SSTables.
	TableBytes uint64
	Tables     int64
	// IncomingBytes is what is written of a snapshot that is not complete yet.
	IncomingBytes uint64
	// memTableBytes is what waits in memory for its file.
	MemTableBytes uint64
	// FlushedBytes and CompactedBytes were written into SSTables since Open, by flushes and by
	// merging.
	FlushedBytes   uint64
	CompactedBytes uint64
	// IngestedBytes is what was written as SSTables since Open: the chunks of snapshots.
	IngestedBytes uint64
	// FreeBytes is the free space of the disk when it was last looked at. 0 where it is not known.
	FreeBytes uint64
	// LastBlock is the first index of the last acknowledged block.
	LastBlock uint64
	// Full is Store.Full.
	Full bool
	// Unsynced is in mode Interval the age of the oldest block that is not synced; 0 where all are.
	Unsynced time.Duration
	// HeldBlocks counts the blocks that were acknowledged late because Unsynced was above
	// maxUnsynced.
	HeldBlocks uint64
}

// Stats collects the numbers. It takes locks of the database and allocates: for a scrape, no
// request.
func (s *Store) Stats() Stats {
	st := Stats{FreeBytes: s.space.freeBytes.Load(), LastBlock: s.last.Load(), Full: s.Full()}
	st.Unsynced, st.HeldBlocks = s.window.stats()
	used := s.usage.Read(s.cfg.FS, s.cfg.Dir) // without the lock: the disk may be slow
	s.using.RLock()
	defer s.using.RUnlock()
	if s.readable() != nil {
		return st
	}
	m := s.db.Metrics()
	st.IncomingBytes = s.incoming.Load()
	st.DiskBytes, st.WALBytes = used.Bytes, used.LogBytes
	st.MemTableBytes = m.MemTable.Size
	for i := range m.Levels {
		l := &m.Levels[i]
		st.Tables += l.TablesCount
		st.TableBytes += uint64(l.TablesSize)
		st.FlushedBytes += l.TableBytesFlushed
		st.CompactedBytes += l.TableBytesCompacted
		st.IngestedBytes += l.TableBytesIngested
	}
	return st
}
