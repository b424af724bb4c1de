// Package prompt makes what wakes an agent: sanitised prompts, their envelopes, the arguments of
// fallback commands, and the target that a runtime names (threads §4.9). It does no I/O.
//
//	envelope.go   Sanitize, AppendEnvelope, SpawnPrompt: text that is pasted, or is one argument
//	command.go    Argv, DisplayCommand, ResumableSession, ParseRuntime
//
// Prompts are foreign. What Sanitize returns holds no byte that a terminal obeys but TAB and LF,
// and no line that a reader takes for the head or the end of an envelope.
package prompt

import (
	"bytes"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// maxSpawn is the most bytes of a prompt that begins a session, as long as its summary and envelope
// leave room: Linux takes no argument above 128 KiB.
const maxSpawn = 96 << 10

// AppendEnvelope appends the envelope of a sanitised prompt. Each character of the other values
// that a header cannot hold becomes an underscore.
func AppendEnvelope(dst []byte, triggerID, threadID, reason string, sanitized []byte) []byte {
	dst = appendValue(append(append(dst, head...), " id="...), triggerID)
	dst = appendValue(append(dst, " thread="...), threadID)
	dst = appendValue(append(dst, " reason="...), reason)
	dst = append(append(dst, "]\n"...), sanitized...)
	return append(append(append(dst, '\n'), tail...), ']')
}

// appendValue appends a value of a header.
func appendValue(dst []byte, value string) []byte {
	for _, r := range value {
		switch {
		case 'A' <= r && r <= 'Z', 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '.', r == '_', r == ':', r == '-':
		default:
			r = '_'
		}
		dst = append(dst, byte(r))
	}
	return dst
}

// SpawnPrompt appends the prompt of a new session: the summary of the thread, the open items one
// per line, an empty line, and the envelope. Summary and items are sanitised. Items that would make
// the prompt too long for an argument are only counted.
func SpawnPrompt(dst []byte, threadID, summary string, openItems []string, envelope []byte) []byte {
	most := len(dst) + maxSpawn - len(envelope)
	dst = append(appendValue(append(dst, "[THREAD_SUMMARY thread="...), threadID), "]\n"...)
	dst = append(Sanitize(dst, []byte(summary)), '\n')
	for i, item := range openItems {
		before := len(dst)
		if dst = append(Sanitize(dst, []byte(item)), '\n'); len(dst) > most {
			dst = fmt.Appendf(dst[:before], "and %d more\n", len(openItems)-i)
			break
		}
	}
	return append(append(dst, '\n'), envelope...)
}

// MaxBytes is the most bytes of a sanitised prompt (threads §4.9).
const MaxBytes = 8192

// Fits reports whether a sanitised prompt has an accepted length.
func Fits(sanitized []byte) bool { return 1 <= len(sanitized) && len(sanitized) <= MaxBytes }

// The marks of an envelope.
var (
	head = []byte("[BRIDGE_TRIGGER")
	tail = []byte("[/BRIDGE_TRIGGER")
)

// Sanitize appends text in sanitised form: CRLF and CR become LF, control characters but TAB and LF
// are dropped, and a line that starts with a mark of an envelope gets "> " in front. Bytes that are
// not UTF-8 become U+FFFD: some terminals obey the bytes 0x80 to 0x9F. It does not change what is
// sanitised.
//
// Marks are looked for after dropping, behind white space and characters that are not seen, and
// behind the line ends of Unicode as well: a reader may take these for the start of a line.
func Sanitize(dst, text []byte) []byte {
	start := len(dst)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if text = text[size:]; r == '\r' {
			if r = '\n'; len(text) > 0 && text[0] == '\n' {
				continue
			}
		}
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			continue
		}
		dst = utf8.AppendRune(dst, r)
		if r == '\n' || r == '\u2028' || r == '\u2029' {
			dst = quote(dst, start)
			start = len(dst)
		}
	}
	return quote(dst, start)
}

// quote puts "> " in front of the line at start if a mark is the first that is seen of it.
func quote(dst []byte, start int) []byte {
	line := bytes.TrimLeftFunc(dst[start:], unseen)
	if bytes.HasPrefix(line, head) || bytes.HasPrefix(line, tail) {
		return slices.Insert(dst, start, '>', ' ')
	}
	return dst
}

// unseen reports whether r may stand in front of a mark: white space and format characters, such as
// U+200B and U+FEFF.
func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
