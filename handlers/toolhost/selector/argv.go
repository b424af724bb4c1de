package selector

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trunkline/handlers/toolhost/procgroup"
)

// SplitCommand splits a command into its arguments at spaces and tabs, without a shell (toolhost §4.8): single quotes take everything
// as it is, in double quotes a backslash takes the next byte as it is, and elsewhere a backslash is a byte like any other. ok is false
// for quotes that do not end.
func SplitCommand(text string) (argv []string, ok bool) {
	var arg []byte
	inArg := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' || c == '"':
			if arg, i = appendQuoted(arg, text, i); i == len(text) {
				return nil, false
			}
			inArg = true
		case isSpace(rune(c)):
			if inArg {
				argv, arg, inArg = append(argv, string(arg)), arg[:0], false
			}
		default:
			arg, inArg = append(arg, c), true
		}
	}
	if inArg {
		argv = append(argv, string(arg))
	}
	return argv, true
}

// appendQuoted appends what the quote at text[i] encloses to arg. end is the offset of the closing quote, len(text) without one.
func appendQuoted(arg []byte, text string, i int) (out []byte, end int) {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return arg, i
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			arg = append(arg, text[i])
		default:
			arg = append(arg, c)
		}
	}
	return arg, len(text)
}

// refusal returns why the guards do not let the command run: the raw text of toolhost §4.8, or "".
// The file system is asked each time, because a link may have changed since.
func (p *Policy) refusal() string {
	if p.unsafe {
		return ""
	}
	name := strings.ToLower(p.argv[0][strings.LastIndexByte(p.argv[0], '/')+1:])
	if !slices.Contains(p.allowedExe, name) {
		return "policy exe not allowed: " + name
	}
	script := ""
	if len(p.argv) > 1 {
		script = p.argv[1]
	}
	if !isScript(script) || !inside(p.scriptRoot, p.abs(script)) {
		return "policy script path not allowed: " + script
	}
	return ""
}

func isScript(path string) bool {
	return slices.Contains([]string{".py", ".sh", ".js"}, filepath.Ext(path))
}

// abs returns a path as the policy process sees it, which works in root.
func (p *Policy) abs(path string) string { return absIn(p.root, path) }

func absIn(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// inside reports whether path is below root once no link is left in either. A file that is missing
// counts by its name: running it fails, and the failure is clearer than a refusal.
func inside(root, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if os.IsNotExist(err) {
		return below(root, path)
	}
	realRoot, rootErr := filepath.EvalSymlinks(root)
	return err == nil && rootErr == nil && below(realRoot, real)
}

func below(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != "." && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// executable returns the file to run: a path counts from root, a bare name is looked up in PATH.
func (p *Policy) executable() (string, error) {
	name := p.argv[0]
	if strings.Contains(name, "/") {
		name = p.abs(name)
	}
	return procgroup.Executable(name, p.env)
}
