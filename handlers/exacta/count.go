package exacta

import (
	"bytes"
	"hash/maphash"
	"regexp"
	"sync"
)

// Bounds of what is kept of the output of a build.
const (
	maxLine  = 64 << 10 // bytes of a line that are looked at
	maxLines = 1 << 16  // different lines that are remembered
	tailSize = 4096     // exacta §4.13
)

// linePatterns are the patterns of lines (exacta §4.13). A match of the last three is a line by
// which a tool names a package that the project needs and does not have; a module by a path is no
// package.
type linePatterns struct {
	ansi, skipped, anError, aWarning, errorOfGo, errorOfJS, goMisses, npmMisses, cargoMisses *regexp.Regexp
}

// patterns are compiled for the first build.
var patterns = sync.OnceValue(func() *linePatterns {
	return &linePatterns{
		ansi:        regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]`),
		skipped:     regexp.MustCompile(`generated \d+ warnings?|could not compile|aborting due to|^For more information`),
		anError:     regexp.MustCompile(`(?i)\b(fatal error|error)\b ?(\[?[A-Z]{1,4}\d{1,5}\]?)?\s*:`),
		aWarning:    regexp.MustCompile(`(?i)\bwarning\b ?(\[?[A-Z]{1,4}\d{1,5}\]?)?\s*:`),
		errorOfGo:   regexp.MustCompile(`^[^:\s]+\.go:\d+(:\d+)?: `),
		errorOfJS:   regexp.MustCompile(`^(\w+)?Error: `),
		goMisses:    regexp.MustCompile(`: no required module provides package ([^\s;:]{1,200})(?:[;:]|$)`),
		npmMisses:   regexp.MustCompile(`^Error: Cannot find module '((?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-z0-9~-][a-z0-9._~-]{0,100})'$`),
		cargoMisses: regexp.MustCompile("^error: no matching package named `([A-Za-z0-9_-]{1,100})` found$"),
	}
})

// counter counts errors and warnings in the output of a build (exacta §4.13).
type counter struct {
	*linePatterns
	own, misses      *regexp.Regexp // of the tool; nil: it has none
	missing          string         // the first package that is missing
	line             []byte
	seed             maphash.Seed
	seen             map[uint64]struct{}
	last             []byte
	root             []byte // of the project: the tail does not show it
	errors, warnings int
}

func newCounter(tool string) *counter {
	c := &counter{linePatterns: patterns(), seed: maphash.MakeSeed(), seen: make(map[uint64]struct{})}
	switch tool {
	case "go":
		c.own, c.misses = c.errorOfGo, c.goMisses
	case "npm":
		c.own, c.misses = c.errorOfJS, c.npmMisses
	case "cargo":
		c.misses = c.cargoMisses
	}
	return c
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n := len(p)
	c.last = append(c.last, p...)
	if over := len(c.last) - 4*tailSize; over > 4*tailSize {
		c.last = append(c.last[:0], c.last[over:]...)
	}
	for {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		c.line = append(c.line, line[:min(len(line), max(maxLine-len(c.line), 0))]...)
		if !ended {
			return n, nil
		}
		c.end()
		p = rest
	}
}

// end takes a line that is complete.
func (c *counter) end() {
	line := bytes.TrimSpace(c.ansi.ReplaceAll(c.line, nil))
	c.line = c.line[:0]
	if len(line) == 0 || c.skipped.Match(line) {
		return
	}
	if c.misses != nil && c.missing == "" {
		if m := c.misses.FindSubmatch(line); m != nil {
			c.missing = string(m[1])
		}
	}
	isError := c.anError.Match(line) || c.own != nil && c.own.Match(line)
	if !isError && !c.aWarning.Match(line) {
		return
	}
	key := maphash.Bytes(c.seed, line)
	if _, again := c.seen[key]; again || len(c.seen) == maxLines {
		return
	}
	c.seen[key] = struct{}{}
	if isError {
		c.errors++
	} else {
		c.warnings++
	}
}

// tail returns the end of the output, whole characters.
func (c *counter) tail() string {
	text := c.last
	if len(c.root) > 0 {
		text = bytes.ReplaceAll(text, c.root, []byte("{PROJECT_ROOT}"))
	}
	text = text[max(0, len(text)-tailSize):]
	for len(text) > 0 && text[0]&0xc0 == 0x80 {
		text = text[1:]
	}
	return string(bytes.ToValidUTF8(text, []byte("?")))
}
