package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkedPackage is a package of ours with its types. Its files are those of the repository.
type checkedPackage struct {
	Name, ImportPath, Dir, Export string
	GoFiles                       []string

	files []*ast.File
	types *types.Package
	info  *types.Info
}

// checker type-checks our packages from their parsed files. All others come from the export data
// that builds and tests have left in the cache: the flags are theirs, so nothing is compiled twice.
// go/packages would list without the profile and compile everything once more.
type checker struct {
	r       *repo
	asts    map[string]*ast.File
	listed  map[string]*checkedPackage
	library types.Importer
}

// checkTypes returns the packages of the repository, tests aside.
func checkTypes(r *repo) ([]*checkedPackage, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=Name,ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &checker{r: r, asts: make(map[string]*ast.File), listed: make(map[string]*checkedPackage)}
	for _, f := range r.files {
		c.asts[f.path] = f.ast
	}
	var own []*checkedPackage
	for d := json.NewDecoder(out); ; {
		p := new(checkedPackage)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		// Behind a blank is the program with whose profile it was compiled.
		if p.ImportPath, _, _ = strings.Cut(p.ImportPath, " "); c.listed[p.ImportPath] != nil {
			continue
		}
		if c.listed[p.ImportPath] = p; strings.HasPrefix(p.ImportPath, ours) {
			own = append(own, p)
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("cannot list packages: %w", err)
	}
	c.library = importer.ForCompiler(r.fset, "gc", func(path string) (io.ReadCloser, error) {
		p := c.listed[path]
		if p == nil || p.Export == "" {
			return nil, fmt.Errorf("cannot find export data of %s", path)
		}
		return os.Open(p.Export)
	})
	for _, p := range own {
		if _, err := c.Import(p.ImportPath); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// Import returns a package of ours as it was checked, and any other by its export data.
func (c *checker) Import(path string) (*types.Package, error) {
	p := c.listed[path]
	if p == nil || !strings.HasPrefix(path, ours) {
		return c.library.Import(path)
	}
	if p.types != nil {
		return p.types, nil
	}
	for _, name := range p.GoFiles {
		rel, err := filepath.Rel(c.r.root, filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		f := c.asts[filepath.ToSlash(rel)]
		if f == nil {
			return nil, fmt.Errorf("%s is no file of the repository", rel)
		}
		p.files = append(p.files, f)
	}
	p.info = &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object)}
	var err error
	p.types, err = (&types.Config{Importer: c}).Check(path, c.r.fset, p.files, p.info)
	return p.types, err
}
