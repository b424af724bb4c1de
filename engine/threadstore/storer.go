package threadstore

import (
	"encoding/binary"
	"runtime"
	"slices"
	"time"

	"trunkline/engine/journal"
	"trunkline/engine/store/rows"
)

// Rows keeps what is not in memory: see StoredRows.
type Rows interface {
	// Get appends the value of key to dst.
	Get(dst, key []byte) (value []byte, ok bool, err error)
	// Scan calls f with the rows from lower to before upper, until f returns false. Slices are
	// lent.
	Scan(lower, upper []byte, reverse bool, f func(key, value []byte) bool) error
	// Put writes rows, which readers see at once: keys and values take turns. A nil value removes
	// the row. Slices are lent. One goroutine at a time calls it.
	Put(rows ...[]byte) error
	// Flush returns when everything that was put before is on stable storage, with a mark. identity
	// is a number of these rows.
	Flush(mark uint64) (identity []byte, err error)
	// Fits returns an error unless the rows hold everything up to the Flush of a mark, which
	// returned identity.
	Fits(identity []byte, mark uint64) error
}

// How rows are stored.
const (
	// storeEvery is how long a durable row may wait until it is stored: messages of a thread that
	// wait together become one row.
	storeEvery = 50 * time.Millisecond
	// expireEvery is the time between two steps of the walk over what ends some day.
	expireEvery = time.Second
	// storeBytes is about how many bytes of rows are put at a time.
	storeBytes = 2 << 20
	// mergeStep is how many entries of the index of keys are merged at a time: more than come
	// meanwhile.
	mergeStep = 64 << 10
	// maxUnstored is how many bytes of rows may wait: beyond it no change is accepted.
	maxUnstored = 64 << 20
)

// storer writes rows. Only one goroutine uses it.
type storer struct {
	e     *Engine
	spans []span
	posts []stored // in the order of threads, then of their numbers
	of    []*thread
	ends  []int // of the posts of each
	rows  [][]byte
	buf   []byte // of keys and runs
	one   []byte // a run
	work  []byte // what a run is compressed in
}

// stored is a message that is being stored.
type stored struct {
	seq uint64
	row []byte
}

// keepStoring is the goroutine of Start.
func (e *Engine) keepStoring() {
	tick, old := time.NewTicker(storeEvery), time.NewTicker(expireEvery)
	defer tick.Stop()
	defer old.Stop()
	for {
		var err error
		select {
		case <-e.stop:
			return
		case <-tick.C:
			err = e.storeUpTo(e.safe())
		case <-old.C:
			e.jobs.mu.Lock()
			e.forgetEnded()
			e.jobs.mu.Unlock()
			now := e.cfg.Now()
			if err = e.expire(now); err == nil {
				err = e.retain(now)
			}
		}
		if err != nil {
			e.cfg.Failed(err)
			return
		}
	}
}

// storeUpTo stores all rows whose records have an index up to durable, and drops what is too much
// to keep.
func (e *Engine) storeUpTo(durable journal.Index) error {
	e.storing.Lock()
	defer e.storing.Unlock()
	return e.storeLocked(durable)
}

// storeLocked is storeUpTo where the caller holds storing.
func (e *Engine) storeLocked(durable journal.Index) error {
	last, err := e.storer.putAll(&e.hot, durable)
	if last > 0 {
		e.stored.Store(last)
	}
	if err != nil {
		return err
	}
	e.dropHot(e.cfg.HotBytes)
	return e.keepKeys()
}

// dropHot drops stored rows from memory down to a limit. Caller holds storing.
func (e *Engine) dropHot(limit int) {
	for s := e.hot.drop(limit); s != nil; s = e.hot.drop(limit) {
		for i := range s.entries {
			if t := s.entries[i].thread; t != nil {
				t.mu.Lock()
				t.forget(func(r *ref) bool { return r.seg == s })
				t.mu.Unlock()
			}
		}
	}
}

// keepKeys does what is due to the index of keys. Caller holds storing.
func (e *Engine) keepKeys() error {
	if e.keys.Full() {
		if err := e.keys.Seal(); err != nil {
			return err
		}
	}
	_, err := e.keys.Step(mergeStep)
	return err
}

// storeAll is storeUpTo, and leaves no key in memory.
func (e *Engine) storeAll(durable journal.Index) error {
	if err := e.storeUpTo(durable); err != nil {
		return err
	}
	e.storing.Lock()
	defer e.storing.Unlock()
	return e.keys.Seal()
}

// putAll stores what h has up to an index, and returns the index of the last row of that, 0 for
// none.
func (w *storer) putAll(h *hot, durable journal.Index) (last journal.Index, err error) {
	for w.spans = h.take(w.spans[:0], durable); len(w.spans) > 0; w.spans = h.take(w.spans[:0], durable) {
		if err := w.put(); err != nil {
			return last, err
		}
		last = h.took(w.spans)
	}
	return last, nil
}

// put stores the rows of the spans.
func (w *storer) put() error {
	w.rows, w.buf, w.posts = w.rows[:0], w.buf[:0], w.posts[:0]
	w.group()
	i := 0
	for k, t := range w.of {
		for i < w.ends[k] {
			n, bytes := 1, len(w.posts[i].row)
			for ; i+n < w.ends[k] && n < runMessages; n++ {
				if bytes += len(w.posts[i+n].row); bytes > runBytes {
					break
				}
			}
			if err := w.run(t, w.posts[i:i+n]); err != nil {
				return err
			}
			runtime.Gosched() // a core may have to write the journal
			i += n
		}
	}
	err := w.e.disk.Put(w.rows...)
	clear(w.rows)
	clear(w.posts)
	clear(w.of)
	return err
}

// group takes the rows of the spans: those of the messages of a thread come together. In the spans
// they are in their order.
func (w *storer) group() {
	w.of, w.ends = w.of[:0], w.ends[:0]
	n := 0
	for _, sp := range w.spans {
		for i := range sp.entries {
			en := &sp.entries[i]
			if en.thread == nil {
				data := sp.seg.buf[en.off:en.end]
				w.rows = append(w.rows, data[:en.key], data[en.key:])
				continue
			}
			if en.thread.batch == 0 {
				w.of = append(w.of, en.thread)
			}
			en.thread.batch++
			n++
		}
	}
	at := 0
	for _, t := range w.of {
		at, t.batch = at+t.batch, at
	}
	w.posts = slices.Grow(w.posts, n)[:n]
	for _, sp := range w.spans {
		for i := range sp.entries {
			if en := &sp.entries[i]; en.thread != nil {
				w.posts[en.thread.batch] = stored{en.seq, sp.seg.buf[en.off:en.end]}
				en.thread.batch++
			}
		}
	}
	for _, t := range w.of {
		w.ends = append(w.ends, t.batch)
		t.batch = 0
	}
}

// run adds the row of messages of one thread.
func (w *storer) run(t *thread, posts []stored) error {
	if !t.cut {
		if err := w.cut(t.made.Number, posts[0].seq); err != nil {
			return err
		}
		t.cut = true
	}
	start := len(w.buf)
	w.buf = appendMessageKey(w.buf, t.made.Number, posts[len(posts)-1].seq)
	value := len(w.buf)
	w.one = w.one[:0]
	for i := range posts {
		w.one = append(binary.BigEndian.AppendUint32(w.one, uint32(len(posts[i].row))), posts[i].row...)
	}
	w.buf = appendRun(w.buf, w.one, &w.work)
	w.rows = append(w.rows, w.buf[start:value:value], w.buf[value:len(w.buf):len(w.buf)])
	return nil
}

// StoredRows returns the rows of a database.
func StoredRows(db *rows.DB) Rows { return &storedRows{DB: db, batch: db.NewBatch()} }

type storedRows struct {
	*rows.DB
	batch *rows.Batch
}

// Put implements Rows.
func (r *storedRows) Put(pairs ...[]byte) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == nil {
			r.batch.Delete(pairs[i])
		} else {
			r.batch.Set(pairs[i], pairs[i+1])
		}
	}
	return r.batch.Commit()
}

// Flush implements Rows.
func (r *storedRows) Flush(mark uint64) (identity []byte, err error) {
	id := r.Identity()
	return id[:], r.DB.Flush(mark)
}

// Fits implements Rows. Rows behind the end of the journal are no damage: a message beyond the last
// one of its thread is not read, and is written again.
func (r *storedRows) Fits(identity []byte, mark uint64) error {
	var id [16]byte
	copy(id[:], identity)
	return r.Check(id, mark, ^uint64(0))
}

// Retention of rows.
const (
	// expireStep is how many rows one step looks at.
	expireStep = 2000
	// keepJobs is how long a final job is kept, in milliseconds (threads §6).
	keepJobs = 30 * 24 * 3600_000
)

// expirer walks over the rows that end some day, a step at a time, and begins again at the end.
type expirer struct{ next []byte }

// expire removes idempotency keys and the rows of jobs whose time is over, among the next ones of
// the walk.
func (e *Engine) expire(now int64) error {
	e.storing.Lock()
	defer e.storing.Unlock()
	var gone [][]byte
	if e.cfg.KeyWindow > 0 {
		if err := e.keys.Expire(now - e.cfg.KeyWindow); err != nil {
			return err
		}
	}
	for _, kind := range []byte{rowJob, rowJobKey} {
		w := e.expirers[kind]
		from, n := w.next, 0
		if from == nil {
			from = []byte{kind}
		}
		w.next = nil
		err := e.disk.Scan(from, []byte{kind + 1}, false, func(key, value []byte) bool {
			if n++; n > expireStep {
				w.next = append([]byte(nil), key...)
				return false
			}
			if e.over(kind, value, now) {
				gone = append(gone, append([]byte(nil), key...), nil)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return e.disk.Put(gone...)
}

// over reports whether the time of a row is over. A key of a job ends with the job.
func (e *Engine) over(kind byte, value []byte, now int64) bool {
	switch kind {
	case rowJob:
		var s jobState
		return unmarshal(&s, value) == nil && s.Final && s.UpdatedAt+keepJobs <= now
	}
	return len(value) == jobKeyBytes+8 && int64(binary.BigEndian.Uint64(value[jobKeyBytes:]))+keepJobs <= now
}
