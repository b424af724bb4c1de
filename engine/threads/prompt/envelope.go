package prompt

import "fmt"

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
