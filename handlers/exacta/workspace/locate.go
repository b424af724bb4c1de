package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trunkline/engine/projects/errcode"
	"trunkline/engine/projects/relpath"
)

// maxAscent is how many directories above its start the search for a root looks at (exacta §4.1).
const maxAscent = 32

// ascending are the markers that make a directory above the start the root (exacta §4.1).
var ascending = [...]string{".exacta", ".git", ".sln", ".csproj", "go.mod", "package.json", "Cargo.toml"}

// Locate returns the root of the project that path belongs to, and its markers (exacta §4.1, the
// checks from ".." to the root "/", in their order). path is absolute. home and tmp are the
// directories at which the search stops; empty ones are ignored. allowed are the directories that
// must contain the root; none permits all. It only reads.
func Locate(path, home, tmp string, allowed []string) (root string, markers []string, f *errcode.Fault) {
	name := filepath.Base(path)
	if slices.Contains(strings.Split(path, "/"), "..") {
		return "", nil, errcode.New("SEC-001", "traversal: path")
	}
	if !filepath.IsAbs(path) {
		return "", nil, errcode.New("FS-003", "relative: "+name, name)
	}
	start, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, faultOf(err, name)
	}
	st, err := os.Lstat(start)
	if err != nil {
		return "", nil, faultOf(err, name)
	}
	switch {
	case st.Mode().IsRegular():
		start = filepath.Dir(start)
	case !st.IsDir():
		return "", nil, errcode.New("FS-003", "neither a directory nor a regular file: "+name, name)
	}
	if _, err := os.ReadDir(start); err != nil {
		return "", nil, faultOf(err, name)
	}
	root, markers = search(start, canonicalPath(home), canonicalPath(tmp))
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a string) bool {
		return Within(root, canonicalPath(a))
	}) {
		return "", nil, errcode.New("FS-003", "not in allowed_roots: "+name, name)
	}
	if filepath.Dir(root) == root {
		return "", nil, errcode.New("FS-003", "the root of the file system", name)
	}
	return root, markers, nil
}

// Within reports whether path is dir or below it, component by component. Both are canonical.
func Within(path, dir string) bool {
	if dir == "" {
		return false
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// canonicalPath resolves the links of a path; one that does not exist stays as it is.
func canonicalPath(path string) string {
	if path == "" {
		return ""
	}
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return filepath.Clean(path)
}

// search returns start if it has a marker, else the nearest directory above that has one of
// ascending, else start.
func search(start, home, tmp string) (root string, markers []string) {
	markers = markersOf(start)
	if len(markers) > 0 {
		return start, markers
	}
	for dir, n := start, 0; n < maxAscent; n++ {
		up := filepath.Dir(dir)
		if dir == home || dir == tmp || up == dir || filepath.Dir(up) == up || up == home || up == tmp {
			break
		}
		dir = up
		found := markersOf(dir)
		if slices.ContainsFunc(found, func(m string) bool { return slices.Contains(ascending[:], m) }) {
			return dir, found
		}
	}
	return start, []string{}
}

// marker is a row of the table of markers: one name, and which entries of a directory give it.
type marker struct {
	name  string
	given func(name string, dir, file bool) bool
}

// named matches files with one of the names.
func named(names ...string) func(string, bool, bool) bool {
	return func(name string, _, file bool) bool { return file && slices.Contains(names, name) }
}

// ending matches files with one of the extensions.
func ending(exts ...string) func(string, bool, bool) bool {
	return func(name string, _, file bool) bool {
		return file && slices.ContainsFunc(exts, func(e string) bool { return strings.HasSuffix(name, e) })
	}
}

// table lists the markers in their fixed order (exacta §4.1).
func table() []marker {
	return []marker{
		{".exacta", func(name string, dir, _ bool) bool { return dir && name == ".exacta" }},
		{".sln", ending(".sln")},
		{".csproj", ending(".csproj", ".fsproj", ".vbproj")},
		{"go.mod", named("go.mod")},
		{"package.json", named("package.json")},
		{"Cargo.toml", named("Cargo.toml")},
		{"CMakeLists.txt", named("CMakeLists.txt")},
		{"Makefile", named("Makefile", "makefile", "GNUmakefile")},
		{"pyproject.toml", named("pyproject.toml")},
		{"pom.xml", named("pom.xml")},
		{"build.gradle", named("build.gradle", "build.gradle.kts")},
		{".git", func(name string, dir, file bool) bool { return (dir || file) && name == ".git" }},
	}
}

// markersOf returns the markers of a directory; one that cannot be read has none. Links, pipes and
// devices are no markers.
func markersOf(dir string) []string {
	out := []string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, m := range table() {
		if slices.ContainsFunc(entries, func(e os.DirEntry) bool {
			return m.given(e.Name(), e.IsDir(), e.Type().IsRegular())
		}) {
			out = append(out, m.name)
		}
	}
	return out
}

// checkPath checks the form of a rel path (exacta §4.16 rule 4, §4.17) and that no component is a
// folder that is never touched. It looks at no disk.
func checkPath(rel string) *errcode.Fault {
	if code, token := relpath.Check(rel); code != "" {
		shown := printable(rel)
		return errcode.New(code, token+": "+shown, shown)
	}
	for c := range strings.SplitSeq(rel, "/") {
		if reserved(c) {
			return errcode.New("SEC-002", "denied: "+rel, rel)
		}
	}
	return nil
}

// printable returns the front of a path without control characters.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return '?'
		}
		return r
	}, s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "")
	}
	return s
}

// reserved reports whether a component is never read or written, whatever the rules of a project
// (exacta §4.17). Case is ignored: some file systems do.
func reserved(c string) bool {
	for _, name := range [...]string{".exacta", ".git", ".hg", ".svn"} {
		if strings.EqualFold(c, name) {
			return true
		}
	}
	return false
}
