package planner

import (
	"path"
	"sort"
	"strings"
)

// kind is what a token is (exacta §4.19).
type kind uint8

const (
	word      kind = iota // W
	unsafe                // U: a path that leaves the project
	pathKind              // P: a file, there or not
	directory             // D
	symbol                // S
	quoted                // Q
	comma
	stop // the end of a clause
)

// token is one word, span or mark of a request.
type token struct {
	kind  kind
	value string // without quotes, slash at the end, parentheses
	typed string // as it stands in a description
	low   string // of a word: lower case, with plain apostrophes
}

// is reports whether t is the word w.
func (t *token) is(w string) bool { return t.kind == word && t.low == w }

// in reports whether t is a word of a list.
func (t *token) in(list string) bool { return t.kind == word && has(list, t.low) }

// isSymbol reports whether t names something in code.
func (t *token) isSymbol() bool { return t.kind == symbol || t.kind == word && camel(t.value) }

// has reports whether a list, words with one space on both sides of each, has a word.
func has(list, w string) bool {
	return w != "" && len(w) < len(list) && strings.Contains(list, " "+w+" ")
}

// Names of files without an extension, and extensions (K), that make a word a path.
const (
	plainNames = " Makefile makefile GNUmakefile Dockerfile LICENSE README CHANGELOG" +
		" .gitignore .editorconfig "
	extensions = " go mod sum js mjs cjs ts tsx jsx json md txt c h cc cpp hpp cs csproj fsproj sln" +
		" rs py java kt rb php html css scss xml xaml yaml yml toml sh bat ps1 sql proto ini cfg conf" +
		" env lock svelte vue swift gradle csv "
)

// lexer makes tokens.
type lexer struct{ files []string }

func newLexer(t Tree) *lexer { return &lexer{t.Files()} }

// indexed reports whether the index has a file.
func (x *lexer) indexed(name string) bool {
	i := sort.SearchStrings(x.files, name)
	return i < len(x.files) && x.files[i] == name
}

// isDir reports whether the index has a file below a path.
func (x *lexer) isDir(path string) bool {
	path += "/"
	i := sort.SearchStrings(x.files, path)
	return i < len(x.files) && strings.HasPrefix(x.files[i], path)
}

// classify returns the token of a value that is not between double quotes.
func (x *lexer) classify(v string) token {
	t := token{kind: word, value: v, typed: v}
	switch {
	case isUnsafe(v):
		t.kind = unsafe
	case !pathForm(v):
	case x.indexed(v), !strings.HasSuffix(v, "/") && namesFile(v):
		t.kind = pathKind
	case strings.Contains(v, "/"):
		if dir := strings.TrimSuffix(v, "/"); dir != v || x.isDir(dir) {
			t.kind, t.value = directory, dir
		}
	}
	if t.kind == word {
		t.low = strings.ReplaceAll(strings.ToLower(v), "’", "'")
	}
	return t
}

// isUnsafe reports whether a value is a path that may leave the project.
func isUnsafe(v string) bool {
	if len(v) < 2 {
		return false
	}
	drive := len(v) > 2 && v[1] == ':' && letter(v[0]) && v[2] == '/'
	return drive || v[0] == '/' || strings.HasPrefix(v, "~/") || strings.Contains(v, `\`) || climbs(v)
}

// climbs reports whether a path has a component "..".
func climbs(v string) bool {
	for v != "" {
		i := strings.IndexAny(v, `/\`)
		if i < 0 {
			i = len(v)
		}
		if v[:i] == ".." {
			return true
		}
		v = v[min(i+1, len(v)):]
	}
	return false
}

// pathForm reports whether a value has the characters and the components of a relative path.
func pathForm(v string) bool {
	v = strings.TrimSuffix(v, "/")
	start := 0
	for i := 0; i <= len(v); i++ {
		if i < len(v) && v[i] != '/' {
			if !letter(v[i]) && !digit(v[i]) && strings.IndexByte("_.@+-", v[i]) < 0 {
				return false
			}
			continue
		}
		if part := v[start:i]; part == "" || part == "." || part == ".." {
			return false
		}
		start = i + 1
	}
	return true
}

// namesFile reports whether the last component of a path is that of a file.
func namesFile(v string) bool {
	return has(plainNames, path.Base(v)) || knownExtension(v)
}

// knownExtension reports whether the extension of a path is in K.
func knownExtension(v string) bool {
	return has(extensions, strings.ToLower(strings.TrimPrefix(path.Ext(v), ".")))
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// identifier reports whether v is a name of code.
func identifier(v string) bool {
	for i := range len(v) {
		if c := v[i]; !letter(c) && c != '_' && (i == 0 || !digit(c)) {
			return false
		}
	}
	return v != ""
}

// camel reports whether a word has the form of a name of code: UserService, userName.
func camel(v string) bool {
	if v == "" || !letter(v[0]) {
		return false
	}
	upper := func(c byte) bool { return c >= 'A' && c <= 'Z' }
	small := func(c byte) bool { return digit(c) || c >= 'a' && c <= 'z' }
	i := 1
	for i < len(v) && small(v[i]) {
		i++
	}
	if upper(v[0]) && i == 1 || i == len(v) || !upper(v[i]) {
		return false
	}
	for ; i < len(v); i++ {
		if !letter(v[i]) && !digit(v[i]) {
			return false
		}
	}
	return true
}
