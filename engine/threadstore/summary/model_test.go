package summary

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// object is decoded metadata.
type object map[string]any

func decode(m Message) (o object) {
	d := json.NewDecoder(strings.NewReader(string(m.Metadata)))
	d.UseNumber()
	if d.Decode(&o) != nil || m.Kind == "chat" {
		return nil
	}
	return o
}

func (o object) text(name string) string { s, _ := o[name].(string); return s }

// texts returns the strings of one member and of the list in another.
func (o object) texts(one, many string) (list []string) {
	l, _ := o[many].([]any)
	for _, v := range append([]any{o[one]}, l...) {
		if s, _ := v.(string); s != "" {
			list = append(list, s)
		}
	}
	return list
}

func (o object) line() string {
	n, _ := o["line"].(json.Number)
	r, ok := new(big.Rat).SetString(string(n))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return ""
	}
	return r.Num().String()
}

// modelFinding is a finding of the model: its last report, and what came after it.
type modelFinding struct {
	id, state string
	report    Message
	o         object
	commits   []string
}

func (f *modelFinding) label() string {
	return strings.ToLower(modelSqueeze(f.o.text("severity"), maxField))
}

func (f *modelFinding) blocking() bool {
	if b, ok := f.o["blocking"].(bool); ok {
		return b
	}
	return slices.Contains([]string{"blocker", "blocking", "critical", "high"}, f.label())
}

func modelSqueeze(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(string([]rune(s)), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func modelExcerpt(m Message, most int) string {
	if s := modelSqueeze(strings.Split(string(m.Body), "\n")[0], most); s != "" {
		return s
	}
	return "(no text)"
}

// modelTargets reads rule 3 once more.
func modelTargets(before []Message, m Message, o object, findings []*modelFinding) []*modelFinding {
	matching := func(fits func(*modelFinding) bool) (list []*modelFinding) {
		for _, f := range findings {
			if fits(f) {
				list = append(list, f)
			}
		}
		return list
	}
	if ids := o.texts("finding_id", "finding_ids"); len(ids) > 0 {
		return matching(func(f *modelFinding) bool { return slices.Contains(ids, f.id) })
	}
	id := m.InReplyTo
	for range 64 {
		at := slices.IndexFunc(before, func(m Message) bool { return m.ID == id })
		if at < 0 {
			break
		}
		if p := decode(before[at]); p.text("event_type") == "finding_reported" {
			return matching(func(f *modelFinding) bool { return f.id == reportedID(before[at], p) })
		}
		id, before = before[at].InReplyTo, before[:at]
	}
	open := matching(func(f *modelFinding) bool { return f.state != "resolved" })
	if task := o.text("task_id"); task != "" {
		file, line := o.text("file"), o.line()
		return slices.DeleteFunc(open, func(f *modelFinding) bool {
			return f.o.text("task_id") != task || file != "" && f.o.text("file") != file || line != "" && f.o.line() != line
		})
	}
	if o.text("event_type") != "fix_pushed" && len(open) != 1 {
		return nil
	}
	return open
}

func reportedID(m Message, o object) string {
	if id := o.text("finding_id"); id != "" {
		return id
	}
	return m.ID
}

// modelSummary reads threads §4.7 once more, without any care for time.
func modelSummary(window []Message, latest uint64, status string) Summary {
	var findings []*modelFinding
	raised, escalation := 0, -1
	for i, m := range window {
		o := decode(m)
		targets := modelTargets(window[:i], m, o, findings)
		switch o.text("event_type") {
		case "finding_reported":
			at := slices.IndexFunc(findings, func(f *modelFinding) bool { return f.id == reportedID(m, o) })
			if at < 0 {
				at = len(findings)
				findings = append(findings, &modelFinding{id: reportedID(m, o)})
			}
			findings[at].report, findings[at].o, findings[at].state = m, o, "open"
		case "fix_pushed":
			for _, f := range targets {
				if f.state == "resolved" {
					continue
				}
				f.state = "fix pushed"
				for _, c := range o.texts("commit", "commits") {
					c = modelSqueeze(c, 40)
					for len(c) > 40 {
						_, size := utf8.DecodeLastRuneInString(c)
						c = c[:len(c)-size]
					}
					if c != "" {
						f.commits = append(f.commits, c)
					}
				}
			}
		case "finding_verified", "finding_rejected":
			for _, f := range targets {
				f.state = map[bool]string{true: "resolved", false: "rejected"}[o.text("event_type") == "finding_verified"]
			}
		case "thread_escalated":
			raised++
			escalation = i
		case "thread_resolved":
			escalation = -1
			for _, f := range findings {
				f.state = "resolved"
			}
		}
	}
	s := Summary{Text: modelText(window, latest, status, findings, raised), OpenItems: []string{}}
	for _, f := range findings {
		if f.state == "resolved" {
			continue
		}
		label, place := f.label(), ""
		if label == "" {
			label = "unspecified"
		}
		if place = modelSqueeze(f.o.text("file"), maxField); place != "" {
			if line := f.o.line(); line != "" {
				place += ":" + line
			}
			place = " (" + place + ")"
		}
		s.OpenItems = append(s.OpenItems, fmt.Sprintf("%s: %s%s [#%d, %s]", label, modelExcerpt(f.report, 120), place, f.report.Seq, f.state))
	}
	if status == "blocked" && escalation >= 0 {
		s.OpenItems = append(s.OpenItems, fmt.Sprintf("escalation: %s [#%d]", modelExcerpt(window[escalation], 120), window[escalation].Seq))
	}
	if n := len(s.OpenItems); n > 100 {
		s.OpenItems = append(s.OpenItems[:99], fmt.Sprintf("and %d more", n-99))
	}
	return s
}

func modelText(window []Message, latest uint64, status string, findings []*modelFinding, raised int) string {
	s := func(n int) string { return map[bool]string{true: "", false: "s"}[n == 1] }
	var sentences []string
	n := len(window)
	if uint64(n) < latest {
		sentences = append(sentences, fmt.Sprintf("Last %d of %d messages:", n, latest))
	}
	for _, kind := range []string{"blocking", "non-blocking"} {
		all, done, after := 0, 0, []string(nil)
		for _, f := range findings {
			if f.blocking() != (kind == "blocking") {
				continue
			}
			all++
			if f.state == "resolved" {
				done++
				for _, c := range f.commits {
					if !slices.Contains(after, c) {
						after = append(after, c)
					}
				}
			}
		}
		var tail string
		switch k := len(after); {
		case k == 1:
			tail = " after commit " + after[0]
		case k > 10:
			tail = " after commits " + strings.Join(after[:10], ", ") + fmt.Sprintf(" and %d more", k-10)
		case k > 1:
			tail = " after commits " + strings.Join(after[:k-1], ", ") + " and " + after[k-1]
		}
		state := fmt.Sprintf("%d resolved%s, %d open", done, tail, all-done)
		switch {
		case all == 0:
			continue
		case all == 1 && done == 0:
			state = "still open"
		case done == 0:
			state = "none resolved"
		case all == done:
			state = map[int]string{1: "resolved", 2: "both resolved"}[all]
			if all > 2 {
				state = fmt.Sprintf("all %d resolved", all)
			}
			state += tail
		}
		sentences = append(sentences, fmt.Sprintf("%d %s finding%s reported; %s.", all, kind, s(all), state))
	}
	if raised > 0 {
		sentences = append(sentences, fmt.Sprintf("%d escalation%s raised.", raised, s(raised)))
	}
	if n == 0 {
		sentences = append(sentences, "No messages yet; thread is "+modelSqueeze(status, 9999)+".")
	} else if len(findings) == 0 {
		last := window[n-1]
		sentences = append(sentences, fmt.Sprintf("No findings reported in %d message%s. Last #%d from %s: %s",
			n, s(n), last.Seq, modelSqueeze(last.Sender, 9999), modelExcerpt(last, 160)))
	}
	return strings.Join(sentences, " ")
}

// Values of metadata, in JSON. All fields draw from few values, so that events meet.
var (
	someText   = rapid.SampledFrom([]string{`"F"`, `"\u0046"`, `"G"`, `"H"`, `"m1"`, `"m2"`, `""`, `" F "`, `"a\nb"`, `"high"`, `"LOW"`, `"Blocker"`})
	someOther  = rapid.SampledFrom([]string{`null`, `true`, `false`, `0`, `1`, `1.0`, `2`, `10e-1`, `1.5`, `-3`, `1e30`, `{"a":"F"}`, `[]`, `["F"]`})
	someType   = rapid.SampledFrom([]string{"finding_reported", "finding_reported", "finding_reported", "fix_pushed", "fix_pushed", "finding_verified", "finding_verified", "finding_rejected", "re_review_requested", "thread_escalated", "thread_resolved", "other"})
	someKind   = rapid.SampledFrom([]string{"event", "event", "event", "system", "chat"})
	someStatus = rapid.SampledFrom([]string{"active", "blocked", "resolved", "closed"})
	someBody   = rapid.OneOf(rapid.SampledFrom([]string{"", "\n", "a", "b\nc", " a \t b ", "\x00", "a\u2028b"}), rapid.StringN(0, 200, -1))
	someList   = rapid.Custom(func(t *rapid.T) string {
		return "[" + strings.Join(rapid.SliceOfN(rapid.OneOf(someText, someText, someOther), 0, 14).Draw(t, "list"), ",") + "]"
	})
	someCommit = rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf(`"c%d"`, rapid.IntRange(0, 30).Draw(t, "commit")) })
	someMeta   = rapid.Custom(func(t *rapid.T) string {
		var members []string
		add := func(name string, one *rapid.Generator[string]) {
			if rapid.IntRange(0, 3).Draw(t, name) == 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, one.Draw(t, name)))
			}
		}
		add("finding_id", rapid.OneOf(someText, someText, someOther))
		add("finding_ids", rapid.OneOf(someList, someList, someOther))
		add("task_id", rapid.OneOf(someText, someText, someOther))
		add("severity", rapid.OneOf(someText, someText, someOther))
		add("blocking", someOther)
		add("file", rapid.OneOf(someText, someText, someOther))
		add("line", someOther)
		add("commit", rapid.OneOf(someCommit, someText, someOther))
		add("commits", rapid.OneOf(someList, rapid.Custom(func(t *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfN(someCommit, 0, 14).Draw(t, "commits"), ",") + "]"
		})))
		members = append(members, fmt.Sprintf(`"event_type":%q`, someType.Draw(t, "type")))
		return "{" + strings.Join(rapid.Permutation(members).Draw(t, "order"), " , ") + "}"
	})
)

// TestModel compares Summarize with the model.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "messages")
		if rapid.IntRange(0, 20).Draw(t, "many") == 0 {
			n = 300
		}
		first := uint64(rapid.IntRange(1, 3).Draw(t, "first"))
		var window []Message
		for i := range n {
			m := Message{Seq: first + uint64(i), ID: fmt.Sprintf("m%d", i), Sender: "an agent", Kind: someKind.Draw(t, "kind"), Body: []byte(someBody.Draw(t, "body"))}
			if rapid.IntRange(0, 9).Draw(t, "metadata") > 0 {
				m.Metadata = []byte(someMeta.Draw(t, "metadata"))
			}
			if rapid.Bool().Draw(t, "reply") {
				m.InReplyTo = fmt.Sprintf("m%d", rapid.IntRange(max(0, i-5), i+1).Draw(t, "reply"))
			}
			window = append(window, m)
		}
		latest, status := first+uint64(n)-1, someStatus.Draw(t, "status")
		got, want := Summarize(window, latest, status), modelSummary(window, latest, status)
		if got.Text != want.Text || !slices.Equal(got.OpenItems, want.OpenItems) {
			t.Fatalf("got  %q\n     %q\nwant %q\n     %q", got.Text, got.OpenItems, want.Text, want.OpenItems)
		}
		checkBounds(t, got)
	})
}

// failer is a test or a property.
type failer interface{ Fatalf(string, ...any) }

// checkBounds fails unless a summary keeps its bounds, each part of it one line in UTF-8.
func checkBounds(t failer, s Summary) {
	if len(s.Text) > maxText || len(s.OpenItems) > maxItems || s.OpenItems == nil {
		t.Fatalf("%d bytes, %d items", len(s.Text), len(s.OpenItems))
	}
	for _, text := range append([]string{s.Text}, s.OpenItems...) {
		if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.ContainsAny(text, "\u2028\u2029") {
			t.Fatalf("not a line: %q", text)
		}
		if most := 4 * (2*maxField + itemExcerpt + 50); len(text) > max(most, maxText) {
			t.Fatalf("%d bytes in a line", len(text))
		}
	}
}
