// Package runtime has the state of one process: process table, bus, pipelines, idempotency keys and
// agent threads, the store that records their changes, and the gate at which replies wait for the
// journal. Protocols take a Runtime; none of them makes a part of it.
//
//	New ─► OpenRows ─► Recover, if it is journaled ─► Start ─► Close ─► CloseRows
package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"trunkline/engine/bus"
	"trunkline/engine/cluster/placement"
	"trunkline/engine/connection"
	"trunkline/engine/idem"
	"trunkline/engine/journal"
	"trunkline/engine/kernel"
	"trunkline/engine/orchestration"
	"trunkline/engine/store"
	"trunkline/engine/store/rows"
	"trunkline/engine/threadstore"
)

// Runtime is the state machines of a process and what they stand on. Its methods are safe for
// concurrent use. The fields do not change.
type Runtime struct {
	Config        Config // in force
	Kernel        *kernel.Kernel
	Bus           *bus.Bus
	Orchestration *orchestration.Engine
	Threads       *threadstore.Engine
	Store         *store.Store
	// Outcomes are those of tool calls; nil where nothing is journaled. Requests are those of
	// requests with an idempotency_key.
	Outcomes, Requests *idem.Table
	// Gate is where the sessions of all protocols wait for the journal.
	Gate connection.Gate

	orchestrated atomic.Uint64           // index of the last record of orchestration
	rows         atomic.Pointer[rows.DB] // of agent threads; nil until open
	recovered    atomic.Bool
	stop         chan struct{}
	stopped      sync.WaitGroup
}

// New returns empty state machines. It panics if Partition is not one of Partitions.
func New(cfg Config) *Runtime {
	cfg = cfg.withDefaults()
	r := &Runtime{Config: cfg, stop: make(chan struct{})}
	r.Gate.Journal = func() connection.Journal {
		if log := r.Store.Log(); log != nil {
			return log
		}
		return nil
	}
	r.Bus = bus.New(r.busConfig())
	overloaded := func() bool { return r.Store.Refuses() == store.Overloaded }
	oc, kc, requests := cfg.OrchestrationConfig, cfg.KernelConfig, idem.Config{TTL: cfg.IdempotencyWindow,
		MaxEntries: cfg.MaxIdempotencyKeys, MaxBytes: cfg.MaxIdempotencyBytes, NoEviction: true, Now: r.mono}
	if cfg.Journaled {
		kc.Journal, oc.Journal = r.kernelChange, r.orchestrationChange
		requests.Journal = r.keyChange(idem.RequestTag)
		r.Outcomes = idem.New(idem.Config{TTL: cfg.IdempotencyTTL, Now: r.mono, Journal: r.keyChange(idem.Tag)})
	}
	r.Requests = idem.New(requests)
	oc.Overloaded, oc.Owns = overloaded, cfg.owns(placement.Process)
	oc.MaxReply = max(cfg.MaxFrameBytes-orchestration.ReplyReserve, 1)
	r.Orchestration = orchestration.New(oc)
	kc.Events, kc.Overloaded = lifecycle{r.Bus}, overloaded
	kc.Partition, kc.Partitions = uint64(cfg.Partition), uint64(cfg.Partitions)
	kc.Ended, kc.Removed = r.Orchestration.Cancel, r.Orchestration.ProcessRemoved
	r.Kernel = kernel.New(kc)
	r.Threads = threadstore.New(cfg.Threads)
	machines := []store.Machine{
		r.Kernel.Machine(r.Orchestration.CancelBefore),
		r.Orchestration.Machine(func() connection.Instant { return r.Now(connection.Now()) }),
		r.Threads.Machine(),
	}
	if cfg.Journaled {
		machines = append(machines, r.Outcomes.Machine(idem.Tag), r.Requests.Machine(idem.RequestTag))
	}
	r.Store = store.New(store.Config{Machines: machines, SnapshotBytes: cfg.SnapshotBytes,
		SnapshotInterval: cfg.SnapshotInterval, Now: r.mono, Logger: cfg.Logger})
	r.Threads.Join(r.Store)
	return r
}

func (r *Runtime) kernelChange(c *kernel.Change) journal.Index {
	return r.Store.Append(kernel.Tag, func(dst []byte) []byte { return kernel.AppendChange(dst, c) })
}

func (r *Runtime) orchestrationChange(c *orchestration.Change) journal.Index {
	index := r.Store.Append(orchestration.Tag, func(dst []byte) []byte { return orchestration.AppendChange(dst, c) })
	for last := r.orchestrated.Load(); last < index && !r.orchestrated.CompareAndSwap(last, index); {
		last = r.orchestrated.Load()
	}
	return index
}

// keyChange returns the journal of an idempotency table.
func (r *Runtime) keyChange(tag byte) func(*idem.Change) journal.Index {
	return func(c *idem.Change) journal.Index {
		return r.Store.Append(tag, func(dst []byte) []byte { return idem.AppendChange(dst, c) })
	}
}

// Orchestrated returns the index of the last record of the pipelines.
func (r *Runtime) Orchestrated() journal.Index { return r.orchestrated.Load() }

// Durable lets the replies leave that wait for an index up to upTo: it is the journal's OnDurable.
func (r *Runtime) Durable(upTo journal.Index) {
	r.Gate.Mark.Reach(upTo)
	r.Threads.Durable()
}

// Now returns the owner's reading of the clocks, or the test's. The monotonic one goes on where the
// journal ended.
func (r *Runtime) Now(owner connection.Instant) connection.Instant {
	if r.Config.Now != nil {
		return r.Config.Now()
	}
	owner.Mono += r.Store.Base()
	return owner
}

func (r *Runtime) mono() int64 { return r.Now(connection.Now()).Mono }

// Start begins the periodic garbage collection (kernel-ipc §5.3), the snapshots of a journal and
// the storing of rows.
func (r *Runtime) Start() {
	r.Store.Start()
	r.Threads.Start()
	r.stopped.Go(func() {
		tick := time.NewTicker(r.Config.CleanupInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.Sweep()
			case <-r.stop:
				return
			}
		}
	})
}

// Sweep runs one garbage collection.
func (r *Runtime) Sweep() {
	if r.Store.Refuses() == store.Overloaded {
		return // what is dropped is written too; the next sweep finds it
	}
	defer r.Store.Leave(r.Store.Enter())
	now := r.Now(connection.Now())
	zombied, removed, logs := r.Kernel.Sweep(now)
	sessions, envelopes := r.Orchestration.Sweep(now)
	r.Config.Logger.Debug("swept the tables", "zombied", zombied, "removed", removed, "rate_logs", logs,
		"sessions", sessions, "envelopes", envelopes, "idempotency_keys", r.Requests.Sweep())
}

// Close stops the periodic work and cancels pending queries. Owners close their sessions before or
// after.
func (r *Runtime) Close() {
	r.Threads.Close()
	close(r.stop)
	r.stopped.Wait()
	r.Store.Close()
	r.Bus.Close()
}
