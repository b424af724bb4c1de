package rows

import (
	"encoding/binary"
	"fmt"
	"time"

	"trunkline/engine/journal"
)

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
