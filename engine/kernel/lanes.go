package kernel

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"sync/atomic"

	"trunkline/engine/store"
)

// Recovery restores a kernel along several lanes at once. One goroutine, the owner's, routes the
// records in order; one goroutine at a time works off each lane, in the order of its records. The
// result is that of loadSnapshotRecord, Lenient, Apply and finishLoad in one goroutine: a process
// and a user belong to one lane each, and what concerns all of them Route decides in order, or it
// has no order. Until Finish, which ends it, the kernel may only be counted.
type Recovery struct {
	k     *Kernel
	lanes []*Lane
	// settled means that sequences must rise; then created and readied are the last ones.
	settled          bool
	created, readied uint64
}

// Lane takes the records of its processes and users. Its methods allocate only what is stored.
type Lane struct {
	owner *Kernel
	// part has the shards of the owner, and a scheduler and counters of its own.
	part   *Kernel
	change Change
	row    snapshotRow
	quota  lastQuota
	latest int64
}

// ofUser is set in the hash of a user, and clear in that of a process; neither a shard nor a tag
// has it.
const ofUser = 1 << 31

// Recover begins a recovery along so many lanes, at least one. The kernel should be new.
func (k *Kernel) Recover(lanes int) *Recovery {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loosen()
	if k.huge != nil {
		k.huge.loading = new(stocks)
	}
	k.sched.nodes.use()
	numbers := new(atomic.Uint32)
	numbers.Store(uint32(len(k.sched.nodes.chunks)))
	r := &Recovery{k: k, lanes: make([]*Lane, min(max(lanes, 1), minShards))}
	for i := range r.lanes {
		r.lanes[i] = &Lane{owner: k, part: k.part(numbers)}
	}
	return r
}

// part returns a kernel with the same shards. Nodes of both get different numbers.
func (k *Kernel) part(numbers *atomic.Uint32) *Kernel {
	p := &Kernel{cfg: k.cfg, seed: k.seed, shardBits: k.shardBits, shards: k.shards}
	p.sched.init()
	p.sched.loose, p.recovery.routed = true, true
	p.sched.nodes.huge = k.huge
	p.sched.nodes.chunks, p.sched.nodes.numbers = slices.Clone(k.sched.nodes.chunks), numbers
	return p
}

// Lanes implements store.Recovery.
func (r *Recovery) Lanes() []store.Lane {
	all := make([]store.Lane, len(r.lanes))
	for i, l := range r.lanes {
		all[i] = l
	}
	return all
}

func (r *Recovery) toProcess(pid []byte) store.Route {
	h := maphash.Bytes(r.k.seed, pid)
	return store.Route{Lane: int(h&uint64(len(r.k.shards)-1)) % len(r.lanes), Hash: h &^ ofUser}
}

func (r *Recovery) toUser(user []byte) store.Route {
	h := maphash.Bytes(r.k.rates.seed, user)
	return store.Route{Lane: int(h%rateShards) % len(r.lanes), Hash: h | ofUser}
}

// Route implements store.Recovery.
func (r *Recovery) Route(rec []byte, index uint64) (store.Route, error) {
	if index == 0 {
		return r.routeSnapshot(rec)
	}
	return r.routeChange(rec, index)
}

// routeSnapshot takes one record of a snapshot, as loadSnapshotRecord does, or returns the lane
// that takes it.
func (r *Recovery) routeSnapshot(rec []byte) (store.Route, error) {
	kind, fields, err := parseSnapshotRecord(rec)
	k := r.k
	if err != nil || kind != snapshotProcess && kind != snapshotLog || !k.recovery.loading || k.recovery.ended {
		return store.Route{Lane: store.NoLane}, k.loadSnapshotRecord(rec)
	}
	d := changeReader{b: fields}
	id := d.str()
	if kind == snapshotLog {
		k.recovery.logs++
		return r.toUser(id), nil
	}
	k.recovery.processes++
	return r.toProcess(id), nil
}

// load takes a record of a snapshot.
func (l *Lane) load(rec []byte, hash uint64) error {
	kind, fields, err := parseSnapshotRecord(rec)
	d := changeReader{b: fields, last: &l.quota}
	switch {
	case err != nil:
		return err
	case kind == snapshotLog:
		return l.owner.rates.load(&d, hash)
	}
	return l.part.loadRow(&d, &l.row, hash)
}

// Lenient is that of the kernel. No lane may be at work.
func (r *Recovery) Lenient(upTo uint64) {
	for _, l := range r.lanes {
		l.part.recovery.window = upTo
	}
}

// Settle has sequences come in order from the next record on: it is behind the index given to
// Lenient, or the first of all. No lane may be at work.
func (r *Recovery) Settle() {
	r.settled, r.created, r.readied = true, r.k.created, r.k.readied
	for _, l := range r.lanes {
		r.created, r.readied = max(r.created, l.part.created), max(r.readied, l.part.readied)
	}
}

// routeChange returns the lane that takes rec, one encoded change whose record has the given index.
// It applies a change that is about no process and no user.
func (r *Recovery) routeChange(rec []byte, index uint64) (store.Route, error) {
	kind, fields, rest, err := openChange(rec)
	d := changeReader{b: fields}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes behind it", ErrBadChange, len(rest))
	}
	if err != nil {
		return store.Route{Lane: store.NoLane}, err
	}
	switch kind {
	case ChangeQuotaDefaults:
		return store.Route{Lane: store.NoLane}, r.applyDefaults(rec, index)
	case ChangeRateStamp, ChangeRateDrop:
		user := d.str()
		if d.bad {
			return store.Route{Lane: store.NoLane}, badRecord(kind)
		}
		return r.toUser(user), nil
	}
	pid := d.pid()
	to := r.toProcess(pid)
	if kind == ChangeCreate || kind == ChangeTransition {
		ends := false
		if ends, err = r.glance(kind, &d); ends {
			to.Follow = pid
		}
	}
	if d.bad {
		err = badRecord(kind)
	}
	return to, err
}

// applyDefaults applies a change of the default quota at once. Lanes that see it early only make
// room for their users' logs by it.
func (r *Recovery) applyDefaults(rec []byte, index uint64) error {
	c, _, err := ParseChange(rec)
	if err == nil {
		_, err = r.k.Apply(&c, index)
	}
	return err
}

// glance reads, behind the pid, what concerns more than the process of a change: the sequences.
func (r *Recovery) glance(kind ChangeKind, d *changeReader) (ends bool, err error) {
	c := Change{Kind: kind}
	if kind == ChangeTransition {
		c.State, _, c.ReadySeq = State(d.enum(NumStates)), d.int(), d.uint(math.MaxUint64)
	} else {
		d.skip()
		d.skip()
		d.skip()
		c.State, _ = State(d.enum(uint8(Ready)+1)), d.enum(NumPriorities)
		c.Seq, c.ReadySeq = d.uint(maxCreated), d.uint(math.MaxUint64)
	}
	if r.settled && !d.bad {
		err = r.inOrder(&c)
	}
	return kind == ChangeTransition && c.State == Terminated, err
}

// inOrder checks that the sequences in c rise, and takes note of them.
func (r *Recovery) inOrder(c *Change) error {
	if c.Kind == ChangeCreate {
		if c.Seq <= r.created {
			return fmt.Errorf("%w: %s: %s", errNotApplicable, c.Kind, createdOutOfOrder)
		}
		r.created = c.Seq
	}
	if c.State == Ready {
		if c.ReadySeq <= r.readied {
			return fmt.Errorf("%w: %s: %s", errNotApplicable, c.Kind, readiedOutOfOrder)
		}
		r.readied = c.ReadySeq
	}
	return nil
}

// Take implements store.Lane. No other lane has the shards of its processes and users, so it needs
// no mutex.
func (l *Lane) Take(rec []byte, index, hash uint64) (applied bool, err error) {
	if index == 0 {
		return true, l.load(rec, hash)
	}
	return l.apply(rec, index, hash)
}

// apply is Apply of the kernel, for a change as it is encoded.
func (l *Lane) apply(rec []byte, index, hash uint64) (applied bool, err error) {
	kind, fields, _, err := openChange(rec)
	if err != nil {
		return false, err
	}
	d := changeReader{b: fields, last: &l.quota}
	c := &l.change
	*c = Change{Kind: kind}
	if d.fields(c); !d.ended() {
		return false, badRecord(kind)
	}
	l.latest = max(l.latest, c.At)
	lenient := index > 0 && index <= l.part.recovery.window
	if kind == ChangeRateStamp || kind == ChangeRateDrop {
		s, tag := l.owner.rates.homeBy(hash)
		_, applied, err = l.owner.rates.replay(c, s, tag, index, lenient)
		return applied, err
	}
	at, exists := l.part.locateBy(hash, c.PID)
	return l.part.replayAt(c, &at, exists, index, lenient)
}

// Warm prefetches the rows of up to store.MaxWarm processes and users of the lane, so that their
// records do not each wait for memory. The outcome is ignored.
func (l *Lane) Warm(hashes []uint64) (sum uint32) {
	var found [store.MaxWarm]entry
	var text [store.MaxWarm]uint32
	hashes = hashes[:min(len(hashes), store.MaxWarm)]
	for i, h := range hashes {
		x := &l.part.shards[h&uint64(len(l.part.shards)-1)].index
		if h&ofUser != 0 {
			x = &l.owner.rates.shards[h%rateShards].index
		}
		if len(x.entries) > 0 {
			found[i] = x.entries[uint32(h>>32)&uint32(len(x.entries)-1)]
		}
	}
	for i, h := range hashes {
		switch e := found[i]; {
		case e.slot == 0:
		case h&ofUser != 0:
			text[i] = l.owner.rates.shards[h%rateShards].log(e.slot - 1).user
		default:
			s := &l.part.shards[h&uint64(len(l.part.shards)-1)]
			sum += s.row(e.slot-1).node + s.texts.glance(e.text)
		}
	}
	for i, h := range hashes {
		if h&ofUser != 0 && found[i].slot != 0 {
			sum += l.owner.rates.shards[h%rateShards].users.glance(text[i])
		}
	}
	return sum
}

// Finish ends the recovery as finishLoad does: then everything may be called. No lane may be at
// work. latest is the latest Mono reading of all applied changes, stamps of requests included.
func (r *Recovery) Finish() (latest int64, err error) {
	for _, l := range r.lanes {
		r.k.merge(l.part)
		latest = max(latest, l.latest)
	}
	r.lanes = nil
	if r.k.huge != nil {
		r.k.huge.loading = nil
		for i := range r.k.shards {
			r.k.shards[i].texts.loaded()
		}
	}
	err = r.k.finishLoad()
	return max(latest, r.k.Latest()), err
}

// merge adds up what a part has beside the shards.
func (k *Kernel) merge(p *Kernel) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now, k.created, k.readied = max(k.now, p.now), max(k.created, p.created), max(k.readied, p.readied)
	for s, n := range p.byState {
		k.byState[s] += n
	}
	k.total += p.total
	k.sched.depth += p.sched.depth
	k.sched.nodes.adopt(&p.sched.nodes)
}
