package summary

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"trunkline/codec/jsonx"
)

// Bounds of the parts of a summary (threads §4.7).
const (
	itemExcerpt   = 120 // characters
	lastExcerpt   = 160
	commitBytes   = 40
	shownCommits  = 10
	ellipsis      = "…"
	emptyExcerpt  = "(no text)"
	countedCommit = 1 << 16 // different commits in one sentence, so that the set of them is bounded
)

// text returns the sentences of rule 5.
func (t *tracker) text(latest uint64, status string) string {
	var s []string
	n := len(t.window)
	if uint64(n) < latest {
		s = append(s, fmt.Sprintf("Last %d of %d messages:", n, latest))
	}
	s = t.sentence(s, "blocking", true)
	s = t.sentence(s, "non-blocking", false)
	if e := t.escalations; e > 0 {
		s = append(s, fmt.Sprintf("%d escalation%s raised.", e, plural(e)))
	}
	switch {
	case n == 0:
		s = append(s, "No messages yet; thread is "+squeeze([]byte(status), maxText)+".")
	case len(t.findings) == 0:
		m := &t.window[n-1]
		s = append(s, fmt.Sprintf("No findings reported in %d message%s. Last #%d from %s: %s",
			n, plural(n), m.Seq, squeeze([]byte(m.Sender), maxText), excerpt(m.Body, lastExcerpt)))
	}
	text := strings.Join(s, " ")
	if len(text) > maxText {
		text = jsonx.Clip(text, maxText-len(ellipsis)) + ellipsis
	}
	return text
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// sentence appends the sentence of the blocking or of the other findings, if there are any.
func (t *tracker) sentence(s []string, kind string, blocking bool) []string {
	count, done := 0, 0
	for i := range t.findings {
		if f := &t.findings[i]; f.blocking == blocking {
			count++
			if f.state == resolved {
				done++
			}
		}
	}
	var how string
	switch {
	case count == 0:
		return s
	case done == 0 && count == 1:
		how = "still open"
	case done == 0:
		how = "none resolved"
	case done < count:
		how = fmt.Sprintf("%d resolved%s, %d open", done, t.after(blocking), count-done)
	case count == 1:
		how = "resolved" + t.after(blocking)
	case count == 2:
		how = "both resolved" + t.after(blocking)
	default:
		how = fmt.Sprintf("all %d resolved%s", count, t.after(blocking))
	}
	return append(s, fmt.Sprintf("%d %s finding%s reported; %s.", count, kind, plural(count), how))
}

// after returns which commits resolved findings, as a part of a sentence.
func (t *tracker) after(blocking bool) string {
	list, more := t.commits(blocking)
	last := len(list) - 1
	switch {
	case last < 0:
		return ""
	case last == 0:
		return " after commit " + list[0]
	case more > 0:
		return fmt.Sprintf(" after commits %s and %d more", strings.Join(list, ", "), more)
	}
	return " after commits " + strings.Join(list[:last], ", ") + " and " + list[last]
}

// commits returns the first commits of the resolved findings, and how many more there are. It reads
// each push once.
func (t *tracker) commits(blocking bool) (first []string, more int) {
	seen := make(map[string]struct{})
	add := func(v jsonx.Value) {
		text := jsonx.Clip(squeeze(t.unescape(v), commitBytes), commitBytes)
		if _, twice := seen[text]; twice || text == "" {
			return
		}
		seen[text] = struct{}{}
		if len(first) < shownCommits {
			first = append(first, text)
		}
	}
	done := make([]bool, len(t.pushes))
	for i := range t.findings {
		f := &t.findings[i]
		if f.state != resolved || f.blocking != blocking {
			continue
		}
		for _, p := range f.pushes {
			if done[p] {
				continue
			}
			done[p] = true
			add(t.pushes[p].commit)
			list := jsonx.OpenArray(t.pushes[p].commits.Raw)
			for v, ok := list.Next(); ok && len(seen) < countedCommit; v, ok = list.Next() {
				add(v)
			}
		}
	}
	return first, len(seen) - len(first)
}

// items returns the open items of rule 6.
func (t *tracker) items(status string) []string {
	var waiting []*finding
	for i := range t.findings {
		if f := &t.findings[i]; f.state != resolved {
			waiting = append(waiting, f)
		}
	}
	escalated := status == "blocked" && t.escalation != nil
	total := len(waiting)
	if escalated {
		total++
	}
	items := make([]string, 0, min(total, maxItems))
	for _, f := range waiting {
		if len(items) == maxItems-1 && total > maxItems {
			return append(items, fmt.Sprintf("and %d more", total-len(items)))
		}
		items = append(items, t.item(f))
	}
	if escalated {
		items = append(items, fmt.Sprintf("escalation: %s [#%d]", excerpt(t.escalation.Body, itemExcerpt), t.escalation.Seq))
	}
	return items
}

func (t *tracker) item(f *finding) string {
	where := squeeze(t.unescape(f.file), maxField)
	switch {
	case where == "":
	case f.place.hasLine:
		where = fmt.Sprintf(" (%s:%d)", where, f.place.line)
	default:
		where = " (" + where + ")"
	}
	return fmt.Sprintf("%s: %s%s [#%d, %s]", f.severity, excerpt(f.message.Body, itemExcerpt), where, f.message.Seq, stateNames[f.state])
}

// Clip returns what a summary may show of a body, in memory of its own: a window of long messages
// takes no more than one of short ones.
func Clip(body []byte) []byte {
	first, _, _ := bytes.Cut(body, []byte{'\n'})
	return []byte(squeeze(first, lastExcerpt+1))
}

// excerpt returns the beginning of the first line of a body (rule 7).
func excerpt(body []byte, most int) string {
	first, _, _ := bytes.Cut(body, []byte{'\n'})
	if text := squeeze(first, most); text != "" {
		return text
	}
	return emptyExcerpt
}

// squeeze returns text in one line: each run of white space and control characters is a space, none
// at either end. Behind that many characters it is cut, which an ellipsis shows. The result is
// UTF-8 whatever text is.
func squeeze(text []byte, most int) string {
	var b strings.Builder
	space, count := false, 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			space = true
			continue
		}
		if space && count > 0 && count < most {
			b.WriteByte(' ')
			count++
		}
		if space = false; count >= most {
			return b.String() + ellipsis
		}
		b.WriteRune(r)
		count++
	}
	return b.String()
}
