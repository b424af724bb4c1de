package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// changeVersion is the format version; another one is refused.
const changeVersion = 1

// maxChangeLen bounds the encoded length of a change: a create with four identifiers of maxIDLen
// fits.
const maxChangeLen = 8192

// ErrShortChange means that the input ends before the change; more bytes may complete it.
var ErrShortChange = errors.New("cannot parse change: input ends inside it")

// ErrBadChange means that the input is no change of a known version and kind.
var ErrBadChange = errors.New("cannot parse change")

// AppendChange appends the encoding of c (drawn in the package comment) and returns the extended
// dst. It allocates only to grow dst. Identifiers and reason must be within maxIDLen.
func AppendChange(dst []byte, c *Change) []byte {
	// A create can exceed a one-byte length, so two bytes are reserved, as a non-minimal uvarint.
	start := len(dst)
	dst = append(dst, 0, 0, changeVersion, byte(c.Kind))
	switch c.Kind {
	case ChangeCreate:
		dst = appendBytes(dst, c.PID)
		dst = appendBytes(dst, c.RequestID)
		dst = appendBytes(dst, c.UserID)
		dst = appendBytes(dst, c.SessionID)
		dst = append(dst, byte(c.State), byte(c.Priority))
		dst = binary.AppendUvarint(dst, c.Seq)
		dst = binary.AppendUvarint(dst, c.ReadySeq)
		dst = appendQuota(dst, &c.Quota)
	case ChangeTransition:
		dst = append(appendBytes(dst, c.PID), byte(c.State))
		dst = binary.AppendVarint(dst, c.At)
		dst = binary.AppendUvarint(dst, c.ReadySeq)
		dst = appendBytes(dst, c.Reason)
	case ChangeLease:
		dst = binary.AppendVarint(appendBytes(dst, c.PID), c.Expiry)
	case ChangeUsage:
		dst = appendUsage(appendBytes(dst, c.PID), &c.Usage)
	case ChangeQuotaDefaults:
		dst = appendQuota(dst, &c.Quota)
	case ChangeRateStamp:
		dst = binary.AppendVarint(appendBytes(dst, c.UserID), c.At)
	case ChangeRateDrop:
		dst = appendBytes(dst, c.UserID)
	default:
		dst = appendBytes(dst, c.PID)
	}
	n := len(dst) - start - 2
	dst[start], dst[start+1] = byte(n)|0x80, byte(n>>7)
	return dst
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendQuota(dst []byte, q *Quota) []byte {
	for _, v := range q {
		dst = binary.AppendUvarint(dst, uint64(uint32(v)))
	}
	return dst
}

func appendUsage(dst []byte, u *Usage) []byte {
	for _, v := range u {
		dst = binary.AppendUvarint(dst, uint64(v))
	}
	return dst
}

// ParseChange reads one change from the front of b; rest is what follows. The slices of c point
// into b. The error is ErrShortChange when b ends inside the change, and wraps ErrBadChange when it
// can never become one. A parsed change is well formed: enumerations within their tables,
// identifiers within maxIDLen, counters and limits not negative.
func ParseChange(b []byte) (c Change, rest []byte, err error) {
	kind, fields, rest, err := openChange(b)
	if err != nil {
		return c, b, err
	}
	c.Kind = kind
	d := changeReader{b: fields}
	d.fields(&c)
	if !d.ended() {
		return Change{}, b, badRecord(kind)
	}
	return c, rest, nil
}

// openChange takes the frame off the change at the front of b. It returns the fields as bytes,
// because a reader that was just filled is slow to copy.
func openChange(b []byte) (kind ChangeKind, fields, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	switch {
	case w == 0:
		return 0, nil, nil, ErrShortChange
	case w < 0 || n < 2 || n > maxChangeLen:
		return 0, nil, nil, fmt.Errorf("%w: length %d", ErrBadChange, n)
	case uint64(len(b)-w) < n:
		return 0, nil, nil, ErrShortChange
	}
	body := b[w : w+int(n)]
	if body[0] != changeVersion {
		return 0, nil, nil, fmt.Errorf("%w: version %d", ErrBadChange, body[0])
	}
	return ChangeKind(body[1]), body[2:], b[w+int(n):], nil
}

func badRecord(kind ChangeKind) error { return fmt.Errorf("%w: %s record", ErrBadChange, kind) }

// changeReader takes fields off b; bad stays set once one is missing or out of range.
type changeReader struct {
	b    []byte
	bad  bool
	last *lastQuota // of the records before; may be nil
}

// lastQuota is a quota and the bytes that it was read from, up to the end of a record. Most records
// in a row have the same one.
type lastQuota struct {
	text  []byte
	quota Quota
}

func (d *changeReader) fields(c *Change) {
	switch c.Kind {
	case ChangeCreate:
		c.PID, c.RequestID, c.UserID, c.SessionID = d.pid(), d.str(), d.str(), d.str()
		c.State, c.Priority = State(d.enum(uint8(Ready)+1)), Priority(d.enum(NumPriorities))
		c.Seq, c.ReadySeq, c.Quota = d.uint(math.MaxUint64-1), d.uint(math.MaxUint64), d.quota()
		d.bad = d.bad || c.Seq == 0
	case ChangeTransition:
		c.PID, c.State, c.At, c.ReadySeq, c.Reason = d.pid(), State(d.enum(NumStates)), d.int(), d.uint(math.MaxUint64), d.str()
	case ChangeLease:
		c.PID, c.Expiry = d.pid(), d.int()
	case ChangeLeaseEnd, ChangeRequeue, ChangeRemove:
		c.PID = d.pid()
	case ChangeUsage:
		c.PID, c.Usage = d.pid(), d.usage()
	case ChangeQuotaDefaults:
		c.Quota = d.quota()
	case ChangeRateStamp:
		c.UserID, c.At = d.str(), d.int()
	case ChangeRateDrop:
		c.UserID = d.str()
	default:
		d.bad = true
	}
}

// short reads a number of one or two bytes, as most are; n is 0 where there is none.
func short(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	if len(b) > 1 && b[1] < 0x80 {
		return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
	}
	return 0, 0
}

func (d *changeReader) uint(limit uint64) uint64 {
	v, w := short(d.b)
	if w == 0 {
		v, w = binary.Uvarint(d.b)
	}
	if w <= 0 || v > limit {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[w:]
	return v
}

func (d *changeReader) int() int64 {
	v, w := binary.Varint(d.b)
	if w <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[w:]
	return v
}

func (d *changeReader) str() []byte {
	n := d.uint(maxIDLen)
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return nil
	}
	s := d.b[:n:n]
	d.b = d.b[n:]
	return s
}

func (d *changeReader) skip() { d.str() }

func (d *changeReader) pid() []byte {
	s := d.str()
	d.bad = d.bad || len(s) == 0
	return s
}

func (d *changeReader) enum(n uint8) uint8 {
	if len(d.b) == 0 || d.b[0] >= n {
		d.bad, d.b = true, nil
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *changeReader) quota() (q Quota) {
	text := d.b
	if d.last != nil && len(text) > 0 && string(text) == string(d.last.text) {
		d.b = nil
		return d.last.quota
	}
	for i := range q {
		if v, w := short(d.b); w > 0 {
			q[i], d.b = int32(v), d.b[w:]
			continue
		}
		q[i] = int32(d.uint(math.MaxInt32))
	}
	if d.last != nil && d.ended() {
		d.last.text, d.last.quota = append(d.last.text[:0], text...), q
	}
	return q
}

func (d *changeReader) usage() (u Usage) {
	for i := range u {
		if v, w := short(d.b); w > 0 {
			u[i], d.b = int64(v), d.b[w:]
			continue
		}
		u[i] = int64(d.uint(math.MaxInt64))
	}
	return u
}

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
