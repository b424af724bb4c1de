package relpath

import "strings"

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
