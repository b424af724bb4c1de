package rows

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/internal/pebbledir"
	"trunkline/engine/journal"
)

// DB is rows in a directory. Its methods may be called from any goroutine, where they do not name
// an exception.
type DB struct {
	cfg  Config
	log  *slog.Logger
	fs   *files
	lock *pebble.Lock
	id   [16]byte
	made bool // the directory has its stamp

	gate    sync.RWMutex // held for reading by each use of db; by own and Close for writing
	db      *pebble.DB   // nil: there are no rows yet
	owned   atomic.Bool  // db is open for writing
	opening atomic.Bool  // errors end the opening and are not final
	closed  atomic.Bool
	ctx     context.Context // ends with Close, or a final error
	cancel  context.CancelFunc

	failure  atomic.Pointer[error] // final
	room     room
	usage    pebbledir.Usage
	stall    stall
	flushing sync.Mutex // held by Flush
	mark     pebble.Batch
	through  atomic.Uint64
}

// Open opens the rows in a directory for reading. It refuses a directory that is in use
// (errLocked), that was made by another version, and one that is damaged (*journal.DamageError). It
// makes a missing directory and LOCK and changes nothing else, so that a caller can refuse it too.
func Open(cfg Config) (*DB, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	d := &DB{cfg: cfg, log: cfg.Logger.With("dir", cfg.Dir)}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.room.log = d.log
	d.fs = newFiles(cfg.FS, cfg.Dir)
	d.fs.before, d.fs.failed = d.beforeTable, d.fail
	if err := d.open(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *DB) open() (err error) {
	if _, _, err = readStamp(d.cfg.FS, d.cfg.Dir); err != nil {
		return err
	}
	if err = pebbledir.Make(d.cfg.FS, d.cfg.Dir); err != nil {
		return fmt.Errorf("cannot open rows: %w", typed(err))
	}
	if d.lock, err = lockDir(d.cfg.FS, d.cfg.Dir); err != nil {
		return err
	}
	if d.id, d.made, err = readStamp(d.cfg.FS, d.cfg.Dir); err != nil { // again: another opener may have been faster
		return err
	}
	if d.made {
		return d.look()
	}
	if d.id = d.cfg.Identity; d.id == [16]byte{} {
		d.id = newIdentity()
	}
	return nil
}

// look opens the database for reading and checks what it holds.
func (d *DB) look() error {
	o := d.options()
	o.ReadOnly = true
	db, err := d.openDB(o)
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return d.absent(err)
	}
	if err != nil {
		return err
	}
	d.db = db
	if err := d.checkTables(); err != nil { // before pebble reads one: it panics on some that were exchanged
		return err
	}
	return d.readMark()
}

// absent looks whether a stamped directory without a database is a new one.
func (d *DB) absent(err error) error {
	names, failed := d.cfg.FS.List(d.cfg.Dir)
	if failed != nil {
		return fmt.Errorf("cannot read rows %s: %w", d.cfg.Dir, failed)
	}
	holds := func(name string) bool { return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".log") }
	if slices.ContainsFunc(names, holds) {
		return &journal.DamageError{Where: d.cfg.FS.PathJoin(d.cfg.Dir, "MANIFEST"), Err: err}
	}
	return nil
}

// openDB opens the database. Pebble can panic on a damaged manifest.
func (d *DB) openDB(o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			db, err = nil, d.panicError("opening", r)
		}
	}()
	if db, err = pebble.Open(d.cfg.Dir, o); errors.Is(err, pebble.ErrDBDoesNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, d.openError(err)
	}
	return db, nil
}

// own opens the directory for writing, before the first change, or returns why nothing can be
// changed.
func (d *DB) own() error {
	if d.owned.Load() {
		return nil
	}
	d.gate.Lock()
	defer d.gate.Unlock()
	if err := d.err(); err != nil || d.owned.Load() {
		return err
	}
	d.opening.Store(true)
	defer d.opening.Store(false)
	err := d.begin()
	if failed := d.err(); failed != nil {
		err = failed // the reason; err is what followed
	}
	if err != nil && !d.made && errors.Is(err, errFull) {
		return err // nothing is there yet: rows are made once there is room
	}
	if err != nil {
		d.failure.Store(&err)
		if d.fs.end(); d.db != nil {
			_, d.db = d.closeDB(), nil
		}
		return err
	}
	d.owned.Store(true)
	return nil
}

func (d *DB) begin() (err error) {
	if d.db != nil {
		err, d.db = d.closeDB(), nil
		if err != nil {
			return err
		}
	}
	d.fs.thawed.Store(true)
	if !d.made {
		if err = pebbledir.Replace(d.cfg.FS, d.cfg.Dir, stampName, stampText(d.id)); err != nil {
			return fmt.Errorf("cannot make rows %s: %w", d.cfg.Dir, typed(err))
		}
		d.made = true
	}
	d.db, err = d.openDB(d.options())
	return err
}

// err returns why nothing can be changed, if so.
func (d *DB) err() error {
	if p := d.failure.Load(); p != nil {
		return *p
	}
	if d.closed.Load() {
		return errClosed
	}
	return nil
}

// readable returns why nothing can be read: the rows are closed, or could not be opened for
// writing. Caller holds gate.
func (d *DB) readable() error {
	if d.closed.Load() {
		return errClosed
	}
	if d.db == nil {
		return d.err()
	}
	return nil
}

// fail takes an error after which nothing is known of the disk. It may run under locks of pebble.
func (d *DB) fail(err error) {
	err = fmt.Errorf("cannot write rows %s: %w", d.cfg.Dir, typed(err))
	first := !d.closed.Load() && d.failure.CompareAndSwap(nil, &err)
	d.fs.end()
	if d.cancel(); first && !d.opening.Load() {
		d.log.Error("rows stop", "err", err)
		d.cfg.OnFatal(err)
	}
}

// Identity returns the number that these rows got when they were made. Before the first Commit or
// Flush of a new directory the next opening may have another.
func (d *DB) Identity() [16]byte { return d.id }

// Through returns the mark of the last Flush that is known to be on the disk: the one that Open
// found, 0 for none, or a later one.
func (d *DB) Through() uint64 { return d.through.Load() }

// Check compares the rows with what a snapshot of the journal has: the identity, the mark of the
// Flush before it, and last, the last index of the journal. It returns a *journal.DamageError where
// the rows are others, or hold less than the snapshot needs, or belong to a longer journal. The
// zero identity, of no snapshot, fits all.
func (d *DB) Check(identity [16]byte, mark, last uint64) error {
	var err error
	switch have := d.Through(); {
	case identity != d.id && identity != [16]byte{}:
		err = fmt.Errorf("the snapshot belongs to the rows %x, and these are %x: they are of another journal, or made again", identity, d.id)
	case have < mark:
		err = fmt.Errorf("they are on the disk up to %d, and the snapshot needs them up to %d: they are older than the journal", have, mark)
	case have > last:
		err = fmt.Errorf("they are on the disk up to %d, and the journal ends at %d: it is older than the rows", have, last)
	default:
		return nil
	}
	return &journal.DamageError{Where: d.cfg.Dir, Err: err}
}

// Close releases the directory, and ends what waits. It leaves on the disk what a crash would
// leave: it does not flush. After a final error it returns that error.
func (d *DB) Close() (err error) {
	if d.closed.Swap(true) {
		return nil
	}
	d.fs.end()
	d.cancel()
	d.gate.Lock()
	defer d.gate.Unlock()
	if p := d.failure.Load(); p != nil {
		err = *p
	}
	if d.db != nil {
		err = errors.Join(err, d.closeDB())
	}
	if d.lock != nil {
		err = errors.Join(err, d.lock.Close())
	}
	return err
}

// closeDB closes the database. After a failure pebble's books need not balance; that is no news.
func (d *DB) closeDB() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot close rows %s: %v", d.cfg.Dir, r)
		}
		if d.failure.Load() != nil {
			err = nil
		}
	}()
	return typed(d.db.Close())
}

// Get appends the value of a key to dst. ok is false where there is no such row. For a key that is
// not there it reads no block, as a rule.
func (d *DB) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if len(key) == 0 || key[0] == reserved {
		return dst, false, nil
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	return d.get(dst, key)
}

func (d *DB) get(dst, key []byte) (value []byte, ok bool, err error) {
	defer d.sober(new(bool), &err)
	if err := d.readable(); err != nil || d.db == nil {
		return dst, false, err
	}
	// DB.Get does not use the filters of the last level, which has most rows.
	it, err := d.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return dst, false, d.readError("read", err)
	}
	if it.SeekPrefixGE(key) {
		var v []byte
		v, err = it.ValueAndErr()
		ok = err == nil
		dst = append(dst, v...)
	}
	if also := it.Close(); err == nil {
		err = also
	}
	if err != nil {
		return dst, false, d.readError("read", err)
	}
	return dst, ok, nil
}

// Scan calls f with the rows from lower on and below upper, in the order of their keys or the
// reverse, as they were at the call, until f returns false. nil for lower or upper is no bound. key
// and value are lent until f returns. f must not use the DB. A scan keeps the files and the memory
// of its moment, so it should be short.
func (d *DB) Scan(lower, upper []byte, reverse bool, f func(key, value []byte) bool) (err error) {
	calls := false
	d.gate.RLock()
	defer d.gate.RUnlock()
	defer d.sober(&calls, &err)
	if err := d.readable(); err != nil || d.db == nil {
		return err
	}
	if len(lower) == 0 || lower[0] == reserved {
		lower = firstKey
	}
	it, err := d.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return d.readError("read", err)
	}
	defer it.Close()
	begin, next := it.First, it.Next
	if reverse {
		begin, next = it.Last, it.Prev
	}
	for ok := begin(); ok; ok = next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return d.readError("read", err)
		}
		calls = true
		more := f(it.Key(), value)
		calls = false
		if !more {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return d.readError("read", err)
	}
	return nil
}

// firstKey is below all keys of the caller.
var firstKey = []byte{reserved + 1}
