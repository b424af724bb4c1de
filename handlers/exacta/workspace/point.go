package workspace

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// Op is what a Change does to its target.
type Op string

// The ops (exacta §4.18).
const (
	Create Op = "create"
	Modify Op = "modify"
	Delete Op = "delete"
)

// newMode is the mode of a created file, masked by the umask (exacta §4.17).
const newMode = 0o644

// Change is one change of a file.
type Change struct {
	Path string
	Op   Op
	Data []byte // the new bytes; none of a Delete
	Pre  string // the SHA-256 that the target must have; "" for a Create
}

// Entry is one change of a Point (exacta §4.18, manifest.json). Empty sums and blobs are null.
type Entry struct {
	Path        string
	Op          Op
	Mode        int // of the old file
	Pre, Post   string
	Blob        string
	CreatedDirs []string
	Order       int
}

// Point is a rollback point (exacta §4.18): changes, and the way back. It is for one goroutine.
type Point struct {
	ID, Kind, CreatedAt string
	// Sealed is set once all changes of the point are done.
	Sealed bool
	// Conflicts counts the entries that Undo could not restore. Such a point is never dropped.
	Conflicts int
	Entries   []Entry
	// Proven is set where this installation made the point, for this root.
	Proven bool
	// Lost has the files whose owner, group or extended attributes Prepare could not keep.
	Lost []string

	p       *Project
	seq     int64
	pending []pending
	skipped map[int]bool // orders of entries whose targets this process has not replaced
}

// pending is a change whose entry is saved and that is not done.
type pending struct {
	entry  Entry
	data   []byte
	parent dir // open from Prepare on
	ready  bool
	done   bool // the target was replaced
}

// The kinds of points.
const (
	PlanPoint    = "plan"
	DiffSetPoint = "diffset"
)

// NewPoint makes a rollback point without entries (exacta §4.18). The id of an execution's point is
// that of the execution.
func (p *Project) NewPoint(id, kind, createdAt string) (*Point, *errcode.Fault) {
	if !isID(id) {
		return nil, damaged("no id: " + printable(id))
	}
	seq, f := p.nextSeq()
	if f != nil {
		return nil, f
	}
	pt := &Point{ID: id, Kind: kind, CreatedAt: createdAt, Proven: true, p: p, seq: seq}
	d, err := pt.folder(true)
	if err != nil {
		return nil, faultOf(err, pt.rel())
	}
	defer d.close()
	if _, err := d.lstat("manifest.json"); err == nil {
		return nil, damaged("id used twice: " + id)
	}
	return pt, pt.save(d)
}

// nextSeq returns a number above those of all points.
func (p *Project) nextSeq() (int64, *errcode.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastSeq < 0 {
		found, f := p.points()
		if f != nil {
			return 0, f
		}
		p.lastSeq = 0
		for _, pt := range found.points {
			p.lastSeq = max(p.lastSeq, pt.seq)
		}
	}
	p.lastSeq = min(p.lastSeq+1, maxSeq)
	return p.lastSeq, nil
}

// maxSeq is the greatest seq of a point. A project that comes with it has points of one seq; their
// times order them.
const maxSeq = 1 << 52

func (pt *Point) rel() string { return storeName + "/rollback/" + pt.ID }

// folder opens the directory of the point, which may be made.
func (pt *Point) folder(create bool) (dir, error) {
	var d dir
	var err error
	if create {
		d, err = pt.p.store()
	} else {
		d, err = pt.p.existingStore()
	}
	for _, c := range [...]string{"rollback", pt.ID} {
		if err != nil {
			return d, err
		}
		var next dir
		if create {
			next, err = d.sub(c)
		} else {
			next, err = d.open(c)
		}
		d.close()
		d = next
	}
	return d, err
}

// save writes the manifest.
func (pt *Point) save(d dir) *errcode.Fault {
	return faultOf(d.replace("manifest.json", pt.p.sign("rollback/"+pt.ID, pt.encode())), pt.rel()+"/manifest.json")
}

// Add saves the way back of further changes: the original bytes of their targets, then the entries,
// both fsynced (exacta §4.8). It checks each target: the rules of Check, links, and that it has the
// bytes of Change.Pre (VAL-005; FS-001 for a missing one). After a fault the point is as before.
// The changes are done by Prepare and Commit; their Data must stay unchanged until then.
func (pt *Point) Add(changes ...Change) *errcode.Fault {
	d, err := pt.folder(true)
	if err != nil {
		return faultOf(err, pt.rel())
	}
	defer d.close()
	had, waited := len(pt.Entries), len(pt.pending)
	f := pt.addAll(d, changes)
	if f == nil {
		f = pt.save(d)
	}
	if f != nil {
		pt.Entries, pt.pending = pt.Entries[:had], pt.pending[:waited]
	}
	return f
}

func (pt *Point) addAll(d dir, changes []Change) *errcode.Fault {
	if f := pt.p.inPlace(); f != nil {
		return f
	}
	for _, c := range changes {
		e, f := pt.entry(d, c)
		if f != nil {
			return f
		}
		pt.Entries = append(pt.Entries, e)
		pt.pending = append(pt.pending, pending{entry: e, data: c.Data})
	}
	return faultOf(d.sync(), pt.rel())
}

// fresh makes a blob, in the place of one that no manifest names. It has the owner, the group and
// the extended attributes of its file, for the way back.
func fresh(d dir, name string, data []byte, of *os.File) error {
	if _, err := d.lstat(name); err == nil {
		if err := d.remove(name); err != nil {
			return err
		}
	}
	return d.place(name, data, 0o600, &attributes{mode: 0o600, of: of})
}

// entry checks a change, saves the bytes that the target has in d, and returns the entry.
func (pt *Point) entry(d dir, c Change) (e Entry, f *errcode.Fault) {
	if f := pt.p.Check(c.Path); f != nil {
		return e, f
	}
	for _, w := range pt.pending {
		if w.entry.Path == c.Path {
			return e, errcode.New("VAL-003", "duplicate_target: "+c.Path)
		}
	}
	e = Entry{Path: c.Path, Op: c.Op, Mode: newMode, Pre: c.Pre, Order: pt.nextOrder()}
	if c.Op != Delete {
		e.Post = Sum(c.Data)
	}
	if c.Op == Create {
		sum, err := pt.p.hash(c.Path)
		if err == nil && sum != "" {
			return e, errcode.New("VAL-005", "target_exists: "+c.Path)
		}
		if err == nil {
			e.Pre = ""
			e.CreatedDirs, err = pt.missing(c.Path)
		}
		return e, faultOf(err, c.Path)
	}
	parent, name, err := pt.p.parent(c.Path)
	if err != nil {
		return e, faultOf(err, c.Path)
	}
	defer parent.close()
	before, mode, err := parent.read(name, pt.p.opts.MaxFile)
	if err == nil && Sum(before) != c.Pre {
		err = isChanged
	}
	e.Mode = int(mode)
	e.Blob = strconv.Itoa(e.Order) + ".bin"
	if err != nil {
		return e, faultOf(err, c.Path)
	}
	of, _, err := parent.regular(name)
	if err != nil {
		return e, faultOf(err, c.Path)
	}
	defer func() { _ = of.Close() }() // only read
	return e, faultOf(fresh(d, e.Blob, before, of), pt.rel()+"/"+e.Blob)
}

func (pt *Point) nextOrder() int {
	if n := len(pt.Entries); n > 0 {
		return pt.Entries[n-1].Order + 1
	}
	return 1
}

// missing returns the directories that a new file needs and that no earlier entry makes.
func (pt *Point) missing(rel string) ([]string, error) {
	made := make(map[string]bool)
	for _, e := range pt.Entries {
		for _, d := range e.CreatedDirs {
			made[d] = true
		}
	}
	var out []string
	dirs, _ := split(rel)
	d, err := pt.p.dir.open(".")
	for i, c := range dirs {
		var next dir
		if err == nil {
			next, err = d.open(c)
			d.close()
			d = next
		}
		if err != nil && err != unix.ENOENT {
			return nil, err
		}
		if at := strings.Join(dirs[:i+1], "/"); err == unix.ENOENT && !made[at] {
			out = append(out, at)
		}
	}
	if err == nil {
		d.close()
	}
	return out, nil
}

// Seal marks the point as complete.
func (pt *Point) Seal() *errcode.Fault {
	d, err := pt.folder(true)
	if err != nil {
		return faultOf(err, pt.rel())
	}
	defer d.close()
	pt.Sealed = true
	f := pt.save(d)
	if f != nil {
		pt.Sealed = false
	}
	return f
}
