package crashfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Disk is a file system in memory. It outlives its mounts. Its methods may be called from any
// goroutine.
type Disk struct {
	mu      sync.Mutex
	nodes   map[uint64]*node // those that the kernel may name
	last    uint64           // the highest id that was given
	pending []change         // not durable, oldest first
}

// node is a file, or a directory where names is not nil.
type node struct {
	id      uint64
	mode    uint32 // permissions
	changed time.Time
	links   int    // names that it has
	lookups uint64 // references of the kernel

	names map[string]*node // of a directory
	kept  map[string]*node // those that are durable

	data []byte         // of a file
	size int            // how much of it is durable
	old  map[int][]byte // durable content of the pages that were written since
}

// change is what a call changes of names, all or nothing.
type change struct {
	of    *node // whose name it is, nil for a removal
	edits []edit
}

type edit struct {
	dir  *node
	name string
	to   *node // nil: the name is removed
}

// rootID is what the kernel calls the root.
const rootID = 1

// New returns an empty disk.
func New() *Disk {
	d := &Disk{last: rootID}
	root := newDir(rootID, 0o755)
	root.links = 1
	d.nodes = map[uint64]*node{rootID: root}
	return d
}

func newDir(id uint64, mode uint32) *node {
	return &node{id: id, mode: mode, changed: time.Now(), names: make(map[string]*node), kept: make(map[string]*node)}
}

func (n *node) isDir() bool { return n.names != nil }

// dir returns the directory of an id. The caller holds mu, as those of all that follow do.
func (d *Disk) dir(id uint64) (*node, error) {
	n, err := d.node(id)
	if err == nil && !n.isDir() {
		return nil, syscall.ENOTDIR
	}
	return n, err
}

func (d *Disk) node(id uint64) (*node, error) {
	if n := d.nodes[id]; n != nil {
		return n, nil
	}
	return nil, syscall.ESTALE
}

// make makes a file or a directory.
func (d *Disk) make(dir *node, name string, mode uint32, isDir bool) (*node, error) {
	if dir.names[name] != nil {
		return nil, syscall.EEXIST
	}
	d.last++
	n := &node{id: d.last, mode: mode, changed: time.Now()}
	if isDir {
		n = newDir(d.last, mode)
	}
	d.nodes[n.id] = n
	d.edit(n, edit{dir, name, n})
	return n, nil
}

// link gives a file one more name.
func (d *Disk) link(n, dir *node, name string) error {
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
func (d *Disk) remove(dir *node, name string, isDir bool) error {
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
func (d *Disk) rename(from *node, name string, to *node, newName string, keep bool) error {
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
func (d *Disk) edit(of *node, edits ...edit) {
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
	d.pending = append(d.pending, change{of, edits})
}

func (e *edit) apply(names map[string]*node) {
	if e.to == nil {
		delete(names, e.name)
	} else {
		names[e.name] = e.to
	}
}

// release forgets a node that has no name and that the kernel does not know.
func (d *Disk) release(n *node) {
	if n.links == 0 && n.lookups == 0 {
		delete(d.nodes, n.id)
	}
}

// sync makes a node durable: the names in a directory, the bytes of a file; and the name of either.
func (d *Disk) sync(n *node) {
	wanted, touched := map[*node]bool{n: true}, make(map[*node]bool)
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
	var rest []change
	for i, c := range d.pending {
		if !durable[i] {
			rest = append(rest, c)
			continue
		}
		c.keep()
	}
	d.pending = rest
}

func (c *change) keep() {
	for _, e := range c.edits {
		e.apply(e.dir.kept)
	}
}

// Lose has the disk lose its power: what is not durable is gone. With a source of chance some of it
// may be there. The disk is mounted nowhere.
func (d *Disk) Lose(chance *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if chance != nil {
		for _, c := range d.pending[:chance.IntN(len(d.pending)+1)] {
			c.keep()
		}
	}
	root := d.nodes[rootID]
	d.pending, d.nodes = nil, make(map[uint64]*node)
	root.links = 1
	d.revive(root, chance)
}

// revive is the start of a node after a power loss.
func (d *Disk) revive(n *node, chance *rand.Rand) {
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
