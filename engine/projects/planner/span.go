package planner

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// What surrounds a word without being part of it.
const (
	before = "([{<':!?’"
	behind = ")]}>':!?.’"
	ends   = ".!?" // behind a word: the clause is over
)

const fence = "```"

// tokens splits an input into spans and words (exacta §4.19). Clauses are apart by tokens of the
// kind stop. The newline before a fence is no stop, so that a fence belongs to the line above it.
func (x *lexer) tokens(in string) []token {
	var out []token
	start := 0    // of the word that is read
	unclosed := 0 // no double quote before this offset begins a span
	for i := 0; i < len(in); {
		t, next := token{}, i
		switch c := in[i]; {
		case c == '`' && (i == 0 || in[i-1] == '\n') && strings.HasPrefix(in[i:], fence):
			t, next = fenced(in, i)
		case c == '"' && i >= unclosed:
			if t, next = doubleQuoted(in, i); next == i {
				unclosed = i + len(line(in[i:]))
			}
		case c == '`':
			t, next = x.backticked(in, i)
		}
		if next > i {
			out = append(x.word(out, in[start:i]), t)
			i, start = next, next
			continue
		}
		r, size := utf8.DecodeRuneInString(in[i:])
		if r != ',' && r != ';' && !unicode.IsSpace(r) {
			i += size
			continue
		}
		out = x.word(out, in[start:i])
		next = i + size
		switch r {
		case ',':
			out = append(out, token{kind: comma})
		case ';':
			out = append(out, token{kind: stop})
		case '\n':
			next = len(in) - len(strings.TrimLeft(in[i:], " \t\r\n"))
			if in[next-1] != '\n' || !strings.HasPrefix(in[next:], fence) {
				out = append(out, token{kind: stop})
			}
		}
		i, start = next, next
	}
	return x.word(out, in[start:])
}

// line returns s up to its first newline.
func line(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i]
	}
	return s
}

// fenced reads the fence whose first line begins at i. The newline behind it is left.
func fenced(in string, i int) (t token, next int) {
	var value strings.Builder
	next = i + len(line(in[i:]))
	for next < len(in) {
		s := line(in[next+1:])
		next += 1 + len(s)
		s = strings.TrimSuffix(s, "\r")
		if strings.TrimRight(s, " \t") == fence {
			break
		}
		if next == len(in) && s == "" {
			break // what is behind the last newline is no line
		}
		value.WriteString(s)
		value.WriteByte('\n')
	}
	v := value.String()
	return token{kind: quoted, value: v, typed: strings.Join(strings.Fields(v), " ")}, next
}

// doubleQuoted reads the span that begins with the quote at i. next is i if it has no end.
func doubleQuoted(in string, i int) (t token, next int) {
	var value []byte
	for n := i + 1; n < len(in) && in[n] != '\n'; n++ {
		switch {
		case in[n] == '"':
			return token{kind: quoted, value: string(value), typed: in[i : n+1]}, n + 1
		case in[n] == '\\' && n+1 < len(in) && strings.IndexByte(`"\nt`, in[n+1]) >= 0:
			n++
			value = append(value, unescape(in[n]))
		default:
			value = append(value, in[n])
		}
	}
	return t, i
}

// unescape returns what a letter behind a backslash means.
func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	}
	return c
}

// backticked reads the span that begins with the backtick at i. next is i if it has no end.
func (x *lexer) backticked(in string, i int) (t token, next int) {
	n := strings.IndexByte(in[i+1:], '`')
	if n < 0 || strings.IndexByte(in[i+1:i+1+n], '\n') >= 0 {
		return t, i
	}
	t = x.classify(in[i+1 : i+1+n])
	if t.kind == word {
		t.kind = quoted
		if identifier(t.value) {
			t.kind = symbol
		}
	}
	return t, i + n + 2
}

// word appends the token of one word and the stop behind it.
func (x *lexer) word(out []token, w string) []token {
	if w == "" {
		return out
	}
	rest := strings.TrimLeft(w, before)
	v := strings.TrimRight(rest, behind)
	run := rest[len(v):]
	if strings.HasPrefix(run, "..") && !strings.HasPrefix(run, "...") &&
		(v == "" || v[len(v)-1] == '/' || v[len(v)-1] == '\\') {
		v, run = v+"..", run[2:] // a path, not the end of a sentence
	}
	if name, closed := strings.CutSuffix(v, "("); closed && strings.HasPrefix(run, ")") && identifier(name) {
		out = append(out, token{kind: symbol, value: name, typed: name + "()"})
	} else if v != "" {
		out = append(out, x.classify(v))
	}
	if strings.ContainsAny(run, ends) || v == "" && strings.ContainsAny(w, ends) {
		out = append(out, token{kind: stop})
	}
	return out
}
