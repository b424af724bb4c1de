package monitor

import (
	"bytes"
	"encoding/json"
	"regexp"

	"trunkline/codec/jsonx"
	"trunkline/engine/projects/secret"
)

// secretName matches names of members whose values are credentials, numbers aside: tokens are
// counted, too.
var secretName = regexp.MustCompile(`(?i)passw|passphrase|\bpwd\b|secret|token|authorization|api[_-]?key|private[_-]?key|access[_-]?key|credential|cookie`)

// hideDepth is how deep texts of JSON inside of strings are looked into.
const hideDepth = 4

// hideSecrets appends JSON text, which may end early, without the credentials in it: values of
// members that are named so, and what looks like one in any string.
func hideSecrets(dst, text []byte, depth int) []byte {
	for i := 0; i < len(text); {
		if text[i] != '"' {
			dst = append(dst, text[i])
			i++
			continue
		}
		end := stringEnd(text, i)
		s := text[i:end]
		i = end
		dst = appendHidden(dst, s, depth)
		colon := skipSpace(text, i)
		if colon == len(text) || text[colon] != ':' {
			continue
		}
		dst = append(dst, ':')
		i = skipSpace(text, colon+1)
		var name string // peers write lines as they like, escapes in names included
		if json.Unmarshal(s, &name) != nil || !secretName.MatchString(name) {
			continue
		}
		if end := valueEnd(text, i); end > i {
			dst = append(dst, `"`+secret.Redacted+`"`...)
			i = end
		}
	}
	return dst
}

// appendHidden appends a string of JSON, quotes included.
func appendHidden(dst, quoted []byte, depth int) []byte {
	var plain string
	if json.Unmarshal(quoted, &plain) != nil {
		return append(dst, `"`+secret.Redacted+`"`...) // it is not whole
	}
	text := []byte(plain)
	if first := bytes.TrimLeft(text, " \t\r\n"); depth < hideDepth && len(first) > 0 && (first[0] == '{' || first[0] == '[') && json.Valid(text) {
		text = hideSecrets(nil, text, depth+1)
	} else {
		text = secret.Redact(nil, text)
	}
	if string(text) == plain {
		return append(dst, quoted...)
	}
	return jsonx.AppendString(dst, text)
}

// stringEnd returns where the string that begins at i ends, behind its quote.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// valueEnd returns where the string, object or array that begins at i ends; i for other values.
func valueEnd(text []byte, i int) int {
	depth := 0
	for at := i; at < len(text); {
		switch text[at] {
		case '"':
			if at = stringEnd(text, at); depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		if depth <= 0 {
			return i
		}
		at++
	}
	return len(text)
}

// skipSpace returns the index of the first byte from i on that is no white space.
func skipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}
