package workspace

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// bundleDir is the folder of .exacta that bundles are written to.
const bundleDir = "diagnostics"

// Outputs is where bundles may be written, beside the storage of the project (exacta §4.15).
type Outputs struct {
	Name       string   // of a bundle whose place is a directory
	Home, Temp string   // empty ones are ignored
	Dirs       []string // diagnostics_dirs
}

// Place is where a bundle goes. Path is absolute.
type Place struct {
	Path string

	dir  string // resolved
	name string
}

// Place checks where a bundle is to go, in the order of exacta §4.15: SEC-001, FS-001, FS-003,
// CFG-003 for the name, FS-002 for a file that exists. It writes nothing.
func (p *Project) Place(output string, o *Outputs) (*Place, *errcode.Fault) {
	shown := printable(filepath.Base(output))
	if slices.Contains(strings.FieldsFunc(output, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return nil, errcode.New("SEC-001", "traversal: output_path")
	}
	own := p.bundles()
	path := output
	if !filepath.IsAbs(path) {
		path = filepath.Join(own, path)
	}
	at := &Place{Path: filepath.Clean(path)}
	if st, err := os.Stat(at.Path); err == nil && st.IsDir() || os.IsNotExist(err) && at.Path == own {
		at.Path = filepath.Join(at.Path, o.Name)
	}
	at.name = filepath.Base(at.Path)
	if f := p.resolve(at, shown); f != nil {
		return nil, f
	}
	if !Within(at.dir, own) && (Within(at.dir, p.root) || !slices.ContainsFunc(append([]string{o.Home, o.Temp}, o.Dirs...), func(d string) bool {
		d = canonicalPath(d)
		return d != "/" && Within(at.dir, d)
	})) {
		return nil, errcode.New("FS-003", "no place for bundles: "+shown, shown)
	}
	if !strings.HasSuffix(at.name, ".zip") {
		return nil, errcode.New("CFG-003", "output_path: a name that ends in .zip is expected", "output_path")
	}
	if _, err := os.Lstat(filepath.Join(at.dir, at.name)); err == nil {
		return nil, exists(shown)
	}
	return at, nil
}

func (p *Project) bundles() string { return filepath.Join(p.root, storeName, bundleDir) }

func exists(shown string) *errcode.Fault { return errcode.New("FS-002", "exists: "+shown, shown) }

// resolve finds the directory of a place: FS-001 if there is none. That of the storage need not
// exist yet.
func (p *Project) resolve(at *Place, shown string) *errcode.Fault {
	dir := filepath.Dir(at.Path)
	if Within(dir, filepath.Join(p.root, storeName)) {
		d, err := p.existingStore()
		if err == nil {
			d.close()
		} else if err != unix.ENOENT {
			return faultOf(err, storeName)
		}
	}
	var err error
	if at.dir, err = filepath.EvalSymlinks(dir); err != nil {
		if dir == p.bundles() && os.IsNotExist(err) {
			at.dir = dir
			return nil
		}
		return faultOf(err, shown)
	}
	if st, err := os.Stat(at.dir); err != nil || !st.IsDir() {
		return errcode.New("FS-001", "not_a_directory: "+shown, shown)
	}
	return nil
}

// WriteBundle writes a new file at a place, under a temporary name first (exacta §4.15). Nothing is
// left where stopped reports true right before the file gets its name; the fault is IPC-010 then.
func (p *Project) WriteBundle(at *Place, data []byte, stopped func() bool) *errcode.Fault {
	shown := printable(at.name)
	d, err := p.openPlace(at)
	if err != nil {
		return faultOf(err, shown)
	}
	defer d.close()
	tmp := ".exacta-" + rand.Text() + ".tmp"
	if err := d.place(tmp, data, 0o600, nil); err != nil {
		return faultOf(err, shown)
	}
	if stopped() {
		_ = d.remove(tmp)
		return errcode.New("IPC-010", "")
	}
	if err := d.renameNew(tmp, at.name); err != nil {
		_ = d.remove(tmp)
		if err == unix.EEXIST {
			return exists(shown)
		}
		return faultOf(err, shown)
	}
	return faultOf(d.sync(), shown)
}

// openPlace opens the directory of a place, through no link. That of the storage is made if it is
// missing.
func (p *Project) openPlace(at *Place) (dir, error) {
	if rest, own := strings.CutPrefix(at.dir, p.bundles()); own && (rest == "" || rest[0] == '/') {
		store, err := p.store()
		if err != nil {
			return store, err
		}
		defer store.close()
		d, err := store.sub(bundleDir)
		if err != nil {
			return d, err
		}
		defer d.close()
		return d.below(rest)
	}
	fd, err := unix.Open("/", searchOnly|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir{}, err
	}
	root := dir{fd, p.dir.disk}
	defer root.close()
	return root.below(at.dir)
}

// below opens a directory below d, of which those above it need not be readable.
func (d dir) below(path string) (dir, error) {
	at, err := d.search(".")
	for c := range strings.SplitSeq(path, "/") {
		if err != nil {
			return at, err
		}
		if c == "" {
			continue
		}
		var next dir
		next, err = at.search(c)
		at.close()
		at = next
	}
	if err != nil {
		return at, err
	}
	defer at.close()
	return at.open(".")
}

// search opens a directory to look names up in it.
func (d dir) search(name string) (dir, error) {
	fd, err := d.openat(name, searchOnly|unix.O_DIRECTORY, 0)
	return dir{fd, d.disk}, err
}
