package lint

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// commentWidth is the widest line of a comment, in columns with tabs of four.
const commentWidth = 100

// spoken matches verbs of speech and the pronouns of persons: code does not speak. The pattern is
// put together from pieces, so that this file does not match itself.
var spoken = regexp.MustCompile(`(?i)\b(s(ays?|aid|aying)|t(ells?|old|elling)|(no|some|every|any)body|who` + `ever)\b`)

// spokenNames are words of contracts that spoken would match, each with its reason.
var spokenNames = map[string]string{}

// metaphors maps private words in identifiers to the terms of the field. A word is one part of a
// name in camel case.
var metaphors = map[string]string{
	"conduct":     "call",
	"whereabouts": "queueState",
	"ages":        "snapshots",
	"condemn":     "fail",
	"condemned":   "failed",
	"doom":        "fail",
	"doomed":      "failed",
	"parting":     "linger",
	"farewell":    "linger",
	"lastwords":   "onEOF",
	"departing":   "handoff",
	"rescue":      "recoverPanic",
	"rescued":     "recoverPanic",
	"survive":     "recoverPanic",
	"safely":      "recoverPanic",
	"judge":       "validate",
	"quickly":     "parseFast",
}

// TestPlainWords fails at each comment that is wide or speaks, and at each private word in a name.
func TestPlainWords(t *testing.T) {
	for _, f := range repository(t).files {
		for _, hit := range plainHits(t, f) {
			t.Error(hit)
		}
	}
}

// TestPagesArePlain holds the prose of pages to the words of comments. Code and what programs print
// are not prose. Pages of bench are made by programs.
func TestPagesArePlain(t *testing.T) {
	for page, text := range repository(t).texts {
		if !strings.HasSuffix(page, ".md") || page == "BENCHMARKS.md" || under(page, "bench") {
			continue
		}
		blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
		text = code.ReplaceAllString(fence.ReplaceAllStringFunc(text, blank), "")
		n := 0
		for line := range strings.Lines(text) {
			n++
			if m := spokenIn(line); m != "" {
				t.Errorf("%s:%d: %s: %s", page, n, m, strings.TrimSpace(line))
			}
		}
	}
}

// plainHits returns the findings in one file. Generated files have none.
func plainHits(t *testing.T, f goFile) []string {
	if f.generated {
		return nil
	}
	r := repository(t)
	var out []string
	for _, g := range f.ast.Comments {
		for _, c := range g.List {
			if m := spokenIn(c.Text); m != "" {
				out = append(out, r.at(f, c)+": "+m+" in a comment: report, return, set, emit, contain, record, mean")
			}
		}
	}
	n := 0
	for line := range strings.Lines(f.src) {
		n++
		if tooWide(line) {
			out = append(out, f.path+":"+itoa(n)+": a comment wider than "+itoa(commentWidth)+" columns")
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if word, instead := metaphorIn(id.Name); word != "" {
				out = append(out, r.at(f, id)+": name "+id.Name+
					": use "+strconv.Quote(instead)+" for "+strconv.Quote(word))
			}
		}
		return true
	})
	return out
}

// spokenIn returns the first word of speech in a comment.
func spokenIn(comment string) string {
	for _, m := range spoken.FindAllString(comment, -1) {
		if _, listed := spokenNames[m]; !listed {
			return m
		}
	}
	return ""
}

// tooWide reports whether a line is a comment, and wider than commentWidth. A directive has no
// width of its own.
func tooWide(line string) bool {
	line = strings.TrimRight(line, "\n")
	text := strings.TrimLeft(line, "\t ")
	if !strings.HasPrefix(text, "//") || strings.HasPrefix(text, "//go:") {
		return false
	}
	return utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > commentWidth
}

// metaphorIn returns the first private word in a name, and the term for it.
func metaphorIn(name string) (word, instead string) {
	for _, w := range append(camelWords(name), strings.ToLower(name)) {
		if instead := metaphors[w]; instead != "" {
			return w, instead
		}
	}
	return "", ""
}

// camelWords splits a name in camel case: "parseHTTPHead" is parse, http, head.
func camelWords(name string) []string {
	var out []string
	rs := []rune(name)
	start := 0
	for i := 1; i < len(rs); i++ {
		lowerNext := i+1 < len(rs) && unicode.IsLower(rs[i+1])
		if unicode.IsUpper(rs[i]) && (!unicode.IsUpper(rs[i-1]) || lowerNext) {
			out = append(out, strings.ToLower(string(rs[start:i])))
			start = i
		}
	}
	return append(out, strings.ToLower(string(rs[start:])))
}

func TestPlainWordsFinds(t *testing.T) {
	f := func(line string, word string, wide bool) {
		t.Helper()
		if got := spokenIn(line); got != word || tooWide(line) != wide {
			t.Errorf("%q: %q, wide %v", line, got, tooWide(line))
		}
	}
	f("// It t"+"ells.", "t"+"ells", false)
	f("// Somebo"+"dy reads.", "Somebo"+"dy", false)
	f("// A teller and an essay.", "", false)
	f("// "+strings.Repeat("x", commentWidth-3), "", false)
	f("// "+strings.Repeat("x", commentWidth-2), "", true)
	f("\t// "+strings.Repeat("x", commentWidth-6), "", true)
	f("//go:generate "+strings.Repeat("x", commentWidth), "", false)
	f("x := 1 // "+strings.Repeat("x", commentWidth), "", false)
	g := func(name, word string) {
		t.Helper()
		if got, _ := metaphorIn(name); got != word {
			t.Errorf("%s: %q, want %q", name, got, word)
		}
	}
	g("walkSafely", "safely")
	g("lastWords", "lastwords")
	g("JudgeAll", "judge")
	g("pages", "")
	g("parseHTTPHead", "")
}
