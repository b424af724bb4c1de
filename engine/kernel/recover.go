package kernel

import (
	"fmt"
	"hash/maphash"

	"trunkline/engine/store"
)

// recovery is how far the kernel has come in taking back its state.
type recovery struct {
	window          uint64 // see Lenient
	routed          bool   // it is a lane's: sequences are checked before, and records of two shards come in any order
	loading, ended  bool   // the first, the last record of a snapshot was loaded
	processes, logs uint64 // records loaded
}

// Lenient begins the replay of the records that were written while the snapshot was: those up to
// index upTo. For Apply the subject of a change may then be missing, because the snapshot saw it
// gone, and sequences may come out of order. A change must still fit the process that it meets.
// finishLoad ends it. Until then only Apply and loadSnapshotRecord may be called.
func (k *Kernel) Lenient(upTo uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.recovery.window = upTo
	k.loosen()
}

// loadSnapshotRecord restores one record of a snapshot. All of them, in the order of WriteSnapshot,
// go into a new kernel, whose limits may differ. Then come Lenient, with the index of the last
// record before WriteSnapshot returned, Apply with every record behind the last index when
// WriteSnapshot was called, and finishLoad. After an error, which is errBadSnapshot, the kernel is
// of no use.
func (k *Kernel) loadSnapshotRecord(rec []byte) error {
	kind, fields, err := parseSnapshotRecord(rec)
	if err != nil {
		return err
	}
	d := changeReader{b: fields}
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind == snapshotBegin {
		return k.loadBegin(&d)
	}
	if !k.recovery.loading || k.recovery.ended {
		return fmt.Errorf("%w: record outside of it", errBadSnapshot)
	}
	switch kind {
	case snapshotProcess:
		k.recovery.processes++
		id := d
		return k.loadRow(&d, new(snapshotRow), maphash.Bytes(k.seed, id.str()))
	case snapshotLog:
		k.recovery.logs++
		id := d
		return k.rates.load(&d, maphash.Bytes(k.rates.seed, id.str()))
	case snapshotEnd:
		processes, logs := d.uint(k.recovery.processes), d.uint(k.recovery.logs)
		if !d.ended() || processes != k.recovery.processes || logs != k.recovery.logs {
			return fmt.Errorf("%w: it does not have the records that it tells", errBadSnapshot)
		}
		k.recovery.ended = true
		return nil
	}
	return fmt.Errorf("%w: record of kind %d", errBadSnapshot, kind)
}

func (k *Kernel) loadBegin(d *changeReader) error {
	g := d.globals()
	switch {
	case !d.ended():
		return fmt.Errorf("%w: first record", errBadSnapshot)
	case k.recovery.loading || k.created > 0 || k.rates.live.Load() > 0:
		return fmt.Errorf("%w: the kernel is not new", errBadSnapshot)
	}
	k.created, k.readied, k.now = g.created, g.readied, max(k.now, g.now)
	k.applyQuotaDefaults(&Change{Quota: g.defaults}, g.defaultsRecord)
	k.recovery.loading = true
	k.loosen()
	return nil
}

// loadRow stores a process whose pid has the hash h. One that is there already had gone and was
// made again while the snapshot was written, so that both were met. c is scratch. The caller has
// the shard for itself: an unlock would wait for all the memory that a row is written to.
func (k *Kernel) loadRow(d *changeReader, c *snapshotRow, h uint64) error {
	d.row(c)
	if !d.ended() {
		return fmt.Errorf("%w: process record", errBadSnapshot)
	}
	at, exists := k.locateBy(h, c.PID)
	switch {
	case exists && at.r.created >= c.Seq:
		return fmt.Errorf("%w: process %q is in it twice", errBadSnapshot, c.PID)
	case exists:
		k.sched.leave(at.r.node)
		k.applyRemove(&at)
	case at.sh.index.n >= k.cfg.maxRows():
		return fmt.Errorf("%w: no room for process %q", errBadSnapshot, c.PID)
	}
	r := k.addRow(&c.Change, &at)
	r.clock = c.clock
	r.usage.set(&c.Usage)
	at.sh.keepReason(r, c.Reason)
	r.record(c.index)
	k.sched.restore(r.node, c)
	k.created = max(k.created, c.Seq)
	if c.State == Ready {
		k.readied = max(k.readied, c.ReadySeq)
	}
	return nil
}

// finishLoad ends the recovery: it checks that a snapshot, if any was loaded, was whole, and builds
// the queue, the leases, the completed and the creation order. From then on Apply is strict and
// everything may be called. Without a snapshot and without Lenient it does nothing.
func (k *Kernel) finishLoad() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.recovery.loading && !k.recovery.ended {
		return fmt.Errorf("%w: it ends early", errBadSnapshot)
	}
	k.recovery = recovery{}
	if !k.sched.loose {
		return nil
	}
	return k.link()
}

// Latest returns the latest Mono reading that the kernel has seen. Who recovers it keeps Mono
// running from there. Stamps of requests that Apply was given after finishLoad are not among them.
func (k *Kernel) Latest() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now
}

// Tag is the first byte of the kernel's records in a store.
const Tag byte = 'k'

// Machine returns the kernel as a machine of a store. ended is called during a recovery, in the
// order of all records, for each process that a change moved to TERMINATED.
func (k *Kernel) Machine(ended func(pid []byte, index uint64)) store.Machine {
	return store.Machine{Tag: Tag, State: k, Parallel: parallel{k, ended}}
}

type parallel struct {
	kernel *Kernel
	ended  func(pid []byte, index uint64)
}

// Recover implements store.Parallel.
func (p parallel) Recover(lanes int) store.Recovery { return p.kernel.Recover(lanes) }

// Follow implements store.Parallel.
func (p parallel) Follow(pid []byte, index uint64) { p.ended(pid, index) }
