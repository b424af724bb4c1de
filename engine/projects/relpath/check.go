// Package relpath is what may be a path inside a project (exacta §4.16 rule 4, §4.17): the form
// of a path, and the rules that protect places. It looks at text only. Symbolic links and kinds
// of files are found by who opens the path.
//
// Rules of one path, the first that fits decides:
//
//	unsafe (Check)                                             denied
//	.exacta .git .hg .svn at any depth                         denied, in any case of letters
//	file_rules.deny of the configuration                       denied
//	file_rules.allow of the configuration                      allowed
//	directories .vs node_modules bin obj at any depth,
//	packages/ at the root of a .NET project                    denied
//	files .env .env.* *.pfx *.p12 *.key *.pem *.ppk            denied, in any case of letters
//	everything else                                            allowed
//
// Globs are relative to the root: * stays within one component, ** crosses them, a leading **/
// is any depth, and a trailing / is a directory with everything under it. Everything else is
// literal. A match takes time in proportion to path × glob, whatever either holds: the
// configuration of a project is not trusted.
package relpath

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a path (exacta §4.16 rule 4).
const (
	MaxBytes      = 1024
	MaxComponents = 20
)

// Tokens of the rules that Check applies (exacta §4.16 rule 4).
const (
	Traversal = "traversal" // with SEC-001
	Absolute  = "absolute"  // with FS-003
	Form      = "path_form" // with VAL-003
)

// Check tests whether path is safe as the target of an edit. It returns the code of the error and
// the token of the rule, both empty if the path is safe (exacta §4.16 rule 4). It does not
// allocate.
func Check(path string) (code, token string) {
	switch {
	case climbs(path):
		return "SEC-001", Traversal
	case path != "" && path[0] == '/', strings.IndexByte(path, '\\') >= 0, hasDrive(path):
		return "FS-003", Absolute
	case !wellFormed(path):
		return "VAL-003", Form
	}
	return "", ""
}

// Valid reports whether Check accepts path.
func Valid(path string) bool {
	code, _ := Check(path)
	return code == ""
}

// climbs reports whether a component is "..", whichever separator of a platform it stands between.
func climbs(path string) bool {
	for rest := path; ; {
		end := strings.IndexAny(rest, `/\`)
		if end < 0 {
			return rest == ".."
		}
		if rest[:end] == ".." {
			return true
		}
		rest = rest[end+1:]
	}
}

func hasDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && ('a' <= path[0]|0x20 && path[0]|0x20 <= 'z')
}

// wellFormed reports whether path is short, is text without control characters, and has no empty
// and no "." component.
func wellFormed(path string) bool {
	if len(path) > MaxBytes || !utf8.ValidString(path) || strings.IndexFunc(path, unicode.IsControl) >= 0 {
		return false
	}
	for n := 1; ; n++ {
		component, rest, more := strings.Cut(path, "/")
		if component == "" || component == "." || n > MaxComponents {
			return false
		}
		if !more {
			return true
		}
		path = rest
	}
}

// Rules are the protected places of one project. Methods do not change them; any number of
// goroutines may call them.
type Rules struct {
	deny, allow []glob
	dotnet      bool
}

// NewRules returns the rules of a project: the globs of file_rules in its configuration, and
// whether it has a .sln or .csproj marker (exacta §4.17).
func NewRules(deny, allow []string, dotnet bool) *Rules {
	return &Rules{deny: compile(deny), allow: compile(allow), dotnet: dotnet}
}

// Denied reports whether path is protected. dir states that it is a directory; its content may
// still be allowed by a rule, see Prune. An unsafe path is denied (exacta §4.17).
func (r *Rules) Denied(path string, dir bool) bool {
	switch {
	case !Valid(path), inStore(path), anyMatches(r.deny, path, dir):
		return true
	case anyMatches(r.allow, path, dir):
		return false
	}
	return r.inDefault(path, dir)
}

// Prune reports whether a walk may leave out everything under the directory dir: each path under
// it is denied. It is false where a rule may allow a path.
func (r *Rules) Prune(dir string) bool {
	if !Valid(dir) || inStore(dir) {
		return true
	}
	for i := range r.deny {
		if r.deny[i].dir && r.deny[i].matches(dir, true) {
			return true
		}
	}
	return len(r.allow) == 0 && r.inDefault(dir+"/x", false)
}

// inStore reports whether a component is a store of the project's history, which is protected
// always. Letters are compared in any case: file systems that do so would open the same place.
func inStore(path string) bool {
	for more := true; more; {
		var component string
		component, path, more = strings.Cut(path, "/")
		for _, name := range [...]string{".exacta", ".git", ".hg", ".svn"} {
			if strings.EqualFold(component, name) {
				return true
			}
		}
	}
	return false
}

// inDefault reports whether the rules that every project has protect path.
func (r *Rules) inDefault(path string, dir bool) bool {
	for first := true; ; first = false {
		component, rest, more := strings.Cut(path, "/")
		if !more && !dir {
			return isKeyFile(component)
		}
		switch component {
		case ".vs", "node_modules", "bin", "obj":
			return true
		case "packages":
			if first && r.dotnet {
				return true
			}
		}
		if !more {
			return false
		}
		path = rest
	}
}

// isKeyFile reports whether files of this name hold keys or passwords.
func isKeyFile(name string) bool {
	if len(name) >= len(".env") && strings.EqualFold(name[:len(".env")], ".env") &&
		(len(name) == len(".env") || name[len(".env")] == '.') {
		return true
	}
	for _, end := range [...]string{".pfx", ".p12", ".key", ".pem", ".ppk"} {
		if len(name) >= len(end) && strings.EqualFold(name[len(name)-len(end):], end) {
			return true
		}
	}
	return false
}
