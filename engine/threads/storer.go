package threads

import (
	"encoding/binary"
	"time"

	"trunkline/engine/journal"
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
	// storeEvery is how long a durable row may wait until it is stored.
	storeEvery = 20 * time.Millisecond
	// expireEvery is the time between two steps of the walk over what ends some day.
	expireEvery = time.Second
	// storeBatch is how many rows are put at a time.
	storeBatch = 128
	// maxUnstored is how many bytes of rows may wait: beyond it no change is accepted.
	maxUnstored = 64 << 20
)

// storer writes rows. Only one goroutine uses it.
type storer struct {
	e    *Engine
	rows [][]byte
	keys []byte
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
			err = e.expire(e.cfg.Now())
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
	for {
		s, entries := e.hot.take(durable)
		if len(entries) == 0 {
			break
		}
		if err := e.storer.put(s, entries); err != nil {
			return err
		}
		e.hot.took(entries)
		e.stored.Store(entries[len(entries)-1].index)
	}
	for s := e.hot.drop(e.cfg.HotBytes); s != nil; s = e.hot.drop(e.cfg.HotBytes) {
		for i := range s.entries {
			if t := s.entries[i].thread; t != nil {
				t.forget(s)
			}
		}
	}
	return nil
}

// put stores entries of s.
func (w *storer) put(s *segment, entries []entry) error {
	for len(entries) > 0 {
		n := min(len(entries), storeBatch)
		w.rows, w.keys = w.rows[:0], w.keys[:0]
		for i := range entries[:n] {
			if err := w.add(s, &entries[i]); err != nil {
				return err
			}
		}
		if err := w.e.cfg.Rows.Put(w.rows...); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

func (w *storer) add(s *segment, en *entry) error {
	data := s.buf[en.off:en.end]
	if en.thread == nil {
		w.rows = append(w.rows, data[:en.key], data[en.key:])
		return nil
	}
	m, err := parseRow(data)
	if err != nil {
		return err
	}
	number := en.thread.made.Number
	w.rows = append(w.rows, w.key(func(b []byte) []byte { return appendMessageKey(b, number, en.seq) }), data)
	if len(m.key) > 0 {
		hash := hashKey(string(m.sender), m.key)
		w.rows = append(w.rows, w.key(func(b []byte) []byte { return appendKeyKey(b, number, &hash) }),
			w.key(func(b []byte) []byte {
				return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, en.seq), uint64(m.created))
			}))
	}
	return nil
}

// key returns a key that is valid until the batch is put.
func (w *storer) key(fill func([]byte) []byte) []byte {
	start := len(w.keys)
	w.keys = fill(w.keys)
	return w.keys[start:len(w.keys):len(w.keys)]
}
