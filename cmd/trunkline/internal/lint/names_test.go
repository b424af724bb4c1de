package lint

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// unusedNames lists names that no Go code of a program uses, each with its reason.
var unusedNames = map[string]string{
	"bench/internal/goal.Grid.Markdown": "bench/report, a module of its own, uses it",
	"bench/internal/load.StartCalls":    "bench/cluster and bench/peers, modules of their own, use it",
	"cmd/trunkline.becomes":             "called from the assembler file of the platform",
	"cmd/trunkline.entry":               "the Makefile makes it the entry of the program",
	"cmd/trunkline.ownEntry":            "a test finds out by it whether the program has that entry",
	"engine/idem.Table.Waiting":         "tests of the tool server wait until a caller waits",
	"engine/internal/poison.Byte":       "tests look for it in lent bytes of builds that poison them",
	"engine/internal/poison.On":         "tests ask whether the build poisons lent bytes",
	"engine/kernel.Kernel.Lenient":      "tests compare the recovery in lanes with that in one goroutine",
	"engine/store.Store.Digest":         "tests compare what two stores hold",
	"engine/stream.Gate.Lingering":      "tests wait until no connection lingers",

	"handlers/ipc/ipcclient.Conn.Done":                   "tests wait for the end of a connection",
	"handlers/ipc/ipcclient.Conn.RegisterCommandHandler": clients,
	"handlers/ipc/ipcclient.Conn.RegisterQueryHandler":   clients,
	"handlers/ipc/ipcclient.WaitInterrupt":               clients,
	"handlers/ipc/ipcclient.WithStreamBuffer":            clients,
	"handlers/ipc/message/generate.tables.Extensions":    templates,
	"handlers/ipc/message/generate.tables.Of":            templates,
	"handlers/ipc/message/generate.tables.Services":      templates,
}

// unsharedNames lists exported names that no other package uses, each with its reason.
var unsharedNames = map[string]string{
	"bench/internal/load.MeasureRunning":                 "bench/cluster, a module of its own, uses it",
	"bench/internal/load.Running":                        "bench/cluster, a module of its own, uses it",
	"bench/internal/goal.Grid.Markdown":                  "bench/report, a module of its own, uses it",
	"bench/internal/goal.Ratios":                         "bench/cluster, a module of its own, uses it",
	"bench/internal/load.Calls":                          "bench/cluster and bench/peers, modules of their own, use it",
	"bench/internal/load.StartCalls":                     "bench/cluster and bench/peers, modules of their own, use it",
	"cmd/trunkline/internal/journaltool.Journal":         "functions return it",
	"engine/bus.Bus.Subscribe":                           "tests and benchmarks of other rooms open plain subscriptions",
	"engine/kernel.Kernel.Lenient":                       "tests compare the recovery in lanes with that in one goroutine",
	"engine/kernel.Kernel.Latest":                        "the recovery of any state machine has it",
	"engine/orchestration.Engine.Recovering":             "the recovery of any state machine has it",
	"engine/stream.Gate.Rested":                          "the unexported name is that of a field",
	"handlers/ipc/ipcclient.CommandHandler":              clients,
	"handlers/ipc/ipcclient.Conn.RegisterCommandHandler": clients,
	"handlers/ipc/ipcclient.DefaultStreamBytes":          clients,
	"handlers/ipc/ipcclient.DefaultStreamMessages":       clients,
	"handlers/ipc/ipcclient.ErrClosed":                   clients,
	"handlers/ipc/ipcclient.ErrFrameTooLarge":            clients,
	"handlers/ipc/ipcclient.ErrStreamClosed":             clients,
	"handlers/ipc/ipcclient.WaitInterrupt":               clients,
	"handlers/ipc/message/generate.tables.Extensions":    templates,
	"handlers/ipc/message/generate.tables.Of":            templates,
	"handlers/ipc/message/generate.tables.Services":      templates,
}

const (
	clients   = "programs of this module may use the whole protocol by the client"
	templates = "called by the templates of generated files"
)

// TestEveryNameIsReached checks that main and init functions reach every declaration. What tests
// reach counts only in packages that no program imports.
func TestEveryNameIsReached(t *testing.T) {
	n := declaredNames(t)
	byPrograms, all := n.reach(nil), n.reach(unusedNames)
	for _, key := range slices.Sorted(maps.Keys(n.decls)) {
		if d := n.decls[key]; !all[key] && !d.generated {
			t.Errorf("%s: no program reaches %s: delete it or move it into a test file", d.pos, key)
		}
	}
	for key := range unusedNames {
		if n.decls[key] == nil || byPrograms[key] {
			t.Errorf("%s needs no row in unusedNames any more", key)
		}
	}
}

// TestExportedNamesAreShared checks that every exported name is used by another package, or is
// part of one that is.
func TestExportedNamesAreShared(t *testing.T) {
	n := declaredNames(t)
	shared := n.share()
	for _, key := range slices.Sorted(maps.Keys(n.decls)) {
		_, allowed := unsharedNames[key]
		if d := n.decls[key]; d.exported && !d.generated && !d.implements && !shared[key] && !allowed {
			t.Errorf("%s: no other package uses %s: unexport it", d.pos, key)
		}
	}
	for key := range unsharedNames {
		if n.decls[key] == nil {
			t.Errorf("%s needs no row in unsharedNames any more", key)
		}
	}
}

// declared is one function, method, type, variable or constant of a package.
type declared struct {
	pkg, pos            string
	exported, generated bool
	method              bool
	implements          bool     // a method that some interface has
	uses                []string // what its declaration mentions
	shape               []string // of these, what its signature or type mentions
	typ                 string   // of a constant, its type; of a method, its receiver
}

// names is what the repository declares, by package path and name: "engine/kernel.Kernel.Create".
type names struct {
	decls    map[string]*declared
	roots    []string            // main and init functions
	byTests  []string            // what test files mention of other packages
	users    map[string]bool     // names that another package mentions
	programs map[string]bool     // packages that a program imports
	imports  map[string][]string // of packages, tests aside
}

var namesOnce = sync.OnceValues(func() (*names, error) {
	r, err := loadOnce()
	if err != nil {
		return nil, err
	}
	return loadNames(r)
})

func declaredNames(t *testing.T) *names {
	t.Helper()
	skipWhenShort(t)
	n, err := namesOnce()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// reach returns the names that the roots reach, and some further names.
func (n *names) reach(further map[string]string) map[string]bool {
	from := slices.AppendSeq(slices.Clone(n.roots), maps.Keys(further))
	for _, key := range n.byTests {
		if d := n.decls[key]; d != nil && !n.programs[d.pkg] {
			from = append(from, key)
		}
	}
	methods := make(map[string][]string)
	for key, d := range n.decls {
		if d.implements {
			methods[d.typ] = append(methods[d.typ], key)
		}
	}
	reached := make(map[string]bool)
	for len(from) > 0 {
		key := from[len(from)-1]
		from = from[:len(from)-1]
		if d := n.decls[key]; d != nil && !reached[key] {
			reached[key] = true
			from = append(append(append(from, d.uses...), methods[key]...), d.typ)
		}
	}
	return reached
}

// share returns the exported names that other packages use, and those that are part of their shape:
// a type that a shared function returns, and all constants of a shared type.
func (n *names) share() map[string]bool {
	constants := make(map[string][]string)
	for key, d := range n.decls {
		if d.typ != "" && !strings.HasPrefix(key, d.typ+".") {
			constants[d.typ] = append(constants[d.typ], key)
		}
	}
	var from []string
	for key, d := range n.decls {
		if n.users[key] || d.exported && d.implements {
			from = append(from, key)
		}
	}
	shared := make(map[string]bool)
	for len(from) > 0 {
		key := from[len(from)-1]
		from = from[:len(from)-1]
		if d := n.decls[key]; d != nil && !shared[key] {
			shared[key] = true
			from = append(append(from, d.shape...), constants[key]...)
		}
	}
	return shared
}

func loadNames(r *repo) (*names, error) {
	loaded, err := checkTypes(r)
	if err != nil {
		return nil, err
	}
	n := &names{decls: make(map[string]*declared), users: make(map[string]bool),
		programs: make(map[string]bool), imports: make(map[string][]string)}
	for _, p := range loaded {
		for _, f := range p.files {
			n.addFile(r, p, f)
		}
	}
	n.findPrograms(loaded)
	n.findMethods(loaded)
	n.addTests(r)
	return n, nil
}

// addTests adds what test files mention. They are not type-checked, for that would compile every
// test: a selector counts for all methods of its name, but for those of the test's own package.
func (n *names) addTests(r *repo) {
	methods := make(map[string][]string)
	for key, d := range n.decls {
		if d.method {
			methods[key[strings.LastIndex(key, ".")+1:]] = append(methods[key[strings.LastIndex(key, ".")+1:]], key)
		}
	}
	for _, f := range r.files {
		if !f.test {
			continue
		}
		inside := !strings.HasSuffix(f.ast.Name.Name, "_test")
		imported := make(map[string]string)
		for _, imp := range f.ast.Imports {
			path, name := strings.Trim(imp.Path.Value, `"`), ""
			if name = path[strings.LastIndex(path, "/")+1:]; imp.Name != nil {
				name = imp.Name.Name
			}
			if strings.HasPrefix(path, ours) {
				imported[name] = folderOf(path)
			}
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			sel, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			keys := methods[sel.Sel.Name]
			if x, ok := sel.X.(*ast.Ident); ok && imported[x.Name] != "" {
				keys = []string{imported[x.Name] + "." + sel.Sel.Name}
			}
			for _, key := range keys {
				if d := n.decls[key]; d != nil && !(inside && d.pkg == f.dir) {
					n.users[key] = true
					n.byTests = append(n.byTests, key)
				}
			}
			return true
		})
	}
}

// folderOf returns the folder of a package of ours.
func folderOf(path string) string { return strings.TrimPrefix(path, ours) }

func (n *names) addFile(r *repo, p *checkedPackage, f *ast.File) {
	pkg := folderOf(p.ImportPath)
	for _, imp := range f.Imports {
		n.imports[pkg] = append(n.imports[pkg], strings.Trim(imp.Path.Value, `"`))
	}
	for _, d := range f.Decls {
		mentioned := n.mentioned(p, d)
		for _, key := range mentioned {
			if !strings.HasPrefix(key, pkg+".") {
				n.users[key] = true
			}
		}
		base := declared{pkg: pkg, generated: ast.IsGenerated(f)}
		add := func(id *ast.Ident, uses ...ast.Node) *declared {
			key := keyOf(p.info.Defs[id])
			if key == "" {
				return &base
			}
			one := base
			pos := r.fset.Position(id.Pos())
			one.pos, one.exported = pos.Filename+":"+itoa(pos.Line), id.IsExported()
			for _, u := range uses {
				one.uses = append(one.uses, n.mentioned(p, u)...)
			}
			n.decls[key] = &one
			return &one
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main" && p.Name == "main") {
				n.roots = append(n.roots, mentioned...)
				continue
			}
			one := add(d.Name, d)
			one.shape = n.mentioned(p, d.Type)
			if one.method = d.Recv != nil; one.method {
				if in := n.mentioned(p, d.Recv); len(in) > 0 {
					one.typ = in[0]
				}
			}
		case *ast.GenDecl:
			n.addSpecs(p, d, add)
		}
	}
}

func (n *names) addSpecs(p *checkedPackage, d *ast.GenDecl, add func(*ast.Ident, ...ast.Node) *declared) {
	var group []*declared // the constants of a declaration stand for each other: they number something
	var keys []string
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			one := add(s.Name, s)
			one.shape = one.uses
		case *ast.ValueSpec:
			for _, id := range s.Names {
				one := add(id, s)
				if s.Type != nil {
					one.shape = n.mentioned(p, s.Type)
				}
				if c, ok := p.info.Defs[id].(*types.Const); ok {
					if one.typ = keyOfType(c.Type()); numbers(d) {
						group, keys = append(group, one), append(keys, keyOf(c))
					}
				}
			}
		}
	}
	for _, one := range group {
		one.uses, one.shape = append(one.uses, keys...), append(one.shape, keys...)
	}
}

// numbers reports whether a declaration of constants uses iota.
func numbers(d *ast.GenDecl) (found bool) {
	ast.Inspect(d, func(node ast.Node) bool {
		id, ok := node.(*ast.Ident)
		found = found || ok && id.Name == "iota"
		return !found
	})
	return found
}

// mentioned returns the keys of what a node uses.
func (n *names) mentioned(p *checkedPackage, node ast.Node) (keys []string) {
	ast.Inspect(node, func(node ast.Node) bool {
		if id, ok := node.(*ast.Ident); ok {
			if key := keyOf(p.info.Uses[id]); key != "" {
				keys = append(keys, key)
			}
		}
		return true
	})
	return keys
}

// keyOf returns the key of a package-level name or method of ours, "" for everything else.
func keyOf(o types.Object) string {
	if o == nil || o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), ours) || o.Name() == "_" {
		return ""
	}
	if f, ok := o.(*types.Func); ok {
		if recv := f.Origin().Signature().Recv(); recv != nil {
			if in := keyOfType(recv.Type()); in != "" {
				return in + "." + f.Name()
			}
			return ""
		}
	}
	if o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return folderOf(o.Pkg().Path()) + "." + o.Name()
}

// keyOfType returns the key of a named type of ours, or of what a pointer points to.
func keyOfType(t types.Type) string {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return keyOf(named.Obj())
	}
	return ""
}

// findPrograms fills programs.
func (n *names) findPrograms(loaded []*checkedPackage) {
	var visit func(pkg string)
	visit = func(pkg string) {
		if !n.programs[pkg] {
			n.programs[pkg] = true
			for _, imp := range n.imports[pkg] {
				if strings.HasPrefix(imp, ours) {
					visit(folderOf(imp))
				}
			}
		}
	}
	for _, p := range loaded {
		if p.Name == "main" {
			visit(folderOf(p.ImportPath))
		}
	}
}

// findMethods marks the methods by which a type has all methods of some interface, by their names.
func (n *names) findMethods(loaded []*checkedPackage) {
	interfaces := map[string][]*types.Interface{}
	seen := make(map[*types.Package]bool)
	add := func(t types.Type) {
		if i, ok := t.Underlying().(*types.Interface); ok {
			for m := range i.Methods() {
				interfaces[m.Name()] = append(interfaces[m.Name()], i)
			}
		}
	}
	var visit func(p *types.Package)
	visit = func(p *types.Package) {
		if seen[p] {
			return
		}
		seen[p] = true
		for _, name := range p.Scope().Names() {
			if o, ok := p.Scope().Lookup(name).(*types.TypeName); ok {
				add(o.Type())
			}
		}
		for _, imp := range p.Imports() {
			visit(imp)
		}
	}
	for _, p := range loaded {
		visit(p.types)
		for _, tv := range p.info.Types {
			if tv.IsType() {
				add(tv.Type)
			}
		}
	}
	for _, p := range loaded {
		for _, o := range p.info.Defs {
			if t, ok := o.(*types.TypeName); ok && !t.IsAlias() && !types.IsInterface(t.Type()) {
				n.markMethods(types.NewMethodSet(types.NewPointer(t.Type())), interfaces)
			}
		}
	}
}

func (n *names) markMethods(set *types.MethodSet, interfaces map[string][]*types.Interface) {
	has := make(map[string]bool, set.Len())
	for m := range set.Methods() {
		has[m.Obj().Name()] = true
	}
	for m := range set.Methods() {
		d := n.decls[keyOf(m.Obj())]
		if d == nil || d.implements {
			continue
		}
		name := m.Obj().Name()
		d.implements = name == "Unwrap" || name == "Is" || name == "As" // package errors looks for them
		for _, i := range interfaces[name] {
			all := true
			for m := range i.Methods() {
				all = all && has[m.Name()]
			}
			d.implements = d.implements || all
		}
	}
}
