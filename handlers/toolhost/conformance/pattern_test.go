package conformance

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// runs is <x*1025>: 1025 times x, in what is sent and in what is expected.
var runs = regexp.MustCompile(`<([^<>*]+)\*(\d+)>`)

// holes are the placeholders of an expected line: <int>, <hex32>, ..., with a name <int:n> the text
// is kept for later lines as $n. <re:...> is a regular expression as it is, <any> anything.
var holes = regexp.MustCompile(`<(int|num|hex8|hex16|hex32|hex64|any)(?::([a-z]+))?>|<re:(.*?):re>`)

var holeTexts = map[string]string{
	"int": `-?\d+`, "num": `-?\d+(?:\.\d+)?`, "any": `.*?`,
	"hex8": `[0-9a-f]{8}`, "hex16": `[0-9a-f]{16}`, "hex32": `[0-9a-f]{32}`, "hex64": `[0-9a-f]{64}`,
}

// unfold replaces the runs of a text.
func unfold(text string) string {
	if !strings.Contains(text, "*") {
		return text
	}
	return runs.ReplaceAllStringFunc(text, func(m string) string {
		parts := runs.FindStringSubmatch(m)
		n, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], n)
	})
}

// fill replaces $ROOT and what earlier lines kept, longest names first.
func fill(text, root string, kept map[string]string) string {
	text = strings.NewReplacer("$ROOT", root, "<root>", root).Replace(text)
	if !strings.Contains(text, "$") {
		return text
	}
	names := slices.SortedFunc(maps.Keys(kept), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = strings.ReplaceAll(text, "$"+name, kept[name])
	}
	return text
}

// matches reports whether got is what an expected text (filled, not yet unfolded) demands, and
// keeps what named placeholders met.
func matches(want, got string, kept map[string]string) bool {
	at := holes.FindAllStringSubmatchIndex(want, -1)
	if at == nil {
		return unfold(want) == got
	}
	expr, names, from := `(?s)\A`, []string(nil), 0
	for _, m := range at {
		expr += regexp.QuoteMeta(unfold(want[from:m[0]]))
		from = m[1]
		if m[6] >= 0 {
			expr += "(?:" + want[m[6]:m[7]] + ")"
			continue
		}
		name := ""
		if m[4] >= 0 {
			name = want[m[4]:m[5]]
		}
		expr, names = expr+"("+holeTexts[want[m[2]:m[3]]]+")", append(names, name)
	}
	found := regexp.MustCompile(expr + regexp.QuoteMeta(unfold(want[from:])) + `\z`).FindStringSubmatch(got)
	if found == nil {
		return false
	}
	for i, name := range names {
		if name != "" {
			kept[name] = found[i+1]
		}
	}
	return true
}

// clip shortens a text for a message.
func clip(text string) string {
	const most = 700
	if len(text) <= most {
		return text
	}
	return text[:most-100] + "…(" + strconv.Itoa(len(text)) + " bytes)…" + text[len(text)-80:]
}
