package relpath

import "strings"

// Kinds of the parts of a glob.
const (
	exactly = iota // one byte
	within         // any bytes of one component: *
	across         // any bytes: **
	above          // any number of whole components, none included: **/ at the start of a component
)

// part is one step of a glob.
type part struct {
	kind uint8
	byte byte
}

// glob is one compiled pattern.
type glob struct {
	parts []part
	dir   bool // it ended with /: it matches a directory and everything under it
}

// compile compiles the patterns in their order. A pattern without parts is left out: it matches
// nothing.
func compile(patterns []string) []glob {
	var out []glob
	for _, p := range patterns {
		p = strings.TrimPrefix(p, "/")
		trimmed := strings.TrimSuffix(p, "/")
		g := glob{parts: split(trimmed), dir: len(trimmed) < len(p)}
		if len(g.parts) > 0 {
			out = append(out, g)
		}
	}
	return out
}

func split(p string) []part {
	parts := make([]part, 0, len(p))
	for i := 0; i < len(p); {
		start := i == 0 || p[i-1] == '/'
		switch {
		case start && strings.HasPrefix(p[i:], "**/"):
			parts = append(parts, part{kind: above})
			i += len("**/")
		case strings.HasPrefix(p[i:], "**"):
			parts = append(parts, part{kind: across})
			i += len("**")
		case p[i] == '*':
			parts = append(parts, part{kind: within})
			i++
		default:
			parts = append(parts, part{kind: exactly, byte: p[i]})
			i++
		}
	}
	return parts
}

func anyMatches(globs []glob, path string, dir bool) bool {
	for i := range globs {
		if globs[i].matches(path, dir) {
			return true
		}
	}
	return false
}

// matches reports whether the glob fits path. It moves the set of all parts that the bytes so far
// can have reached, so no pattern makes it go back.
func (g *glob) matches(path string, dir bool) bool {
	var space [128]bool
	reached := space[:]
	if len(g.parts) >= len(space) {
		reached = make([]bool, len(g.parts)+1)
	}
	reached = reached[:len(g.parts)+1]
	reached[0] = true
	g.skip(reached, true)
	for i := 0; i < len(path); i++ {
		if g.dir && path[i] == '/' && reached[len(g.parts)] {
			return true
		}
		if !g.step(reached, path[i]) {
			return false
		}
		g.skip(reached, path[i] == '/')
	}
	return reached[len(g.parts)] && (dir || !g.dir)
}

// step moves the set over one byte. It reports whether anything is still reached.
func (g *glob) step(reached []bool, c byte) bool {
	alive, entered := false, false // entered: the part before led to this one
	for i, p := range g.parts {
		from := reached[i]
		stays := from && (p.kind == above || p.kind == across || p.kind == within && c != '/')
		reached[i] = stays || entered
		alive = alive || reached[i]
		entered = from && p.kind == exactly && p.byte == c
	}
	reached[len(g.parts)] = entered
	return alive || entered
}

// skip marks what is reached without a byte: what follows a part that may be empty. start states
// that a component starts here.
func (g *glob) skip(reached []bool, start bool) {
	for i, p := range g.parts {
		if reached[i] && (p.kind == within || p.kind == across || p.kind == above && start) {
			reached[i+1] = true
		}
	}
}
