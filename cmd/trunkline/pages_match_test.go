package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// namedForms lists what differs from run to run. Text of such a form in a page stands for any text
// of the form. A form that ends in "id" stands for one text: the page may use it in later commands.
var namedForms = []struct{ name, form string }{
	{"version", `trunkline [^ ,\n]+, settings: [^\n]+`},
	{"versionrow", `version +\S+ \([0-9a-z]+\)`},
	{"builtversion", `main\.(?:version|revision)=\S+`},
	{"settings", `settings="[^"]+"`},
	{"layers", `\(\d+ from [^)]*\)`},
	{"uuid", `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`},
	{"revision", `\b[0-9a-f]{40}\b`},
	{"leaseid", `lease_[0-9a-f]{32}`},
	{"streamid", `\b[0-9a-f]{32}\b`},
	{"envelopeid", `\b(?:env|req|sess)_[0-9a-f]{16}\b`},
	{"threadid", `\b(?:th|msg)_[0-9A-Z]{26}\b`},
	{"shortid", `\b[0-9a-f]{8}\b`},
	{"time", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`},
	{"clock", `\b\d\d:\d\d:\d\d\b`},
	{"milliseconds", `\b1[5-9]\d{11}\b`},
	{"seconds", `\b(?:secs|mb|mb_per_sec|eta_secs)(?:"?[:=])[0-9.e-]+`},
	{"took", `\b\d+(?:\.\d+)? (?:µs|ms)`},
	{"measured", `"(?:(?:sum|p50|p90|p99|p999|age|idle|up_to)_)?seconds":[0-9.e-]+`},
	{"address", `"(?:peer|listener)":"[0-9.]+:\d+"`},
	{"connection", `"ipc-\d+"`},
	{"pid", `"pid":\d+|"started":"\d+"|^process  \d+`},
	{"sizes", `\b\d+(?:\.\d+)? (?:[kM]?B) free`},
	{"left_out", `\.\.\.|…`},
}

// isID reports whether texts of the form are names that a page uses again.
func isID(form string) bool { return form == "uuid" || strings.HasSuffix(form, "id") && form != "pid" }

var anyForm = func() *regexp.Regexp {
	var alternatives []string
	for _, f := range namedForms {
		alternatives = append(alternatives, "(?P<"+f.name+">"+f.form+")")
	}
	return regexp.MustCompile(strings.Join(alternatives, "|"))
}()

// likeness compares what a page shows with what came. It remembers which name of the run each name
// of the page stands for.
type likeness struct {
	bound  map[string]string
	shorts []string // the first digits of UUIDs of the page, by which commands take them
}

func newLikeness(page string) *likeness {
	l := &likeness{bound: map[string]string{}}
	for _, m := range anyForm.FindAllStringSubmatch(page, -1) {
		if id := m[anyForm.SubexpIndex("uuid")]; id != "" {
			l.shorts = append(l.shorts, id[:8])
		}
	}
	return l
}

// matches reports whether got is what is shown; rest permits more lines behind it.
func (l *likeness) matches(shown, got string, rest bool) bool {
	pattern, names := l.pattern(shown)
	if !rest {
		pattern += `\z`
	}
	if got = blankEnds.ReplaceAllString(got, "\n"); got != "" && !strings.HasSuffix(got, "\n") {
		got += "\n"
	}
	m := regexp.MustCompile(`\A` + pattern).FindStringSubmatch(got)
	if m == nil {
		return false
	}
	bound := map[string]string{}
	for i, name := range names {
		known, ok := l.bound[name]
		if !ok {
			known, ok = bound[name]
		}
		if ok && known != m[i+1] {
			return false
		}
		bound[name] = m[i+1]
	}
	for name, actual := range bound {
		l.bound[name] = actual
		if len(name) == 36 { // a UUID
			l.bound[name[:8]] = actual[:8]
		}
	}
	return true
}

var blankEnds = regexp.MustCompile(`[ \t]*\n`)

// pattern returns a pattern for what is shown, and the names that its groups stand for.
func (l *likeness) pattern(shown string) (pattern string, names []string) {
	if shown == "" {
		return "", nil
	}
	var b strings.Builder
	for line := range strings.SplitSeq(shown, "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "..." || line == "…" {
			b.WriteString(`(?:[^\n]*\n)*?`)
			continue
		}
		end := 0
		for _, m := range anyForm.FindAllStringSubmatchIndex(line, -1) {
			b.WriteString(regexp.QuoteMeta(line[end:m[0]]))
			end = m[1]
			text := line[m[0]:m[1]]
			f := namedForms[slices.IndexFunc(namedForms, func(f struct{ name, form string }) bool { return m[2*anyForm.SubexpIndex(f.name)] >= 0 })]
			switch {
			case f.name == "left_out":
				b.WriteString(`[^\n]*?`)
			case f.name == "shortid" && !slices.Contains(l.shorts, text):
				b.WriteString(regexp.QuoteMeta(text))
			case isID(f.name):
				b.WriteString("(" + f.form + ")")
				names = append(names, text)
			default:
				b.WriteString("(?:" + f.form + ")")
			}
		}
		b.WriteString(regexp.QuoteMeta(line[end:]) + `\n`)
	}
	return b.String(), names
}

// actual returns a command with the names of the run in place of those of the page.
func (l *likeness) actual(command string) string {
	return anyForm.ReplaceAllStringFunc(command, func(text string) string {
		if actual, ok := l.bound[text]; ok {
			return actual
		}
		return text
	})
}

// TestLikenessFinds: the comparison finds what differs.
func TestLikenessFinds(t *testing.T) {
	const a, b = "26bea70a-6723-4b7c-be53-b6cc68726cd4", "11111111-6723-4b7c-be53-b6cc68726cd4"
	f := func(shown, got string, want bool) {
		t.Helper()
		if newLikeness(shown).matches(shown, got, false) != want {
			t.Errorf("%q against %q: %v", shown, got, !want)
		}
	}
	f("", "", true)
	f("", "x\n", false)
	f("x", "", false)
	f("x", "x\n", true)
	f("x", "x", true)
	f("x ", "x  \n", true)
	f("x", "x\ny\n", false)
	f("x\n...", "x\ny\nz\n", true)
	f("x\n...\nz", "x\nz\n", true)
	f("x\n...\nz", "x\ny\n", false)
	f(`{"a":1,...}`, `{"a":1,"b":2}`, true)
	f(`{"a":1,…}`, `{"a":2,"b":2}`, false)
	f("a...", "a\nb", false)
	f("a.b", "axb", false)
	f("at 17:00:01 done", "at 09:30:59 done", true)
	f("at 17:00:01 done", "at 9 done", false)
	f("in 15 ms", "in 2.5 ms", true)
	f("15 files", "16 files", false)
	f("valid (3 from file x, 65 from defaults)", "valid (4 from defaults)", true)
	f(a+" "+a, b+" "+b, true)
	f(a+" "+a, a+" "+b, false)
	f("deadbeef", "deadbeee", false)
	f("trunkline dev, settings: 3 from defaults", "trunkline v1, settings: 4 from environment", true)
	f("trunkline dev, settings: 3 from defaults", "trunkline v1", false)

	l := newLikeness("Plan " + a)
	if !l.matches("Plan "+a, "Plan "+b+"\nmore\n", true) || l.matches("Plan "+a, "Plan "+a, false) {
		t.Error("a name of the page stands for one name of the run")
	}
	if got := l.actual("approve 26bea70a " + a + " deadbeef"); got != "approve 11111111 "+b+" deadbeef" {
		t.Error(got)
	}
	if !l.matches("approved 26bea70a", "approved 11111111", false) {
		t.Error("the first digits stand for those of the run")
	}
}
