package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// lossyDisk is a file system in memory for tests of power loss: the disk of a server that is a
// process of its own. A test mounts it, ends the server by SIGKILL, has the disk lose its power,
// mounts it again and starts the next server in it. It outlives its mounts. Its methods may be
// called from any goroutine.
//
//	crash_disk_names_test.go        names, and what of them is durable
//	crash_disk_file_test.go         bytes, and what of them is durable
//	crash_disk_mount_linux_test.go  serves it to the kernel by FUSE
//
// # What is durable
//
// The bytes of a file are durable after a sync of the file (fsync, fdatasync, a write to a file
// that was opened with O_SYNC or O_DSYNC). A name that was made, moved or removed is durable after
// a sync of its directory. So is a name that is not durable yet after a sync of the file behind it,
// as file systems with a journal have it. What was changed before in the same directory is durable
// then too, and so are the names of the directories above.
//
// # What a power loss leaves
//
// What is durable is there. The rest is gone, or a part of it is there, by chance: the changes of
// names up to any moment, and of each page of 4096 bytes that was not synced its old content, its
// new content, or its first sectors of 512 bytes new and the others old. A file whose end was not
// synced ends behind the last page that is there, with zeros where pages before it are missing.
type lossyDisk struct {
	mu      sync.Mutex
	nodes   map[uint64]*diskNode // those that the kernel may name
	last    uint64               // the highest id that was given
	pending []nameChange         // not durable, oldest first
}

// diskNode is a file, or a directory where names is not nil.
type diskNode struct {
	id      uint64
	mode    uint32 // permissions
	changed time.Time
	links   int    // names that it has
	lookups uint64 // references of the kernel

	names map[string]*diskNode // of a directory
	kept  map[string]*diskNode // those that are durable

	data []byte         // of a file
	size int            // how much of it is durable
	old  map[int][]byte // durable content of the pages that were written since
}

// nameChange is what a call changes of names, all or nothing.
type nameChange struct {
	of    *diskNode // whose name it is, nil for a removal
	edits []edit
}

type edit struct {
	dir  *diskNode
	name string
	to   *diskNode // nil: the name is removed
}

// rootID is what the kernel calls the root.
const rootID = 1

// newLossyDisk returns an empty disk.
func newLossyDisk() *lossyDisk {
	d := &lossyDisk{last: rootID}
	root := newDir(rootID, 0o755)
	root.links = 1
	d.nodes = map[uint64]*diskNode{rootID: root}
	return d
}

func newDir(id uint64, mode uint32) *diskNode {
	return &diskNode{
		id:      id,
		mode:    mode,
		changed: time.Now(),
		names:   make(map[string]*diskNode),
		kept:    make(map[string]*diskNode),
	}
}

func (n *diskNode) isDir() bool { return n.names != nil }

// dir returns the directory of an id. The caller holds mu, as those of all that follow do.
func (d *lossyDisk) dir(id uint64) (*diskNode, error) {
	n, err := d.node(id)
	if err == nil && !n.isDir() {
		return nil, syscall.ENOTDIR
	}
	return n, err
}

func (d *lossyDisk) node(id uint64) (*diskNode, error) {
	if n := d.nodes[id]; n != nil {
		return n, nil
	}
	return nil, syscall.ESTALE
}

// make makes a file or a directory.
func (d *lossyDisk) make(dir *diskNode, name string, mode uint32, isDir bool) (*diskNode, error) {
	if dir.names[name] != nil {
		return nil, syscall.EEXIST
	}
	d.last++
	n := &diskNode{id: d.last, mode: mode, changed: time.Now()}
	if isDir {
		n = newDir(d.last, mode)
	}
	d.nodes[n.id] = n
	d.edit(n, edit{dir, name, n})
	return n, nil
}

// link gives a file one more name.
func (d *lossyDisk) link(n, dir *diskNode, name string) error {
	switch {
	case n.isDir():
		return syscall.EPERM
	case dir.names[name] != nil:
		return syscall.EEXIST
	}
	d.edit(n, edit{dir, name, n})
	return nil
}

// remove removes a name, of an empty directory or of what is none.
func (d *lossyDisk) remove(dir *diskNode, name string, isDir bool) error {
	n := dir.names[name]
	switch {
	case n == nil:
		return syscall.ENOENT
	case isDir && !n.isDir():
		return syscall.ENOTDIR
	case !isDir && n.isDir():
		return syscall.EISDIR
	case len(n.names) > 0:
		return syscall.ENOTEMPTY
	}
	d.edit(nil, edit{dir, name, nil})
	return nil
}

// rename moves a name, and replaces what has the new one unless keep is set.
func (d *lossyDisk) rename(from *diskNode, name string, to *diskNode, newName string, keep bool) error {
	n, there := from.names[name], to.names[newName]
	switch {
	case n == nil:
		return syscall.ENOENT
	case n == there:
		return nil
	case there == nil:
	case keep:
		return syscall.EEXIST
	case there.isDir() && !n.isDir():
		return syscall.EISDIR
	case !there.isDir() && n.isDir():
		return syscall.ENOTDIR
	case len(there.names) > 0:
		return syscall.ENOTEMPTY
	}
	d.edit(n, edit{from, name, nil}, edit{to, newName, n})
	return nil
}

// edit changes names. of is whose name it is then.
func (d *lossyDisk) edit(of *diskNode, edits ...edit) {
	for _, e := range edits {
		if n := e.dir.names[e.name]; n != nil {
			n.links--
			defer d.release(n)
		}
		e.apply(e.dir.names)
		if e.to != nil {
			e.to.links++
		}
		e.dir.changed = time.Now()
	}
	d.pending = append(d.pending, nameChange{of, edits})
}

func (e *edit) apply(names map[string]*diskNode) {
	if e.to == nil {
		delete(names, e.name)
	} else {
		names[e.name] = e.to
	}
}

// release forgets a node that has no name and that the kernel does not know.
func (d *lossyDisk) release(n *diskNode) {
	if n.links == 0 && n.lookups == 0 {
		delete(d.nodes, n.id)
	}
}

// sync makes a node durable: the names in a directory, the bytes of a file; and the name of either.
func (d *lossyDisk) sync(n *diskNode) {
	wanted, touched := map[*diskNode]bool{n: true}, make(map[*diskNode]bool)
	if n.isDir() {
		touched[n] = true
	} else {
		n.sync()
	}
	durable := make([]bool, len(d.pending))
	for i := len(d.pending) - 1; i >= 0; i-- {
		c := &d.pending[i]
		is := wanted[c.of] && c.of != nil
		for _, e := range c.edits {
			is = is || touched[e.dir]
		}
		if durable[i] = is; is {
			for _, e := range c.edits { // what was changed there before, and its own name
				touched[e.dir], wanted[e.dir] = true, true
			}
		}
	}
	var rest []nameChange
	for i, c := range d.pending {
		if !durable[i] {
			rest = append(rest, c)
			continue
		}
		c.keep()
	}
	d.pending = rest
}

func (c *nameChange) keep() {
	for _, e := range c.edits {
		e.apply(e.dir.kept)
	}
}

// lose has the disk lose its power: what is not durable is gone. With a source of chance some of it
// may be there. The disk is mounted nowhere.
func (d *lossyDisk) lose(chance *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if chance != nil {
		for _, c := range d.pending[:chance.IntN(len(d.pending)+1)] {
			c.keep()
		}
	}
	root := d.nodes[rootID]
	d.pending, d.nodes = nil, make(map[uint64]*diskNode)
	root.links = 1
	d.revive(root, chance)
}

// revive is the start of a node after a power loss.
func (d *lossyDisk) revive(n *diskNode, chance *rand.Rand) {
	n.lookups = 0
	d.nodes[n.id] = n
	if !n.isDir() {
		n.lose(chance)
		return
	}
	n.names = maps.Clone(n.kept)
	for _, name := range slices.Sorted(maps.Keys(n.names)) { // a seed repeats
		below := n.names[name]
		if d.nodes[below.id] == nil {
			below.links = 0
			d.revive(below, chance)
		}
		below.links++
	}
}
