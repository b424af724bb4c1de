package runtime

import (
	"context"
	"fmt"

	"trunkline/engine/connection"
	"trunkline/engine/journal"
	"trunkline/engine/orchestration"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
)

// OpenRows opens the rows of agent threads in dir; "" has them in memory. onFatal is called when
// they cannot be written any more; nil: it is not. It comes before the first record and the first
// request.
func (r *Runtime) OpenRows(dir string, onFatal func(error)) error {
	if onFatal == nil {
		onFatal = func(error) {}
	}
	db, err := rows.Open(
		rows.Config{Dir: dir, Memory: dir == "", Barrier: r.barrier, OnFatal: onFatal, Logger: r.Config.Logger},
	)
	if err != nil {
		return fmt.Errorf("cannot open the rows of agent threads: %w", err)
	}
	r.rows.Store(db)
	return r.Threads.SetRows(threadstore.StoredRows(db))
}

// Recover brings the state machines to where log ends, which gets every further change. Rows that
// are not open are opened in memory, for tests. After an error the runtime serves nothing.
func (r *Runtime) Recover(log *journal.Log, o store.RecoverOptions) error {
	if r.Rows() == nil {
		if err := r.OpenRows("", nil); err != nil {
			return err
		}
	}
	db, full, broken := r.Rows(), o.Full, o.Broken
	o.Full = func() bool { return full != nil && full() || db.Full() }
	o.Broken = func() bool { return broken != nil && broken() || db.Broken() }
	if err := r.Store.Recover(log, o); err != nil {
		return err
	}
	r.recovered.Store(true)
	return nil
}

// barrier is that of the store. While the journal is read, all that is in it is safe.
func (r *Runtime) barrier(ctx context.Context) error {
	if !r.recovered.Load() {
		return nil
	}
	return r.Store.Barrier(ctx)
}

// Rows returns the rows of agent threads; nil before they are open.
func (r *Runtime) Rows() *rows.DB { return r.rows.Load() }

// CloseRows releases the rows. It comes when nothing changes any more and the journal is closed.
func (r *Runtime) CloseRows() error {
	if db := r.rows.Load(); db != nil {
		return db.Close()
	}
	return nil
}

// Digests condense the state of the machines, so that it can be compared: with that after a
// restart, or with a copy.
type Digests struct {
	// Kernel is kernel.ShardDigests, Orchestration that of the other engine.
	Kernel, Orchestration []uint64
	// Index is how far the journal had been appended to when the walk began, Through when it had
	// ended; 0 without a journal. If they are the same, nothing changed in between.
	Index, Through journal.Index
}

// Digests walks over everything while requests go on. stop, which may be nil, ends it early, with
// empty lists.
func (r *Runtime) Digests(stop func() bool) (d Digests) {
	d.Index = r.Store.Appended()
	d.Kernel = r.Kernel.ShardDigests(stop)
	if d.Kernel != nil {
		defer r.Store.Leave(r.Store.Enter()) // a session whose process has ended ends when it is looked at
		call := orchestration.Call{Now: r.Now(connection.Now())}
		d.Orchestration = r.Orchestration.ShardDigests(&call, stop)
	}
	d.Through = r.Store.Appended()
	return d
}
