package workspace

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// isConflict is a target that another program changed.
const isConflict refusal = "conflict"

// Undo takes back the entries from index from on, the last one first, by the rules of exacta §4.8:
// a target with its old hash is left alone, one with its new hash gets its old bytes and mode back
// or is removed, any other is left as it is: a conflict, if it was replaced before. Temporary files
// of the entries and directories that they made and that are empty are removed. Entries that are
// undone leave the manifest.
//
// FS-006 counts the entries that are not undone: conflicts, and those that the disk refused. They
// stay in the manifest with their blobs. A point with conflicts only is sealed, so that no later
// Recover fails at them again. That the manifest cannot be written is no fault: to undo an entry
// again does nothing.
func (pt *Point) Undo(from int) *errcode.Fault {
	pt.discard()
	var kept []Entry
	failed := 0
	detail := ""
	for i := len(pt.Entries) - 1; i >= from; i-- {
		err := pt.undo(pt.Entries[i])
		if err == nil {
			continue
		}
		kept = append([]Entry{pt.Entries[i]}, kept...)
		why := faultOf(err, pt.Entries[i].Path).Detail
		if errors.Is(err, isConflict) {
			why = "conflict: " + pt.Entries[i].Path
		} else {
			failed++
		}
		detail = why
	}
	pt.Entries = append(pt.Entries[:min(from, len(pt.Entries)):min(from, len(pt.Entries))], kept...)
	pt.Conflicts = len(kept)
	if len(kept) > 0 && failed == 0 {
		pt.Sealed = true
	}
	if d, err := pt.folder(true); err == nil {
		_ = pt.save(d)
		d.close()
	}
	if len(kept) == 0 {
		return nil
	}
	return errcode.New("FS-006", detail, strconv.Itoa(len(kept)))
}

// undo takes back one entry.
func (pt *Point) undo(e Entry) error {
	dirs, name := split(e.Path)
	parent, _, err := pt.p.parent(e.Path)
	absent := err == unix.ENOENT
	switch {
	case absent:
	case errors.Is(err, isNotDir) && e.Pre == "": // what was made is gone
		return pt.removeDirs(e)
	case errors.Is(err, isSymlink) || errors.Is(err, isNotDir):
		return pt.changed(e)
	case err != nil:
		return err
	default:
		defer func() { parent.close() }()
		if err := parent.removeTemp(pt.tempName(name)); err != nil {
			return err
		}
	}
	sum := ""
	if !absent {
		if sum, err = parent.hash(name); errors.Is(err, isSymlink) || errors.Is(err, isNotRegular) {
			return pt.changed(e)
		} else if err != nil {
			return err
		}
	}
	if sum == e.Pre {
		return pt.removeDirs(e)
	}
	if sum != e.Post {
		return pt.changed(e)
	}
	if e.Op == Create {
		if err := parent.remove(name); err != nil {
			return err
		}
		if err := parent.sync(); err != nil {
			return err
		}
		return pt.removeDirs(e)
	}
	if absent {
		if parent, err = pt.p.makeDirs(dirs, func(string) bool { return true }); err != nil {
			return err
		}
		defer func() { parent.close() }()
	}
	return pt.restore(parent, name, e)
}

// changed leaves a target alone that another program changed: a conflict, unless it was not
// replaced before, and there is nothing to take back but directories.
func (pt *Point) changed(e Entry) error {
	if pt.skipped[e.Order] {
		return pt.removeDirs(e)
	}
	return isConflict
}

// restore gives a modified or deleted target its old bytes and mode. The manifest lies in the
// project: a program gets no setuid, setgid or sticky bit that the target does not have now.
func (pt *Point) restore(parent dir, name string, e Entry) error {
	d, err := pt.folder(false)
	if err != nil {
		return err
	}
	defer d.close()
	blob, _, err := d.read(e.Blob, maxStored)
	if err != nil {
		return err
	}
	of, _, err := d.regular(e.Blob)
	if err != nil {
		return err
	}
	defer func() { _ = of.Close() }() // only read
	if Sum(blob) != e.Pre {
		return damaged("rollback blob " + e.Blob)
	}
	const special = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX
	now, _ := parent.lstat(name) // one that is missing has none
	temp := pt.tempName(name)
	like := &attributes{mode: e.Mode &^ (special &^ int(now.Mode)), of: of}
	if err := parent.place(temp, blob, 0o600, like); err != nil {
		return err
	}
	if e.Op == Modify {
		err = parent.swap(temp, name, e.Pre, e.Post)
	} else if err = parent.expect(name, e.Post); err == nil {
		err = parent.renameNew(temp, name)
	}
	if errors.Is(err, isChanged) || err == unix.EEXIST {
		err = isConflict
	}
	if err != nil {
		_ = parent.remove(temp)
		return err
	}
	return parent.sync()
}

// removeTemp removes a temporary file of ours. What is no regular file is not ours.
func (d dir) removeTemp(name string) error {
	st, err := d.lstat(name)
	if err != nil || regularMode(st) != nil {
		return nil
	}
	return d.remove(name)
}

// removeDirs removes the directories that an entry made, unless they are in use.
func (pt *Point) removeDirs(e Entry) error {
	for i := len(e.CreatedDirs) - 1; i >= 0; i-- {
		parent, name, err := pt.p.parent(e.CreatedDirs[i])
		if err != nil {
			continue
		}
		err = parent.rmdir(name)
		if err == nil {
			err = parent.sync()
		}
		parent.close()
		switch err {
		case nil, unix.ENOENT, unix.ENOTDIR, unix.ENOTEMPTY, unix.EEXIST:
		default:
			return err
		}
	}
	return nil
}
