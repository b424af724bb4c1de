package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/relpath"
)

// MaxIndexed is the most files of an Index (exacta §4.17).
const MaxIndexed = 10_000

// File is an indexed file.
type File struct {
	Path string
	Size int64
}

// Index returns the files for planning (exacta §4.17): regular ones that no rule denies, in byte
// order of their paths, the first 10 000, at most 20 components deep. Directories that cannot be
// read, and names that no diff can name, are left out.
func (p *Project) Index() ([]File, *errcode.Fault) {
	var out []File
	err := p.walk(p.dir, "", 1, func(rel string, dir bool, size int64) bool {
		if !dir {
			out = append(out, File{rel, size})
		}
		return len(out) < MaxIndexed
	})
	return out, faultOf(err, ".")
}

// Tree returns the same files and the directories around them, which end in a slash, in byte order
// (exacta §4.15, project_structure.txt).
func (p *Project) Tree() ([]string, *errcode.Fault) {
	var out []string
	err := p.walk(p.dir, "", 1, func(rel string, dir bool, _ int64) bool {
		if dir {
			rel += "/"
		}
		out = append(out, rel)
		return len(out) < MaxIndexed
	})
	return out, faultOf(err, ".")
}

// stopped ends a walk early.
const stopped refusal = "stopped"

// walk visits what is below d, a directory with the rel path prefix, until visit returns false.
func (p *Project) walk(d dir, prefix string, depth int, visit func(rel string, dir bool, size int64) bool) error {
	err := p.descend(d, prefix, depth, visit)
	if err == stopped && depth == 1 {
		return nil
	}
	return err
}

func (p *Project) descend(d dir, prefix string, depth int, visit func(rel string, dir bool, size int64) bool) error {
	names, err := d.list()
	if err != nil {
		if depth > 1 && (err == unix.EACCES || isMissing(err)) {
			return nil
		}
		return err
	}
	type entry struct {
		key string // name, with a slash if it is a directory
		st  unix.Stat_t
	}
	entries := make([]entry, 0, len(names))
	for _, name := range names {
		if reserved(name) || !relpath.Valid(prefix+name) {
			continue
		}
		st, err := d.lstat(name)
		if err != nil {
			continue
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			entries = append(entries, entry{name, st})
		case unix.S_IFDIR:
			entries = append(entries, entry{name + "/", st})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range entries {
		name, isDir := strings.CutSuffix(e.key, "/")
		rel := prefix + name
		if p.Check(rel) != nil && !isDir || isDir && p.deny != nil && p.deny(rel, true) {
			continue
		}
		if !visit(rel, isDir, e.st.Size) {
			return stopped
		}
		if !isDir || depth == relpath.MaxComponents {
			continue
		}
		sub, err := d.open(name)
		if err != nil {
			continue
		}
		err = p.descend(sub, rel+"/", depth+1, visit)
		sub.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Read returns the bytes and the mode of a file: FS-001 if it is missing, SEC-002 for a denied
// path, a link anywhere in it, and what is no regular file.
func (p *Project) Read(rel string) ([]byte, fs.FileMode, *errcode.Fault) {
	if f := p.Check(rel); f != nil {
		return nil, 0, f
	}
	parent, name, err := p.parent(rel)
	if err != nil {
		return nil, 0, faultOf(err, rel)
	}
	defer parent.close()
	b, mode, err := parent.read(name, p.opts.MaxFile)
	return b, fs.FileMode(mode & 0o777), faultOf(err, rel)
}

// Hash returns the SHA-256 of a file, "" if there is none; its faults are those of Read.
func (p *Project) Hash(rel string) (string, *errcode.Fault) {
	if f := p.Check(rel); f != nil {
		return "", f
	}
	sum, err := p.hash(rel)
	return sum, faultOf(err, rel)
}

// IsDir reports whether rel is a directory that is reached without a link.
func (p *Project) IsDir(rel string) bool {
	if checkPath(rel) != nil {
		return false
	}
	parent, name, err := p.parent(rel)
	if err != nil {
		return false
	}
	defer parent.close()
	st, err := parent.lstat(name)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

// IsBehindFile reports whether a directory of rel is a file, so that no file can be made there.
func (p *Project) IsBehindFile(rel string) bool {
	parent, _, err := p.parent(rel)
	if err == nil {
		parent.close()
	}
	return errors.Is(err, isNotDir)
}

// parent opens the directory that rel is in.
func (p *Project) parent(rel string) (dir, string, error) {
	dirs, name := split(rel)
	d, err := p.dir.open(".")
	for _, c := range dirs {
		if err != nil {
			break
		}
		var next dir
		next, err = d.open(c)
		d.close()
		d = next
	}
	return d, name, err
}

// split separates a rel path into its directories and its last component.
func split(rel string) (dirs []string, name string) {
	parts := strings.Split(rel, "/")
	return parts[:len(parts)-1], parts[len(parts)-1]
}

// hash is Hash of any path of the right form.
func (p *Project) hash(rel string) (string, error) {
	parent, name, err := p.parent(rel)
	if isMissing(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer parent.close()
	return parent.hash(name)
}

// hash returns the SHA-256 of a regular file, "" if there is no such name.
func (d dir) hash(name string) (string, error) {
	f, _, err := d.regular(name)
	if err == unix.ENOENT {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	return sumOf(f)
}

// read returns the bytes and the permissions of a regular file of at most that many bytes.
func (d dir) read(name string, most int64) ([]byte, uint32, error) {
	f, st, err := d.regular(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if st.Size > most {
		return nil, 0, isTooLarge
	}
	var b bytes.Buffer
	b.Grow(int(st.Size) + bytes.MinRead) // what grows while it is read takes more
	n, err := b.ReadFrom(io.LimitReader(f, most+1))
	if err == nil && n > most {
		err = isTooLarge
	}
	return b.Bytes(), uint32(st.Mode) & 0o7777, err
}
