package kernel

// ChangeKind is what a Change does.
type ChangeKind uint8

// The kinds of change.
const (
	// ChangeCreate stores process PID with its identifiers, Priority and Quota as Seq in creation
	// order. State is NEW, or READY with ReadySeq.
	ChangeCreate ChangeKind = iota + 1
	// ChangeTransition moves PID to State at At; ReadySeq if that is READY, Reason if BLOCKED.
	ChangeTransition
	// ChangeLease hands out PID, READY and queued, until Expiry.
	ChangeLease
	// ChangeLeaseEnd brings PID back to its old place in the queue because its lease ended.
	ChangeLeaseEnd
	// ChangeRequeue brings PID back to its old place in the queue because it was scheduled again.
	ChangeRequeue
	// ChangeRemove removes PID, which is terminal.
	ChangeRemove
	// ChangeUsage sets the usage of PID to Usage, the new totals.
	ChangeUsage
	// ChangeQuotaDefaults sets the default quota to Quota.
	ChangeQuotaDefaults
	// ChangeRateStamp records an accepted request of UserID at At.
	ChangeRateStamp
	// ChangeRateDrop forgets the log of UserID.
	ChangeRateDrop
)

var changeNames = [...]string{ChangeCreate: "create", ChangeTransition: "transition", ChangeLease: "lease",
	ChangeLeaseEnd: "lease_end", ChangeRequeue: "requeue", ChangeRemove: "remove", ChangeUsage: "usage",
	ChangeQuotaDefaults: "quota_defaults", ChangeRateStamp: "rate_stamp", ChangeRateDrop: "rate_drop"}

// String names the kind as in the drawing of the package comment.
func (c ChangeKind) String() string {
	if c >= 1 && int(c) < len(changeNames) {
		return changeNames[c]
	}
	return "unknown"
}

// Change is one resolved effect on the kernel's state; its kind decides which fields count. Byte
// slices are lent: a journal copies or encodes a Change before it returns.
type Change struct {
	Kind                              ChangeKind
	State                             State
	Priority                          Priority
	PID, RequestID, UserID, SessionID []byte
	Reason                            []byte
	Seq, ReadySeq                     uint64
	// At and Expiry are Mono readings in nanoseconds; the largest int64 is a lease without end.
	At, Expiry int64
	Usage      Usage
	Quota      Quota
}

// journalScheduled gives c to the journal and returns the index of its record. Caller holds the
// scheduling lock. The copy keeps c itself on the stack; it is cleared to release the caller's
// buffer.
func (k *Kernel) journalScheduled(c *Change) (index uint64) {
	if k.cfg.Journal != nil {
		k.change = *c
		index = k.cfg.Journal(&k.change)
		k.change = Change{}
	}
	return index
}

// journalQueue gives the journal a change of the place in the queue of the process at at, with a
// lease until expiry if it is one. Caller holds the scheduling lock, which also covers the apply.
// The shard is locked so that a row remembers the indexes of its records in their order.
func (k *Kernel) journalQueue(kind ChangeKind, at place, expiry int64) {
	if k.cfg.Journal == nil {
		return
	}
	at.sh.mu.Lock()
	defer at.sh.mu.Unlock()
	c := Change{Kind: kind, PID: at.sh.pid(at.r), Expiry: expiry}
	at.r.record(k.journalScheduled(&c))
}

// indexChunk indexes are allocated together: 512 bytes are a size class of the Go allocator.
const indexChunk = 64

// indexes holds by slot the index of the last record about a rate log. It is beside the logs: a
// kernel without a journal has no chunks. Otherwise it costs 8 bytes a slot. The shard's mutex
// guards it.
type indexes struct{ chunks []*[indexChunk]uint64 }

// set remembers index; 0 is no index.
func (x *indexes) set(slot uint32, index uint64) {
	if index == 0 {
		return
	}
	for int(slot/indexChunk) >= len(x.chunks) {
		x.chunks = append(x.chunks, new([indexChunk]uint64))
	}
	x.chunks[slot/indexChunk][slot%indexChunk] = index
}

// at returns the index remembered for slot, 0 if there is none.
func (x *indexes) at(slot uint32) uint64 {
	if int(slot/indexChunk) >= len(x.chunks) {
		return 0
	}
	return x.chunks[slot/indexChunk][slot%indexChunk]
}

// clear forgets slot, which becomes free.
func (x *indexes) clear(slot uint32) {
	if int(slot/indexChunk) < len(x.chunks) {
		x.chunks[slot/indexChunk][slot%indexChunk] = 0
	}
}
