package lint

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// Sizes of hand-written code, tests aside. Over warn is a line in the test's log, over max is a
// failure.
const (
	fileWarn, fileMax   = 400, 700
	funcWarn, funcMax   = 80, 120
	ifaceWarn, ifaceMax = 3, 5
	testRatioWarn       = 0.6
)

// longFuncs lists dispatch switches that may exceed funcMax: one case per message reads better in
// one place than in two.
var longFuncs = map[string]string{}

// wideInterfaces lists interfaces that may exceed ifaceMax.
var wideInterfaces = map[string]string{
	"engine/connection.Session": "the one seam between protocols and owners of connections; its six methods are the life of a connection in order",
}

func TestFileSizes(t *testing.T) {
	for _, f := range repository(t).files {
		if f.test || f.generated {
			continue
		}
		n := strings.Count(f.src, "\n")
		switch {
		case n > fileMax:
			t.Errorf("%s has %d lines, at most %d: split it by concern", f.path, n, fileMax)
		case n > fileWarn:
			t.Logf("warning: %s has %d lines, better at most %d", f.path, n, fileWarn)
		}
	}
}

func TestFunctionSizes(t *testing.T) {
	r := repository(t)
	for _, f := range r.files {
		if f.test || f.generated {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := r.lines(fn)
			_, listed := longFuncs[f.dir+"."+fn.Name.Name]
			switch {
			case n > funcMax && !listed:
				t.Errorf("%s: %s has %d lines, at most %d", r.at(f, fn), fn.Name.Name, n, funcMax)
			case n > funcWarn:
				t.Logf("warning: %s: %s has %d lines, better at most %d", r.at(f, fn), fn.Name.Name, n, funcWarn)
			}
		}
	}
}

func TestInterfaceSizes(t *testing.T) {
	r := repository(t)
	for _, f := range r.files {
		if f.generated {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			ts, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			it, ok := ts.Type.(*ast.InterfaceType)
			if !ok {
				return true
			}
			_, listed := wideInterfaces[f.dir+"."+ts.Name.Name]
			switch methods := it.Methods.NumFields(); {
			case methods > ifaceMax && !listed:
				t.Errorf("%s: interface %s has %d methods, at most %d: the larger the interface, the fewer can stand behind it",
					r.at(f, ts), ts.Name.Name, methods, ifaceMax)
			case methods > ifaceWarn:
				t.Logf("warning: %s: interface %s has %d methods, better at most %d", r.at(f, ts), ts.Name.Name, methods, ifaceWarn)
			}
			return true
		})
	}
}

// TestTestRatio warns where the tests of a room are short next to its source.
func TestTestRatio(t *testing.T) {
	src, tests := make(map[string]int), make(map[string]int)
	for _, f := range repository(t).files {
		switch n := strings.Count(f.src, "\n"); {
		case f.generated || path.Base(f.path) == "doc.go":
		case f.test:
			tests[f.dir] += n
		default:
			src[f.dir] += n
		}
	}
	for dir, n := range src {
		if ratio := float64(tests[dir]) / float64(n); ratio < testRatioWarn && n > 100 {
			t.Logf("warning: %s has %.2f test lines per source line, better at least %.1f", dir, ratio, testRatioWarn)
		}
	}
}
