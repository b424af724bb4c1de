package rows

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"trunkline/engine/journal"
)

// reserved is the first byte of keys of our own.
const reserved = 0

// Batch is changes that are put together: a crash keeps all of them or none. It has one user at a
// time. In steady state it does not allocate for batches of up to 1 MiB.
type Batch struct {
	d   *DB
	b   pebble.Batch
	err error
}

// NewBatch returns an empty batch.
func (d *DB) NewBatch() *Batch { return &Batch{d: d} }

// Set puts a row over one with the same key. It copies both. A key has 1 to maxKeyBytes bytes and
// does not begin with 0, a value has up to maxValueBytes: otherwise Commit returns errRow.
func (b *Batch) Set(key, value []byte) {
	if b.fits(key, value) {
		_ = b.b.Set(key, value, nil) // without an index it never fails
	}
}

// Delete takes a row away. It is no error if there is none.
func (b *Batch) Delete(key []byte) {
	if b.fits(key, nil) {
		_ = b.b.Delete(key, nil)
	}
}

func (b *Batch) fits(key, value []byte) bool {
	if len(key) > 0 && len(key) <= maxKeyBytes && key[0] != reserved && len(value) <= maxValueBytes {
		return true
	}
	b.err = fmt.Errorf("%w: a key of %d bytes, %.16q, and a value of %d", errRow, len(key), key, len(value))
	return false
}

// Err returns why Commit will put nothing, nil where it will.
func (b *Batch) Err() error { return b.err }

// Commit puts the changes, in their order; readers see them from then on. They are not on the disk.
// The batch is empty afterwards, whatever Commit returns. While files are written or merged more
// slowly than rows come, it waits.
func (b *Batch) Commit() error {
	err := b.err
	if err == nil && b.b.Count() > 0 {
		err = b.d.put(&b.b)
	}
	b.b.Reset()
	b.err = nil
	return err
}

func (d *DB) put(b *pebble.Batch) error {
	if err := d.own(); err != nil {
		return err
	}
	d.gate.RLock()
	defer d.gate.RUnlock()
	if err := d.err(); err != nil {
		return err
	}
	if err := d.db.Apply(b, pebble.NoSync); err != nil {
		return fmt.Errorf("cannot write rows %s: %w", d.cfg.Dir, err)
	}
	return d.err()
}

// markKey is the row of the mark.
var markKey = []byte{reserved}

// markLen is that of its value: identity:16 through:8.
const markLen = 24

// Flush returns when everything that was committed before the call is on the disk, and the mark
// with it. An error that is not final leaves the mark that was, or the new one with all before it;
// Flush can be tried again.
func (d *DB) Flush(through uint64) error {
	d.flushing.Lock()
	defer d.flushing.Unlock()
	value := binary.BigEndian.AppendUint64(append(make([]byte, 0, markLen), d.id[:]...), through)
	d.mark.Reset()
	if err := d.mark.Set(markKey, value, nil); err != nil {
		return err
	}
	if err := d.put(&d.mark); err != nil {
		return err
	}
	if err := d.flush(); err != nil {
		return err
	}
	d.through.Store(through)
	return nil
}

// flushEvery is how often a Flush looks whether it fails.
const flushEvery = 20 * time.Millisecond

func (d *DB) flush() error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	if err := d.err(); err != nil {
		return err
	}
	done, err := d.db.AsyncFlush()
	if err != nil {
		return fmt.Errorf("cannot flush rows %s: %w", d.cfg.Dir, err)
	}
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return d.err() // after the end a flush succeeds, in memory
		case <-d.ctx.Done():
			return d.err()
		case <-tick.C:
		}
		if err := d.err(); err != nil {
			return err
		}
		if d.room.is(flushFailing) {
			return fmt.Errorf("cannot flush rows %s: %w", d.cfg.Dir, d.room.err())
		}
	}
}

// readMark reads the mark of a database that is being opened.
func (d *DB) readMark() error {
	value, ok, err := d.get(make([]byte, 0, markLen), markKey)
	if err != nil || !ok {
		return err
	}
	if len(value) != markLen || [16]byte(value) != d.id {
		return &journal.DamageError{Where: d.cfg.FS.PathJoin(d.cfg.Dir, stampName),
			Err: fmt.Errorf("it has the identity %x, and the files %x", d.id, value[:min(len(value), 16)])}
	}
	d.through.Store(binary.BigEndian.Uint64(value[16:]))
	return nil
}

// Stats is what an operator asks of rows. Sizes are in bytes.
type Stats struct {
	// DiskBytes is all that the directory takes, as pebbledir.Used has it. Files are its SSTables.
	DiskBytes uint64
	Files     int64
	// CacheBytes is what of blocks is in memory. MemTableBytes is what of rows waits for its file,
	// or is still being read. OpenFileBytes is what the open files need.
	CacheBytes    uint64
	MemTableBytes uint64
	OpenFileBytes uint64
	// MemoryBytes is the sum of the three.
	MemoryBytes uint64
	// FlushedBytes and MergedBytes were written into SSTables since Open.
	FlushedBytes uint64
	MergedBytes  uint64
	// Full is DB.Full.
	Full bool
}

// Stats collects the numbers. It takes locks of the database and allocates: for a scrape, no
// request.
func (d *DB) Stats() Stats {
	st := Stats{Full: d.Full()}
	used := d.usage.Read(d.cfg.FS, d.cfg.Dir) // without the lock: the disk may be slow
	d.gate.RLock()
	defer d.gate.RUnlock()
	if d.readable() != nil {
		return st
	}
	if st.DiskBytes = used.Bytes; d.db == nil {
		return st
	}
	m := d.db.Metrics()
	st.CacheBytes = uint64(m.BlockCache.Size)
	st.MemTableBytes = m.MemTable.Size + m.MemTable.ZombieSize
	st.OpenFileBytes = uint64(m.FileCache.Size)
	st.MemoryBytes = st.CacheBytes + st.MemTableBytes + st.OpenFileBytes
	for i := range m.Levels {
		l := &m.Levels[i]
		st.Files += l.TablesCount
		st.FlushedBytes += l.TableBytesFlushed
		st.MergedBytes += l.TableBytesCompacted
	}
	return st
}
