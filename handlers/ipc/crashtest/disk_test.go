package crashtest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"trunkline/engine/journal"
	"trunkline/fuzz/kit/memdisk"
)

// tap is a file system that reports the syncs of the log.
type tap struct {
	vfs.FS
	before func()        // a sync of a log begins; may hold it up
	after  func(ok bool) // it has ended
}

// Create implements vfs.FS.
func (d *tap) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(name)(d.FS.Create(name, category))
}

// ReuseForWrite implements vfs.FS.
func (d *tap) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return d.wrap(newname)(d.FS.ReuseForWrite(oldname, newname, category))
}

// Unwrap implements vfs.FS.
func (d *tap) Unwrap() vfs.FS { return d.FS }

func (d *tap) wrap(name string) func(vfs.File, error) (vfs.File, error) {
	return func(f vfs.File, err error) (vfs.File, error) {
		if err != nil || !strings.HasSuffix(name, ".log") {
			return f, err
		}
		return &tapped{f, d}, nil
	}
}

type tapped struct {
	vfs.File
	disk *tap
}

// Sync implements vfs.File.
func (f *tapped) Sync() error { return f.sync(f.File.Sync) }

// SyncData implements vfs.File.
func (f *tapped) SyncData() error { return f.sync(f.File.SyncData) }

// SyncTo implements vfs.File. It may not sync at all.
func (f *tapped) SyncTo(int64) (bool, error) { return false, nil }

func (f *tapped) sync(do func() error) error {
	f.disk.before()
	err := do()
	f.disk.after(err == nil)
	return err
}

// cutter is a disk that loses its power at random write operations: at each it keeps what the disk
// might then hold, and how much of the journal had to be there.
type cutter struct {
	mem    *memdisk.Disk
	mode   journal.Mode
	log    atomic.Pointer[journal.Log]
	begun  atomic.Uint64 // durable when the last sync of the log began
	synced atomic.Uint64 // what the last completed one covers
	syncs  atomic.Int64

	mu    sync.Mutex
	rng   *rand.Rand
	every int // a cut is taken at one of so many operations
	most  int
	cuts  []cut
}

type cut struct {
	fs   *vfs.MemFS
	must journal.Index // what has to be there
	// durable is what the journal called so. In mode Interval that is what the system has.
	durable journal.Index
	what    string
}

func newCutter(mode journal.Mode, seed uint64, every, most int) *cutter {
	return &cutter{mem: memdisk.New(), mode: mode, rng: rand.New(rand.NewPCG(seed, 2)), every: every, most: most}
}

// disk is the file system to run a server on.
func (c *cutter) disk() vfs.FS {
	return errorfs.Wrap(&tap{FS: c.mem, before: c.syncBegins, after: c.syncEnded}, c)
}

// syncBegins and syncEnded come in turns: no one syncs a log twice at a time, and a log is synced
// before the next one begins.
func (c *cutter) syncBegins() { c.begun.Store(c.durable()) }

func (c *cutter) syncEnded(ok bool) {
	if ok {
		c.synced.Store(c.begun.Load())
		c.syncs.Add(1)
	}
}

func (c *cutter) durable() journal.Index {
	if l := c.log.Load(); l != nil {
		return l.Durable()
	}
	return 0
}

// String implements errorfs.Injector.
func (*cutter) String() string { return "cutter" }

// MaybeError implements errorfs.Injector. It never gives an error.
func (c *cutter) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && c.log.Load() != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.cuts) < c.most && c.rng.IntN(c.every) == 0 {
			c.take(fmt.Sprint("before operation ", op.Kind, " on ", op.Path), []int{0, 30, 60, 100}[c.rng.IntN(4)])
		}
	}
	return nil
}

// cutNow cuts at a moment of the test's choice.
func (c *cutter) cutNow(what string, percent int) cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(what, percent)
	return c.cuts[len(c.cuts)-1]
}

// take reads what must be there before the clone: more may be there, less may not. If no unsynced
// byte is lost, it is a process that died and not a machine.
func (c *cutter) take(what string, percent int) {
	must, durable := c.synced.Load(), c.durable()
	if c.mode == journal.Always || percent == 100 {
		must = durable
	}
	fs := c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
	c.cuts = append(c.cuts, cut{fs, must, durable, fmt.Sprintf("%s, %d %% of the unsynced bytes kept", what, percent)})
}
