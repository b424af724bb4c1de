package threadstore

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/store"
)

// What has the text of an erasure as it was is replaced: the archive, the files of rows, and the
// journal, with two snapshots. JetStream removes a file of a stream when nothing of it is used: so
// the whole archive is written again, and streams are filled up to the next file.

const (
	// purgeEvery is the time between two attempts to purge what is pending.
	purgeEvery = time.Minute
	// purgeSettle is how long the servers of a cluster have, in milliseconds, until their files
	// lack what was purged from streams. They compact their logs every two minutes, and followers
	// look every minute for copies of snapshots to drop.
	purgeSettle = 5 * 60_000
	// streamPadBytes are more than a file of a stream has. A record of padBytes has followers apply
	// all before it, which waits otherwise for as many bytes to follow.
	streamPadBytes = 9 << 20
	padBytes       = store.MaxLaneRecord + 1
	// rebuildEvery is the least time between two archives without what was cut, in milliseconds.
	rebuildEvery = 7 * 24 * 3600_000
	// archivedRows is about how many bytes of rows are one record of the archive.
	archivedRows = 64 << 10
)

// keepErasing is the goroutine of Start that purges what is erased.
func (e *Engine) keepErasing() {
	timer := time.NewTimer(0) // an earlier process may have begun
	defer timer.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-e.erasures.wake:
		case <-timer.C:
		}
		err := e.purge(e.cfg.Now())
		e.erasures.mu.Lock()
		e.erasures.failed = err
		e.erasures.mu.Unlock()
		timer.Reset(purgeEvery)
	}
}

// purge completes the erasures that are pending.
func (e *Engine) purge(now int64) (err error) {
	pending, log := e.erasures.states(true), e.store.Log()
	if len(pending) > 0 || e.archive.cut.Load() && apart(now, e.archive.rebuilt) >= rebuildEvery {
		err = e.rebuildArchive(now)
	}
	if err == nil {
		e.erasures.merging.Lock()
		err = e.mergeRows()
		e.erasures.merging.Unlock()
	}
	if err == nil && len(pending) > 0 { // a snapshot begins behind the block that may have text
		err = e.pad(max(1, e.cfg.padBytes/padBytes))
	}
	for i := 0; i < 2 && err == nil && len(pending) > 0 && log != nil; i++ { // as many as the journal keeps
		err = e.store.Snapshot()
	}
	if err == nil && len(pending) > 0 && log != nil {
		e.archive.mu.Lock()
		e.sweepArchive()
		e.archive.mu.Unlock()
		err = log.Scrub()
	}
	if err != nil || len(pending) == 0 {
		return err
	}
	e.hot.seal() // the events below are in another segment
	for _, er := range pending {
		er.Purged = now
		e.recordErasure(&er)
	}
	if err := e.pad(1); err != nil {
		return err
	}
	e.storing.Lock()
	defer e.storing.Unlock()
	defer e.dropHot(0)
	return e.storeLocked(e.safe())
}

// pad appends padding, a single record where there are no followers.
func (e *Engine) pad(records int) (err error) {
	for i := 0; err == nil && (i == 0 || i < records && e.archive.to != nil); i++ {
		e.record(opRows, &rowBatch{[][]byte{make([]byte, padBytes)}})
		err = e.store.Barrier(e.ctx)
	}
	return err
}

// merger rewrites SSTables (rows.DB.Compact).
type merger interface {
	Compact(ctx context.Context, lower, upper []byte) error
}

// mergeRows has the files of rows rewritten that may have erased text. Caller holds merging.
func (e *Engine) mergeRows() error {
	last, err := e.mergedRows()
	done := last
	for _, er := range e.erasures.states(false) {
		db, ok := e.disk.(merger)
		for ranges := er.ranges(); ok && err == nil && er.Number > last && len(ranges) > 0; ranges = ranges[2:] {
			err = db.Compact(e.ctx, ranges[0], ranges[1])
		}
		done = max(done, er.Number)
	}
	if err != nil || done == last {
		return err
	}
	e.storing.Lock()
	defer e.storing.Unlock()
	return e.disk.Put([]byte{rowPurged}, binary.BigEndian.AppendUint64(nil, done))
}

// mergedRows returns the last erasure whose text no file of rows has.
func (e *Engine) mergedRows() (number uint64, err error) {
	value, ok, err := e.disk.Get(nil, []byte{rowPurged})
	if err != nil || !ok || len(value) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

// rebuildArchive puts another archive in place of what there is: that of the rows as they are. A
// node whose rows are of the one before it starts without them.
func (e *Engine) rebuildArchive(now int64) error {
	a := &e.archive
	if a.to == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := e.store.Barrier(e.ctx); err != nil {
		return err
	}
	a.cut.Store(false)
	state := archiveState{Lineage: newLineage(), UpTo: e.safe()}
	if err := e.storeUpTo(state.UpTo); err != nil {
		return err
	}
	unused := rand.Text() // the next sweep drops it
	for n := range uint32(e.cfg.padBytes / journal.MaxChunkBytes) {
		if err := a.to.Put(unused, n, make([]byte, journal.MaxChunkBytes)); err != nil {
			return err
		}
	}
	set, size, index := archivedSet{Name: rand.Text()}, 0, journal.Index(0)
	w := blockWriter{put: func(n uint32, chunk []byte) error {
		size += len(chunk)
		return a.to.Put(set.Name, n, chunk)
	}}
	for next := []byte{0}; next != nil; {
		var rec rowBatch
		var err error
		if rec.Rows, next, err = e.someRows(next, nil, archivedRows); err == nil && len(rec.Rows) > 0 {
			index++
			b, _ := rec.MarshalMsg([]byte{opRows}) // it does not fail
			err = w.add(index, b)
		}
		if full := size >= e.cfg.setBytes || next == nil; err == nil && full {
			if err = w.flush(); w.next > 0 {
				set.Chunks, set.UpTo = w.next, index
				state.Sets = append(state.Sets, set)
				set, size, w.next = archivedSet{Name: rand.Text()}, 0, 0
			}
		}
		if err = cmp.Or(err, e.ctx.Err()); err != nil {
			return err
		}
	}
	n := len(state.Sets)
	if n > maxArchiveSets || index > state.UpTo {
		return errArchiveFull
	}
	if n > 0 {
		state.Sets[n-1].UpTo = state.UpTo
	}
	e.record(opRebuild, &state)
	a.has, a.open.name, a.rebuilt, a.sweepFrom = state, "", now, e.store.Log().Stats().Snapshots+2
	return nil
}

// someRows returns rows of from up to before upper, about as many bytes as most, keys and values in
// turn, and where the next ones are. Those of the index of keys and marks are left out.
func (e *Engine) someRows(from, upper []byte, most int) (rows [][]byte, next []byte, err error) {
	size := 0
	err = e.disk.Scan(from, upper, false, func(key, value []byte) bool {
		if size >= most {
			next = bytes.Clone(key)
			return false
		}
		if k := key[0]; k == rowAudit || k == rowJob || k == rowJobKey || k == rowMessage {
			rows = append(rows, bytes.Clone(key), bytes.Clone(value))
		}
		size += len(key) + len(value)
		return true
	})
	return rows, next, err
}

// sweepArchive drops the sets that are not used, once this owner has written two snapshots since
// they were: the journal keeps two.
func (e *Engine) sweepArchive() {
	if a := &e.archive; a.to != nil && e.store.Log().Stats().Snapshots >= a.sweepFrom {
		a.to.Sweep(a.has.uses)
	}
}
