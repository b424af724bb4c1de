package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// maxName is the most bytes of a file name.
const maxName = 255

// tempName returns the temporary name of a target (exacta §4.17). The hash of a long name takes
// its place, so that every file can be written.
func (pt *Point) tempName(name string) string {
	behind := ".tmp." + pt.ID
	if len(name)+len(behind) > maxName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:])
	}
	return name + behind
}

// Prepare makes the missing directories and writes the temporary files of all changes that were
// added (exacta §4.17). Nothing that exists has changed yet. After a fault the temporary files are
// gone, and Undo removes the directories.
func (pt *Point) Prepare() *errcode.Fault {
	for i := range pt.pending {
		w := &pt.pending[i]
		if w.ready {
			continue
		}
		if err := pt.prepare(w); err != nil {
			pt.discard()
			return faultOf(err, w.entry.Path)
		}
	}
	return nil
}

func (pt *Point) prepare(w *pending) error {
	dirs, name := split(w.entry.Path)
	d, err := pt.p.makeDirs(dirs, pt.makes)
	if err != nil {
		return err
	}
	if err := d.expect(name, w.entry.Pre); err != nil {
		d.close()
		return err
	}
	switch w.entry.Op {
	case Create:
		err = d.place(pt.tempName(name), w.data, newMode, nil)
	case Modify:
		like := &attributes{mode: w.entry.Mode}
		if like.of, _, err = d.regular(name); err == nil {
			err = d.place(pt.tempName(name), w.data, 0o600, like)
			_ = like.of.Close() // only read
		}
		if like.lost {
			pt.Lost = append(pt.Lost, w.entry.Path)
		}
	}
	if err != nil {
		d.close()
		return err
	}
	w.parent, w.ready = d, true
	return nil
}

// expect checks that a name has a file with this hash, "" for none.
func (d dir) expect(name, sum string) error {
	got, err := d.hash(name)
	if err == nil && got != sum {
		err = isChanged
	}
	return err
}

// makes reports whether an entry of the point names a directory as one that it makes.
func (pt *Point) makes(rel string) bool {
	return slices.ContainsFunc(pt.Entries, func(e Entry) bool { return slices.Contains(e.CreatedDirs, rel) })
}

// makeDirs opens a directory below the root and makes what is missing of it, with mode 0755, as far
// as it is permitted.
func (p *Project) makeDirs(dirs []string, permitted func(rel string) bool) (dir, error) {
	d, err := p.dir.open(".")
	rel := ""
	for _, c := range dirs {
		if err != nil {
			return d, err
		}
		rel += c
		var next dir
		next, err = d.open(c)
		if err == unix.ENOENT && permitted(rel) {
			if err = d.mkdir(c, 0o755); err == nil || err == unix.EEXIST {
				if err = d.sync(); err == nil {
					next, err = d.open(c)
				}
			}
		}
		d.close()
		d = next
		rel += "/"
	}
	return d, err
}

// Commit replaces the targets of Prepare, which it calls first, in the order in which they were
// added; done is called after each, and may be nil (exacta §4.12, §4.17). Each target is compared
// with its hash once more right before. After a fault the other temporary files are gone; what was
// replaced stays until Undo.
func (pt *Point) Commit(done func(k, n int)) *errcode.Fault {
	if f := pt.Prepare(); f != nil {
		return f
	}
	n := len(pt.pending)
	for i := range pt.pending {
		w := &pt.pending[i]
		if err := pt.commit(w); err != nil {
			pt.discard()
			return faultOf(err, w.entry.Path)
		}
		if done != nil {
			done(i+1, n)
		}
	}
	pt.discard()
	return nil
}

func (pt *Point) commit(w *pending) error {
	_, name := split(w.entry.Path)
	var err error
	switch temp := pt.tempName(name); w.entry.Op {
	case Create:
		if err = w.parent.expect(name, ""); err == nil {
			err = w.parent.renameNew(temp, name)
		}
	case Modify:
		err = w.parent.swap(temp, name, w.entry.Post, w.entry.Pre)
	default:
		if err = w.parent.expect(name, w.entry.Pre); err == nil {
			err = w.parent.remove(name)
		}
	}
	if err != nil {
		return err
	}
	w.done = true
	err = w.parent.sync()
	w.parent.close()
	w.ready = false
	return err
}

// discard removes the temporary files that are left and forgets the changes that are not done.
func (pt *Point) discard() {
	for _, w := range pt.pending {
		if !w.done {
			if pt.skipped == nil {
				pt.skipped = make(map[int]bool)
			}
			pt.skipped[w.entry.Order] = true
		}
		if !w.ready {
			continue
		}
		_, name := split(w.entry.Path)
		if w.entry.Op != Delete {
			_ = w.parent.remove(pt.tempName(name))
		}
		w.parent.close()
	}
	pt.pending = nil
}

// linkThenUnlink gives a file a second name, which must be new, and removes the first. Between both
// it has two names; the first is a temporary one, which recovery removes.
func linkThenUnlink(d dir, from, to string) error {
	if err := call(func() error { return unix.Linkat(d.fd, from, d.fd, to, 0) }); err != nil {
		return err
	}
	return call(func() error { return unix.Unlinkat(d.fd, from, 0) })
}
