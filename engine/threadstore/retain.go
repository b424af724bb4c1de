package threadstore

import (
	"bytes"
	"errors"

	"trunkline/engine/journal"
)

// How messages are cut that are older than Config.Retention. Times are in milliseconds.
const (
	// retainEvery is the least time between two looks at a thread. One step looks at retainThreads,
	// and cuts retainMessages of one.
	retainEvery    = 3600_000
	retainThreads  = 512
	retainMessages = 64 << 10
	// Where the clock gets ahead by clockJump between two steps, nothing is cut for clockHold: it
	// can be set right before messages are lost.
	clockJump = 3600_000
	clockHold = 24 * 3600_000
)

// retention is the walk over all threads. It belongs to keepStoring.
type retention struct {
	next  uint64 // number of the last thread that was looked at
	began int64  // of the walk; 0: there was none
	last  int64  // reading of the clock
	held  int64  // until when nothing is cut
}

// trusts reports whether the clock counts.
func (r *retention) trusts(now int64) bool {
	if r.last != 0 && now-r.last > clockJump {
		r.held = now + clockHold
	} else if r.last-now > clockJump {
		r.held = 0
	}
	r.last = now
	return now >= r.held
}

// retain cuts old messages of the threads that are next in the walk.
func (e *Engine) retain(now int64) error {
	r, before := &e.retention, now-e.cfg.Retention
	waits := r.next == 0 && r.began != 0 && apart(now, r.began) < retainEvery
	if e.cfg.Retention == 0 || !r.trusts(now) || waits || e.refuses() {
		return nil
	}
	if r.next == 0 {
		r.began = now
	}
	list := e.numbers.after(r.next, retainThreads)
	for _, t := range list {
		if t.made.At < before {
			if more, err := e.cutOlder(t, before); more || err != nil {
				return err // the next step goes on with t
			}
		}
		r.next = t.made.Number
	}
	if len(list) < retainThreads {
		r.next = 0
	}
	return nil
}

// cutOlder cuts the stored messages of a thread that were created before a time, and reports
// whether there are more.
func (e *Engine) cutOlder(t *thread, before int64) (more bool, err error) {
	e.storing.Lock()
	defer e.storing.Unlock()
	n := 0
	rows, first, err := e.rowsWithout(t.made.Number, func(_ uint64, m *message) bool {
		n++
		more = m.created < before && n > retainMessages
		return m.created < before && !more
	})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	t.mu.Lock()
	t.index = e.record(opCut, &threadCut{t.made.Number, first})
	t.gone = first - 1
	t.forgetUpTo(t.gone)
	t.mu.Unlock()
	e.archive.cut.Store(true)
	return more, e.disk.Put(rows...)
}

// rowsWithout returns the changes of rows that remove the first messages of a thread for which goes
// is true, and the number of the one after them. Caller holds storing.
func (e *Engine) rowsWithout(number uint64, goes func(seq uint64, m *message) bool) (rows [][]byte, first uint64, err error) {
	var bad error
	err = e.disk.Scan(appendMessageKey(nil, number, 0), appendMessageKey(nil, number+1, 0), false, func(key, value []byte) bool {
		var last, n uint64
		var run []byte
		if last, run, n, bad = parseRun(key, value, &e.storer.work); bad != nil {
			return false
		}
		for first = last - n + 1; first <= last; first++ {
			var m message
			row, rest, _ := nextInRun(run)
			if m, bad = parseRow(row); bad != nil || !goes(first, &m) {
				break
			}
			run = rest
		}
		if first > last {
			rows = append(rows, bytes.Clone(key), nil)
		} else if first > last-n+1 {
			rows = append(rows, bytes.Clone(key), appendRun(nil, run, new([]byte)))
		}
		return first > last
	})
	return rows, first, errors.Join(err, bad)
}

// cutRows removes the stored messages of a thread before first. Caller holds storing.
func (e *Engine) cutRows(number, first uint64) error {
	rows, _, err := e.rowsWithout(number, func(seq uint64, _ *message) bool { return seq < first })
	if err != nil || len(rows) == 0 {
		return err
	}
	return e.disk.Put(rows...)
}

// cut puts back a cut. Rows before it may be there again, where the journal was replayed.
func (r *replay) cut(m *threadCut, index journal.Index) error {
	t, err := r.find(m.Number)
	if err == nil && (m.First == 0 || m.First > t.latest+1) {
		err = errBadRecord
	}
	if err == nil {
		err = r.store(index)
	}
	if err != nil {
		return err
	}
	r.e.storing.Lock()
	defer r.e.storing.Unlock()
	t.mu.Lock()
	t.index, t.gone = max(t.index, index), max(t.gone, m.First-1)
	t.forget(func(*ref) bool { return true }) // all of them are stored
	t.mu.Unlock()
	return r.e.cutRows(m.Number, m.First)
}
