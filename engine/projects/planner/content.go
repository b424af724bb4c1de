package planner

import (
	"path"
	"strings"

	"trunkline/engine/projects/plan"
)

// content returns what a new file holds.
func (f *form) content(name string) []byte {
	if !f.filled {
		return []byte(defaultContent(name) + "\n")
	}
	if f.text != "" && !strings.HasSuffix(f.text, "\n") {
		return []byte(f.text + "\n")
	}
	return []byte(f.text)
}

// Extensions by the mark of their comments.
const (
	hashed  = " py sh yml yaml toml rb "
	slashed = " js mjs cjs ts tsx jsx c h cc cpp hpp cs rs java kt swift proto php "
)

// defaultContent returns the line of a new file whose content is not given.
func defaultContent(name string) string {
	ext := strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
	switch {
	case ext == "go":
		return "package " + packageName(path.Base(path.Dir(name)))
	case ext == "md":
		return "# " + strings.TrimSuffix(path.Base(name), path.Ext(name))
	case ext == "json":
		return "{}"
	case ext == "html":
		return "<!doctype html>"
	case has(hashed, ext):
		return "# " + name
	case has(slashed, ext):
		return "// " + name
	}
	return name
}

// packageName returns the package of a Go file in a directory.
func packageName(dir string) string {
	if s := plainWord(dir); s != "" {
		return s
	}
	return "main"
}

// plainWord returns the letters and digits of a word, in lower case.
func plainWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (letter(byte(r)) || digit(byte(r))) {
			return r
		}
		return -1
	}, strings.ToLower(s))
}

// dull are words that do not name a feature.
const dull = " a an the new to for of in on with and that this my our some feature support "

// goKeywords cannot name a package.
const goKeywords = " break case chan const continue default defer else fallthrough for func go goto" +
	" if import interface map package range return select struct switch type var "

// feature returns the words that name what the request adds, at most four.
func (r *request) feature() []string {
	var out []string
	for _, c := range r.clauses {
		if c = c.skip(filler); len(c) == 0 {
			continue // "Please," asks for nothing
		}
		for i := 1; i < len(c) && len(out) < 4; i++ {
			t := &c[i]
			if t.kind != word && t.kind != symbol {
				continue
			}
			if w := plainWord(t.value); w != "" && !has(dull, w) {
				out = append(out, w)
			}
		}
		break
	}
	if len(out) == 0 {
		return []string{"feature"}
	}
	if digit(out[0][0]) {
		out[0] = "f" + out[0]
	}
	return out
}

// maxFeatureWord is how much of a word names a file.
const maxFeatureWord = 40

// addFeature appends the file of a feature that the request describes without an edit.
func (d *draft) addFeature(r *request) {
	words := r.feature()
	for i, w := range words {
		words[i] = w[:min(len(w), maxFeatureWord)]
	}
	joined, title := strings.Join(words, ""), ""
	for _, w := range words {
		title += strings.ToUpper(w[:1]) + w[1:]
	}
	var name, content string
	switch d.config.Toolchain {
	case "go":
		pkg := joined
		if has(goKeywords, pkg) {
			pkg = "f" + pkg
		}
		name = "internal/" + joined + "/" + joined + ".go"
		content = "// Package " + pkg + " holds the feature: " + strings.Join(words, " ") + ".\npackage " + pkg +
			"\n\n// Enabled reports whether the feature is on.\nfunc Enabled() bool { return true }\n"
	case "npm":
		name = "src/" + strings.Join(words, "-") + ".js"
		content = "// " + strings.Join(words, " ") + "\nfunction enabled() {\n  return true;\n}\n" +
			"\nmodule.exports = { enabled };\n"
	case "cargo":
		name = "src/" + strings.Join(words, "_") + ".rs"
		content = "//! " + strings.Join(words, " ") + "\n\n/// Reports whether the feature is on.\n" +
			"pub fn enabled() -> bool {\n    true\n}\n"
	case "dotnet":
		name = title + ".cs"
		content = "/// <summary>" + strings.Join(words, " ") + "</summary>\npublic static class " + title +
			"\n{\n    public static bool Enabled() => true;\n}\n"
	default:
		name = "docs/" + strings.Join(words, "-") + ".md"
		content = "# " + strings.Join(words, " ") + "\n"
	}
	d.put(Step{Type: plan.FileCreate, Target: name, Description: "Create " + name, New: []byte(content)})
}
