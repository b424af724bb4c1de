package planner

import (
	"strings"

	"trunkline/engine/projects/errcode"
)

// action is what a form does (exacta §4.19).
type action uint8

const (
	insertText action = iota
	appendText
	prependText
	replaceText
	removeLines
	deleteFile
	createFile
	newProject
	runBuild
)

// form is a clause that asks for a concrete edit.
type form struct {
	do     action
	paths  []string // of a delete or create; else one, or none
	text   string   // what is inserted, replaced, looked for, or the content of a new file
	filled bool     // of a create: text is its content
	anchor string   // of an insert: what the line of the place contains
	after  bool     // of an insert: behind that line
	with   string   // of a replace
	clause clause   // of a project or build
}

// Lists of words (exacta §4.19).
const (
	links = " the file a an end of start top bottom beginning my our this to in into inside "
	bound = " to in into inside for of from at on onto within by " // what is behind them is no target
	nouns = " project app application module solution workspace program "
	known = " the this that my our your its existing " // they speak of a project that is there
	// buildWords are all that a clause may have besides its verb to be a build.
	buildWords = " project app application it everything all solution program release debug" +
		" installer msi nsis package binary binaries artifact artifacts module a an the this my our" +
		" in for mode configuration with now again and run code source target production version" +
		" build "
)

// Verbs of the forms.
const (
	insertVerbs  = " insert add put "
	appendVerbs  = " append add write put "
	prependVerbs = " prepend "
	replaceVerbs = " replace change rename update fix correct swap "
	removeVerbs  = " remove delete drop "
	createVerbs  = " create add write new generate "
	projectVerbs = " create new init initialize scaffold bootstrap "
	buildVerbs   = " build compile package bundle publish release rebuild "
)

// intent returns the type that a request with the form has.
func (a action) intent() string {
	switch a {
	case insertText, appendText, prependText, createFile:
		return addFeature
	case newProject:
		return createProject
	case runBuild:
		return buildPackage
	}
	return fixBug
}

// match returns the first form of the table that the clause has. The fault is that of an unsafe
// path in the place of a target.
func match(c clause) (f form, ok bool, unsafe *errcode.Fault) {
	c = c.skip(filler)
	if len(c) == 0 || c[0].kind != word {
		return f, false, nil
	}
	v, rest := &c[0], c[1:]
	for _, try := range []func(*token, clause) (form, int){
		matchInsert, matchAppend, matchReplace, matchRemove,
	} {
		f, at := try(v, rest)
		if at < 0 {
			continue
		}
		if rest[at].kind != pathKind {
			return f, false, unsafePath(rest[at].value)
		}
		f.paths = []string{rest[at].value}
		return f, true, nil
	}
	if f, ok, unsafe = matchFiles(v, rest); ok || unsafe != nil {
		return f, ok, unsafe
	}
	switch {
	case v.in(projectVerbs) && rest.newProject(v):
		return form{do: newProject, clause: c}, true, nil
	case v.in(buildVerbs) && rest.only(buildWords):
		return form{do: runBuild, clause: c}, true, nil
	}
	return f, false, nil
}

// unsafePath is the fault of a path that must not be a target.
func unsafePath(v string) *errcode.Fault {
	if climbs(v) {
		return errcode.New("SEC-001", "traversal: "+v)
	}
	return errcode.New("FS-003", "absolute: "+v, v)
}

// target returns the place of a path, safe or not, behind the first word of a list at or behind i
// that leads to one, -1 if there is none.
func (c clause) target(i int, list string) int {
	for i = c.findWord(i, list); i >= 0; i = c.findWord(i, list) {
		end := c.behindLinks(i + 1)
		if end < len(c) && c[end].isPath() {
			return end
		}
		// Words between are links and may be of the list, but lead to the same place.
		i = max(i+1, end)
	}
	return -1
}

// behindLinks returns the first place at or behind i that is no link.
func (c clause) behindLinks(i int) int {
	for i < len(c) && c[i].in(links) {
		i++
	}
	return i
}

// isPath reports whether a token stands where a path does.
func (t *token) isPath() bool { return t.kind == pathKind || t.kind == unsafe }

// matchInsert: … Q1 … before|after … Q2 LINK* P.
func matchInsert(v *token, c clause) (f form, at int) {
	if !v.in(insertVerbs) {
		return f, -1
	}
	text := c.find(0, quoted)
	place := c.findWord(text, " before after ")
	for anchor := c.find(place, quoted); anchor >= 0; anchor = c.find(anchor+1, quoted) {
		if end := c.behindLinks(anchor + 1); end < len(c) && c[end].isPath() {
			f = form{do: insertText, text: c[text].value, anchor: c[anchor].value}
			f.after = c[place].is("after")
			return f, end
		}
	}
	return f, -1
}

// matchAppend: … Q … to LINK* P, of append and of prepend.
func matchAppend(v *token, c clause) (f form, at int) {
	switch {
	case v.in(appendVerbs):
		f.do = appendText
	case v.in(prependVerbs):
		f.do = prependText
	default:
		return f, -1
	}
	text := c.find(0, quoted)
	if at = c.target(text, " to "); at >= 0 {
		f.text = c[text].value
	}
	return f, at
}

// matchReplace: … Q1 … with|to|by … Q2 … in LINK* P.
func matchReplace(v *token, c clause) (f form, at int) {
	if !v.in(replaceVerbs) {
		return f, -1
	}
	text := c.find(0, quoted)
	with := c.find(c.findWord(text, " with to by "), quoted)
	if at = c.target(with, " in "); at >= 0 {
		f = form{do: replaceText, text: c[text].value, with: c[with].value}
	}
	return f, at
}

// matchRemove: … Q … from|in LINK* P.
func matchRemove(v *token, c clause) (f form, at int) {
	if !v.in(removeVerbs) {
		return f, -1
	}
	text := c.find(0, quoted)
	if at = c.target(text, " from in "); at >= 0 {
		f = form{do: removeLines, text: c[text].value}
	}
	return f, at
}

// matchFiles matches what deletes and creates whole files: their free paths.
func matchFiles(v *token, c clause) (f form, ok bool, bad *errcode.Fault) {
	text := c.find(0, quoted)
	switch {
	case v.in(removeVerbs) && text < 0:
		f.do = deleteFile
	case v.in(createVerbs):
		f.do = createFile
	default:
		return f, false, nil
	}
	seen := map[string]bool{}
	for i := range c {
		t := &c[i]
		if !t.isPath() || i > 0 && c[i-1].in(bound) || seen[t.value] {
			continue
		}
		if t.kind == unsafe {
			if f.do == deleteFile || climbs(t.value) || knownExtension(t.value) {
				return f, false, unsafePath(t.value)
			}
			continue // a word, such as a route of a web server
		}
		seen[t.value] = true
		f.paths = append(f.paths, t.value)
	}
	if text >= 0 && len(f.paths) == 1 {
		f.text, f.filled = c[text].value, true
	}
	return f, len(f.paths) > 0 && (text < 0 || len(f.paths) == 1), nil
}

// newProject reports whether the clause behind the verb speaks of a project that is not there.
func (c clause) newProject(v *token) bool {
	return c.find(0, pathKind) < 0 && c.find(0, unsafe) < 0 && c.unknownProject(v)
}

// unknownProject reports whether the clause has a noun of projects that is not of a known one.
func (c clause) unknownProject(v *token) bool {
	for i := range c {
		there := i > 0 && c[i-1].in(known) && v.in(" create new ")
		if c[i].in(nouns) && !there {
			return true
		}
	}
	return false
}

// only reports whether the clause has words of a list only.
func (c clause) only(list string) bool {
	for i := range c {
		if !c[i].in(list) {
			return false
		}
	}
	return true
}

// nameRuntimes makes words of two names of templates that have the form of a file: node.js, and a
// makefile directly before a noun. It does so where a new project is asked for and the index has
// no such file.
func (x *lexer) nameRuntimes(c clause) {
	c = c.skip(filler)
	if len(c) == 0 || !c[0].in(projectVerbs) || !c[1:].unknownProject(&c[0]) {
		return
	}
	for i := range c {
		t := &c[i]
		if t.kind != pathKind || x.indexed(t.value) {
			continue
		}
		low := strings.ToLower(t.value)
		if low == "node.js" || low == "makefile" && i+1 < len(c) && c[i+1].in(nouns) {
			t.kind, t.low = word, low
		}
	}
}
