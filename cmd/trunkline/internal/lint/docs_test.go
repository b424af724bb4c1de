package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	said := make(map[string]bool)
	for _, f := range repository(t).files {
		said[f.dir] = said[f.dir] || (f.ast.Doc != nil && strings.TrimSpace(f.ast.Doc.Text()) != "")
	}
	for dir, ok := range said {
		if !ok {
			t.Errorf("%s: no file has a package comment; doc.go is where a reader starts", dir)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	r := repository(t)
	for _, f := range r.files {
		if f.test || f.generated {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%s: %s has no doc comment: meaning, units, lifetime, lock, allocation", r.at(f, d), name)
			}
		}
	}
}

// undocumented lists the exported names of one declaration that neither they nor their group
// explain.
func undocumented(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc != nil && d.Tok != token.TYPE {
			return nil
		}
		return undocumentedSpecs(d)
	}
	return nil
}

func undocumentedSpecs(d *ast.GenDecl) []string {
	var names []string
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && d.Doc == nil {
				names = append(names, s.Name.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && s.Doc == nil && s.Comment == nil {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	exported := false
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = id.IsExported()
			return false
		}
		return true
	})
	return exported
}

var (
	fence    = regexp.MustCompile("(?ms)^```.*?^```")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6}\s+(.+?)\s*$`)
	notInID  = regexp.MustCompile(`[^\p{L}\p{N} _-]+`)
	isRemote = regexp.MustCompile(`^[a-z]+:`)
)

// TestDocsLinks checks that every link between our pages leads somewhere, headings included.
func TestDocsLinks(t *testing.T) {
	r := repository(t)
	for page, text := range r.texts {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		prose := code.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			if why := deadLink(r, page, m[1]); why != "" {
				t.Errorf("%s links to %s: %s", page, m[1], why)
			}
		}
	}
}

// TestDocsBeginWithTheirTitle checks that the first line of every page is its heading.
func TestDocsBeginWithTheirTitle(t *testing.T) {
	for page, text := range repository(t).texts {
		if strings.HasSuffix(page, ".md") && !strings.HasPrefix(text, "# ") {
			first, _, _ := strings.Cut(text, "\n")
			t.Errorf("%s begins with %q instead of its title", page, first)
		}
	}
}

// TestPagesAtTheTop: the test that runs what pages show names those at the top one by one.
func TestPagesAtTheTop(t *testing.T) {
	r := repository(t)
	for page := range r.texts {
		if !strings.Contains(page, "/") && strings.HasSuffix(page, ".md") && !strings.Contains(r.texts["cmd/trunkline/pages_parse_test.go"], `"`+page+`"`) {
			t.Errorf("cmd/trunkline/pages_parse_test.go does not name %s", page)
		}
	}
}

func deadLink(r *repo, page, target string) string {
	if isRemote.MatchString(target) {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	to := page
	if file != "" {
		to = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
		if _, err := os.Stat(filepath.Join(r.root, to)); err != nil {
			return "no such file"
		}
	}
	if anchor == "" || !strings.HasSuffix(to, ".md") {
		return ""
	}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(r.texts[to], ""), -1) {
		id := strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")
		if id == anchor {
			return ""
		}
	}
	return "no such heading"
}

// TestWhatTheToursLeaveIsIgnored: commands of the documentation that are run in a clone leave
// nothing that git would show, such as the folder into which FILE.WRITE writes.
func TestWhatTheToursLeaveIsIgnored(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(repository(t).root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/bin/", "trunkline-data/", "/work/"} {
		if !slices.Contains(strings.Split(string(data), "\n"), want) {
			t.Errorf("%s is not ignored", want)
		}
	}
}
