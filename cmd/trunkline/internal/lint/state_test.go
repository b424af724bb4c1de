package lint

import (
	"go/ast"
	"go/token"
	"testing"
)

// stateRooms are the rooms of which two must be able to run in one process: no package variable
// there may change.
var stateRooms = []string{"codec", "engine", "handlers"}

// sharedState lists package variables that may change, each with its reason.
var sharedState = map[string]string{
	"engine/cluster/node.timers":             ofLibrary,
	"engine/cluster/node.minElectionTimeout": ofLibrary,
	"engine/cluster/node.maxElectionTimeout": ofLibrary,
	"engine/cluster/node.minCampaignTimeout": ofLibrary,
	"engine/cluster/node.maxCampaignTimeout": ofLibrary,
	"engine/cluster/node.hbInterval":         ofLibrary,
	"engine/cluster/node.lostQuorumInterval": ofLibrary,
	"engine/cluster/node.lostQuorumCheck":    ofLibrary,
}

const ofLibrary = "variables of a library, the same for all servers of a process; they change while none runs"

// TestNoPackageState is a best effort without types: it finds package variables that are locks,
// atomics or pools, and ones that are assigned, counted or emptied outside their declaration.
func TestNoPackageState(t *testing.T) {
	r := repository(t)
	byDir := make(map[string][]goFile)
	for _, f := range r.files {
		if !f.test && !f.generated && anyUnder(f.dir, stateRooms) {
			byDir[f.dir] = append(byDir[f.dir], f)
		}
	}
	for dir, files := range byDir {
		for _, s := range findState(files) {
			if _, listed := sharedState[dir+"."+s.name]; !listed {
				t.Errorf("%s: package variable %s %s: two engines in one process would share it", r.at(s.file, s.node), s.name, s.what)
			}
		}
	}
}

// finding is one place where a package variable may change.
type finding struct {
	file goFile
	node ast.Node
	name string
	what string
}

// findState looks through the files of one package.
func findState(files []goFile) []finding {
	var out []finding
	vars := packageVars(files)
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if name, what := change(n, vars); what != "" {
				out = append(out, finding{f, n, name, what})
			}
			return true
		})
	}
	return out
}

// packageVars maps the names of the variables of one package to their declarations.
func packageVars(files []goFile) map[string]*ast.ValueSpec {
	vars := make(map[string]*ast.ValueSpec)
	for _, f := range files {
		for _, d := range f.ast.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				for _, n := range spec.Names {
					if n.Name != "_" {
						vars[n.Name] = spec
					}
				}
			}
		}
	}
	return vars
}

// change returns which package variable a node changes and how; "" if none.
func change(n ast.Node, vars map[string]*ast.ValueSpec) (name, what string) {
	switch n := n.(type) {
	case *ast.ValueSpec:
		if name, ok := lockOrPool(n, vars); ok {
			return name, "is a lock, an atomic or a pool"
		}
	case *ast.AssignStmt:
		for _, lhs := range n.Lhs {
			if name, ok := rootVar(lhs, vars); ok && n.Tok != token.DEFINE {
				return name, "is assigned"
			}
		}
	case *ast.IncDecStmt:
		if name, ok := rootVar(n.X, vars); ok {
			return name, "is counted"
		}
	case *ast.CallExpr:
		fn, ok := n.Fun.(*ast.Ident)
		if !ok || (fn.Name != "delete" && fn.Name != "clear") || len(n.Args) == 0 {
			return "", ""
		}
		if name, ok := rootVar(n.Args[0], vars); ok {
			return name, "is emptied"
		}
	}
	return "", ""
}

// lockOrPool finds package variables whose declared type or value is of package sync or atomic.
func lockOrPool(s *ast.ValueSpec, vars map[string]*ast.ValueSpec) (string, bool) {
	if len(s.Names) == 0 || vars[s.Names[0].Name] != s {
		return "", false
	}
	found := false
	look := func(e ast.Expr) {
		if u, ok := e.(*ast.UnaryExpr); ok {
			e = u.X
		}
		if c, ok := e.(*ast.CompositeLit); ok {
			e = c.Type
		}
		if i, ok := e.(*ast.IndexExpr); ok {
			e = i.X
		}
		if sel, ok := e.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				found = found || pkg.Name == "sync" || pkg.Name == "atomic"
			}
		}
	}
	look(s.Type)
	for _, v := range s.Values {
		look(v)
	}
	return s.Names[0].Name, found
}

// rootVar returns the package variable that an expression like v, v[i] or v.f writes to.
func rootVar(e ast.Expr, vars map[string]*ast.ValueSpec) (string, bool) {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			spec, ok := vars[x.Name]
			// The parser resolves names within a file: an object declared elsewhere means a local
			// of the same name.
			return x.Name, ok && (x.Obj == nil || x.Obj.Decl == spec)
		default:
			return "", false
		}
	}
}
