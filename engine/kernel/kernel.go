package kernel

import (
	"cmp"
	"hash/maphash"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults and bounds of Config (kernel-ipc §6).
const (
	DefaultMaxProcesses      = 1000000
	DefaultMaxRateLimitUsers = 100000
	// shardsPerCPU keeps collisions of the loops rare; more shards only cost cache lines.
	shardsPerCPU = 32
	minShards    = 64
	maxShards    = 4096
)

// Config is what a Kernel is made with.
type Config struct {
	// MaxProcesses bounds the table, all states counted (max_processes); 0 or less means
	// DefaultMaxProcesses. It is cut to 2^32/n - 1 for n shards (16 million at 256 shards).
	MaxProcesses int
	// MaxRateLimitUsers bounds the rate-limit logs; 0 or less means DefaultMaxRateLimitUsers.
	MaxRateLimitUsers int
	// Shards is the number of table shards, rounded up to a power of two within
	// minShards..maxShards; 0 means shardsPerCPU for each processor.
	Shards int
	// DequeueLease is how long GetNextRunnable hands a process out (dequeue_lease_secs); 0: for
	// ever.
	DequeueLease time.Duration
	// ProcessRetention is how long after completion a process is kept (process_retention_secs).
	ProcessRetention time.Duration
	// Events takes lifecycle events; may be nil.
	Events Events
	// Ended is called for every process that is terminated, also again, and Removed for every one
	// that garbage collection drops; either may be nil. Both run with the scheduling lock held, so
	// that both effects are visible together; they must be brief and must not call the kernel. pid
	// is lent.
	Ended, Removed func(pid []byte)
	// Defaults is the default quota at start; the zero value means BuiltinQuota.
	Defaults Quota
	// Partitions is how many kernels share the creation sequences, and Partition which of them this
	// one is. 0 or 1: it has them for itself, without gaps.
	Partition, Partitions uint64
	// SmallPages leaves the size of memory pages to the system. Otherwise large tables ask for huge
	// ones.
	SmallPages bool
	// Journal gets every change under the lock that decided it, right before it is applied, and
	// returns the index of its record, which grows from call to call; 0: it is not recorded. May be
	// nil. It is called from several goroutines at once and must neither block for long nor call
	// the kernel.
	Journal func(*Change) (index uint64)
	// Overloaded reports that Journal should get no changes that can wait: Sweep then ends early.
	// nil: never. It must not call the kernel.
	Overloaded func() bool
}

func (c Config) withDefaults() Config {
	if c.Overloaded == nil {
		c.Overloaded = func() bool { return false }
	}
	c.MaxProcesses = cmp.Or(max(c.MaxProcesses, 0), DefaultMaxProcesses)
	c.MaxRateLimitUsers = cmp.Or(max(c.MaxRateLimitUsers, 0), DefaultMaxRateLimitUsers)
	c.Shards = cmp.Or(max(c.Shards, 0), shardsPerCPU*runtime.GOMAXPROCS(0))
	c.Shards = min(max(c.Shards, minShards), maxShards)
	c.Shards = 1 << bits.Len(uint(c.Shards-1))
	c.MaxProcesses = min(c.MaxProcesses, c.maxRows())
	c.DequeueLease = max(c.DequeueLease, 0)
	c.ProcessRetention = max(c.ProcessRetention, 0)
	if c.Defaults == (Quota{}) {
		c.Defaults = BuiltinQuota()
	}
	return c
}

// maxRows is the number of slots that a reference can address within one shard.
func (c *Config) maxRows() int { return int(1<<32/uint64(c.Shards)) - 1 }

// Kernel is a process table with its scheduler and rate limiter. Any goroutine may call its
// methods.
type Kernel struct {
	mu      sync.Mutex // the scheduling lock; guards the fields up to recovery
	now     int64      // latest Mono seen
	created uint64     // last creation sequence
	readied uint64     // last READY sequence
	byState [NumStates]int64
	total   int
	unheard int64 // events without a subscriber
	sched   scheduler
	order   order
	payload []byte // scratch of event payloads
	change  Change // what the journal is shown
	// defaultsRecord is the index of the last record of the default quota.
	defaultsRecord uint64
	recovery       recovery

	cfg       Config
	seed      maphash.Seed
	shardBits uint
	shards    []shard
	rates     limiter
	huge      *hugeAdvisor // nil: small pages
	defaults  atomic.Pointer[Quota]
}

// New returns an empty kernel.
func New(cfg Config) *Kernel {
	cfg = cfg.withDefaults()
	k := &Kernel{cfg: cfg, seed: maphash.MakeSeed(), shards: make([]shard, cfg.Shards)}
	k.shardBits = uint(bits.TrailingZeros(uint(cfg.Shards)))
	if !cfg.SmallPages {
		k.huge = new(hugeAdvisor)
	}
	for i := range k.shards {
		k.shards[i].init(k.huge)
	}
	k.sched.nodes.huge = k.huge
	k.sched.init()
	k.defaults.Store(&cfg.Defaults)
	k.rates.init(&k.cfg, &k.defaults)
	return k
}

// place is where a process is, or with r nil where it would be.
type place struct {
	sh  *shard
	r   *row
	tag uint32
	ref uint32 // slot<<shardBits | shard
}

// home returns the shard and the hash tag of pid.
func (k *Kernel) home(pid []byte) (sh *shard, tag uint32) {
	h := maphash.Bytes(k.seed, pid)
	return &k.shards[h&uint64(len(k.shards)-1)], uint32(h >> 32)
}

// lock locks the shard of pid and returns its row, nil if there is none. ahead may be nil.
func (k *Kernel) lock(pid []byte, ahead *Ahead) (sh *shard, r *row) {
	if sh, r = ahead.row(); r != nil {
		sh.mu.Lock()
		if sh.isRow(r, pid) {
			return sh, r
		}
		sh.mu.Unlock()
	}
	sh, tag := k.home(pid)
	sh.mu.Lock()
	if slot := sh.find(tag, pid); slot != none {
		return sh, sh.row(slot)
	}
	return sh, nil
}

// locate finds pid. Caller holds the scheduling lock.
func (k *Kernel) locate(pid []byte) (at place, ok bool) {
	return k.locateBy(maphash.Bytes(k.seed, pid), pid)
}

// locateBy is locate of a pid with a known hash.
func (k *Kernel) locateBy(h uint64, pid []byte) (at place, ok bool) {
	shard := uint32(h) & uint32(len(k.shards)-1)
	at = place{sh: &k.shards[shard], tag: uint32(h >> 32), ref: shard}
	slot := at.sh.find(at.tag, pid)
	if slot == none {
		return at, false
	}
	at.ref |= slot << k.shardBits
	at.r = at.sh.row(slot)
	return at, true
}

// rowOf returns the row of a reference. Caller holds the scheduling lock or the shard's mutex.
func (k *Kernel) rowOf(ref uint32) (*shard, *row) {
	sh := &k.shards[ref&uint32(len(k.shards)-1)]
	return sh, sh.row(ref >> k.shardBits)
}

// placeOf returns the place of node i's process, without the tag. Caller holds the scheduling lock.
func (k *Kernel) placeOf(i uint32) place {
	ref := k.sched.nodes.at(i).ref
	sh, r := k.rowOf(ref)
	return place{sh: sh, r: r, ref: ref}
}

// snapshot copies the process at at to out. Caller holds the scheduling lock and no shard.
func (k *Kernel) snapshot(at *place, out *PCB) {
	if out == nil {
		return
	}
	at.sh.mu.Lock()
	at.sh.fill(out, at.r)
	at.sh.mu.Unlock()
}

// Get copies process pid to out (kernel-ipc §4.2). It allocates only while out's buffer grows. out
// may be nil. ahead, if it is not nil, was begun for pid.
func (k *Kernel) Get(pid []byte, ahead *Ahead, out *PCB) Result {
	sh, r := k.lock(pid, ahead)
	if r == nil {
		sh.mu.Unlock()
		return NotFound
	}
	sh.fill(out, r)
	if out != nil {
		out.Recorded = r.recorded
	}
	sh.mu.Unlock()
	return OK
}

// Len returns the number of processes in all states.
func (k *Kernel) Len() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.total
}

// Counts returns one consistent view of the table (kernel-ipc §4.11): Total is the sum of ByState.
func (k *Kernel) Counts(now Instant) Counts {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tick(now)
	return Counts{ByState: k.byState, Total: int64(k.total), QueueDepth: k.sched.depth, Unheard: k.unheard}
}
