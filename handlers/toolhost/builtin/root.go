package builtin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxLinks is how many links one name may lead over: _POSIX_SYMLOOP_MAX.
	maxLinks = 8
	// maxName is the longest name of a file: PATH_MAX of Linux. It bounds the steps of a walk.
	maxName = 4096
)

// What the functions of a root fail with, beside the errors of the system.
var (
	errOutside    = errors.New("the name leads out of the root")
	errLink       = errors.New("the last component is a symbolic link")
	errNotRegular = errors.New("not a regular file")
	errName       = errors.New("no file can have this name")
)

// root is a directory that no name given to its methods leaves (toolhost §4.7). It holds nothing
// open and does not change: any goroutine may use it, also before the directory exists.
//
// The system gets one component of a name at a time and follows no link: the target of a link is
// taken apart like the name. So a component may be exchanged for a link at any time.
type root struct {
	path  string   // absolute and clean: how the operator spells it, and how results do
	outer *root    // contains path even with links; nil if the operator chose path
	inner []string // path in outer
}

// newRoot returns the root at path, absolute and clean. Links in path itself are followed.
func newRoot(path string) *root { return &root{path: path} }

// within returns the root at path, absolute and clean, reached without leaving r if it lies in r.
func (r *root) within(path string) *root {
	inner, err := r.parts(path)
	if err != nil {
		return newRoot(path)
	}
	return &root{path: path, outer: r, inner: inner}
}

// has reports whether path, absolute, lies in r by its spelling, links not looked at.
func (r *root) has(path string) bool {
	_, err := r.parts(path)
	return filepath.IsAbs(path) && err == nil
}

// open opens the regular file of name, without waiting, and returns its name without links.
func (r *root) open(name string) (f *os.File, resolved string, err error) {
	d, last, err := r.parent(name, false)
	if err != nil {
		return nil, "", err
	}
	defer d.close()
	f, err = d.open(last, os.O_RDONLY, 0)
	if err == errLink {
		err = r.linkError(d, last)
	}
	return f, filepath.Join(d.path, last), err
}

// parent opens the directory of the file name, and returns the last component, which may be missing
// or anything. create makes missing directories. Names that mean a directory are errNotRegular.
func (r *root) parent(name string, create bool) (d *dir, last string, err error) {
	parts, err := r.parts(name)
	if err != nil {
		return nil, "", err
	}
	if n := len(parts); n > 0 && !meansDir(name) {
		d, err = r.walk(parts[:n-1], create)
		return d, parts[n-1], err
	}
	if d, err = r.walk(parts, false); err != nil {
		return nil, "", err
	}
	d.close()
	return nil, "", errNotRegular
}

// dir opens the directory that name means; create makes what is missing of it, the root included.
func (r *root) dir(name string, create bool) (*dir, error) {
	parts, err := r.parts(name)
	if err != nil {
		return nil, err
	}
	return r.walk(parts, create)
}

// linkError returns what is wrong with the link last in d: it leads out, or it is one.
func (r *root) linkError(d *dir, last string) error {
	target, err := r.walk(append(d.parts[:len(d.parts):len(d.parts)], last), false)
	if err == nil {
		target.close()
	}
	if err == errOutside {
		return err
	}
	return errLink
}

// parts takes name apart. A ".." takes the component before it away, as if there were no links.
func (r *root) parts(name string) ([]string, error) {
	if strings.IndexByte(name, 0) >= 0 || len(name) > maxName {
		return nil, errName
	}
	if !filepath.IsAbs(name) {
		return appendParts(nil, name)
	}
	clean := filepath.Clean(name)
	rel, ok := cutDir(clean, r.path)
	if !ok {
		// The caller may know the root by the name it has without links.
		if real, err := filepath.EvalSymlinks(r.path); err == nil {
			rel, ok = cutDir(clean, real)
		}
	}
	if !ok {
		return nil, errOutside
	}
	return appendParts(nil, rel)
}

// cutDir returns what leads from dir to path, both absolute and clean; ok is false outside of dir.
func cutDir(path, dir string) (rel string, ok bool) {
	if rel, ok = strings.CutPrefix(path, dir); !ok || rel == "" || dir == "/" {
		return rel, ok
	}
	return rel, rel[0] == '/'
}

// appendParts appends the components of rel to parts, and takes one away for each "..".
func appendParts(parts []string, rel string) ([]string, error) {
	for c := range strings.SplitSeq(rel, "/") {
		switch c {
		case "", ".":
		case "..":
			if len(parts) == 0 {
				return nil, errOutside
			}
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, c)
		}
	}
	return parts, nil
}

func meansDir(name string) bool {
	last := name[strings.LastIndexByte(name, '/')+1:]
	return last == "" || last == "." || last == ".."
}

func (r *root) walk(parts []string, create bool) (*dir, error) {
	for range maxLinks + 1 {
		d, err := r.base(create)
		if err != nil {
			return nil, err
		}
		if d, parts, err = r.descend(d, parts, create); d != nil || err != nil {
			return d, err
		}
	}
	return nil, unix.ELOOP
}

func (r *root) base(create bool) (*dir, error) {
	if r.outer == nil {
		if create {
			if err := os.MkdirAll(r.path, dirPerm); err != nil {
				return nil, err
			}
		}
		return openDir(unix.AT_FDCWD, r.path, r.path, 0)
	}
	d, err := r.outer.walk(r.inner, create)
	if err == nil {
		d.path, d.parts = r.path, nil
	}
	return d, err
}

// descend goes from d, which it takes over, along parts: to a directory, or parts after a link.
func (r *root) descend(d *dir, parts []string, create bool) (*dir, []string, error) {
	for i, name := range parts {
		sub, err := d.enter(name, create)
		if err == errLink {
			parts, err = r.follow(d, parts, i)
			d.close()
			return nil, parts, err
		}
		d.close()
		if err != nil {
			return nil, nil, err
		}
		d = sub
	}
	return d, parts, nil
}

// follow returns parts with the link at i, which is in d, replaced by its target.
func (r *root) follow(d *dir, parts []string, i int) ([]string, error) {
	target, err := d.readlink(parts[i])
	if err != nil {
		return nil, err
	}
	before, rest := parts[:i:i], parts[i+1:]
	if filepath.IsAbs(target) {
		before, err = r.parts(target)
	} else {
		before, err = appendParts(before, target)
	}
	if err != nil {
		return nil, err
	}
	return append(before[:len(before):len(before)], rest...), nil
}

// notThere reports whether nothing is there, in the root or, as far as may be known, outside.
func notThere(err error) bool {
	return err == errOutside || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}
