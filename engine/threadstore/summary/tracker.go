package summary

import (
	"cmp"
	"strings"

	"trunkline/codec/jsonx"
)

// maxHops is how many replies are followed to a report.
const maxHops = 64

// maxField is the most characters of a severity or a file in an item.
const maxField = 256

// The members of metadata that are read, as indexes of fieldNames.
const (
	fieldEventType = iota
	fieldFindingID
	fieldFindingIDs
	fieldTaskID
	fieldSeverity
	fieldBlocking
	fieldFile
	fieldLine
	fieldCommit
	fieldCommits
	numFields
)

var fieldNames = []string{
	"event_type", "finding_id", "finding_ids", "task_id", "severity", "blocking", "file", "line", "commit", "commits",
}

// state is how far a finding is. All but resolved are open.
type state uint8

const (
	open state = iota
	fixPushed
	rejected
	resolved
)

var stateNames = [...]string{open: "open", fixPushed: "fix pushed", rejected: "rejected"}

type finding struct {
	message  *Message // the last report
	severity string
	blocking bool
	file     jsonx.Value
	place    place
	state    state
	pushes   []int // of fixes, as indexes of tracker.pushes
}

// place is what a finding is about. Numbers stand for strings, so that long ones are compared once:
// 0 is none, unknown one that no finding has.
type place struct {
	task, file int
	line       int64
	hasLine    bool
}

const unknown = -1

// covers reports whether f has all that p gives.
func (p *place) covers(f *place) bool {
	return p.task == f.task && (p.file == 0 || p.file == f.file) && (!p.hasLine || f.hasLine && p.line == f.line)
}

// push is where the commits of a fix are.
type push struct{ commit, commits jsonx.Value }

// link is where the reply of a message leads, as an index of the window, and which finding the
// message reports; -1 for none.
type link struct{ parent, finding int }

// tracker follows the findings of a window, message by message. Its work for a message is linear in
// the metadata and in the number of messages. The commits of fixes are read at the end, once each.
type tracker struct {
	window      []Message
	at          map[string]int // the window by identifier, up to the message being read
	links       []link
	findings    []finding // in the order of their first reports
	byID        map[string]int
	names       map[string]int // the numbers of tasks and files in findings
	pushes      []push
	escalations int
	escalation  *Message // the last one, without a resolution behind it

	fields  [numFields]jsonx.Value // of the message being read
	scratch []byte
}

func newTracker(window []Message) *tracker {
	return &tracker{
		window: window,
		at:     make(map[string]int, len(window)),
		links:  make([]link, len(window)),
		byID:   make(map[string]int),
		names:  make(map[string]int),
	}
}

// read follows the message at i.
func (t *tracker) read(i int) {
	m := &t.window[i]
	t.links[i] = link{-1, -1}
	if parent, ok := t.at[m.InReplyTo]; ok {
		t.links[i].parent = parent
	}
	if m.Kind == "event" || m.Kind == "system" {
		t.event(i, m)
	}
	if m.ID != "" {
		t.at[m.ID] = i
	}
}

func (t *tracker) event(i int, m *Message) {
	jsonx.Pick(m.Metadata, fieldNames, t.fields[:])
	switch string(t.unescape(t.fields[fieldEventType])) {
	case "finding_reported":
		t.links[i].finding = t.report(m)
	case "fix_pushed":
		t.fix(i)
	case "finding_verified":
		t.targets(i, false, func(f *finding) { f.state = resolved })
	case "finding_rejected":
		t.targets(i, false, func(f *finding) { f.state = rejected })
	case "thread_escalated":
		t.escalations++
		t.escalation = m
	case "thread_resolved":
		t.escalation = nil
		for j := range t.findings {
			t.findings[j].state = resolved
		}
	}
}

// unescape returns the meaning of a string, empty for any other value. It is valid until the next
// call.
func (t *tracker) unescape(v jsonx.Value) []byte {
	if v.Kind != jsonx.String || len(v.Raw) < 2 {
		return nil
	}
	t.scratch = jsonx.AppendUnescaped(t.scratch[:0], v.Raw[1:len(v.Raw)-1])
	return t.scratch
}

// report opens the finding of m, or opens it again, and returns its index.
func (t *tracker) report(m *Message) int {
	id := string(t.unescape(t.fields[fieldFindingID]))
	id = cmp.Or(id, m.ID)
	i, ok := t.byID[id]
	if !ok {
		i = len(t.findings)
		t.byID[id] = i
		t.findings = append(t.findings, finding{})
	}
	f := &t.findings[i]
	label := strings.ToLower(squeeze(t.unescape(t.fields[fieldSeverity]), maxField))
	*f = finding{message: m, severity: label, file: t.fields[fieldFile], place: t.place(true), pushes: f.pushes}
	switch t.fields[fieldBlocking].Kind {
	case jsonx.True:
		f.blocking = true
	case jsonx.False:
	default:
		f.blocking = label == "blocker" || label == "blocking" || label == "critical" || label == "high"
	}
	if label == "" {
		f.severity = "unspecified"
	}
	return i
}

// place returns what the message being read is about. A report adds the names it has.
func (t *tracker) place(add bool) (p place) {
	p.task, p.file = t.name(t.fields[fieldTaskID], add), t.name(t.fields[fieldFile], add)
	if v := t.fields[fieldLine]; v.Kind == jsonx.Number {
		p.line, p.hasLine = jsonx.Integral(v.Raw)
	}
	return p
}

func (t *tracker) name(v jsonx.Value, add bool) int {
	text := t.unescape(v)
	if len(text) == 0 {
		return 0
	}
	n, ok := t.names[string(text)]
	switch {
	case ok:
		return n
	case !add:
		return unknown
	}
	t.names[string(text)] = len(t.names) + 1
	return len(t.names)
}

// fix follows a fix that was pushed.
func (t *tracker) fix(i int) {
	index := len(t.pushes)
	t.pushes = append(t.pushes, push{t.fields[fieldCommit], t.fields[fieldCommits]})
	t.targets(i, true, func(f *finding) {
		if f.state == resolved {
			return
		}
		f.state = fixPushed
		if n := len(f.pushes); n == 0 || f.pushes[n-1] != index { // not named twice
			f.pushes = append(f.pushes, index)
		}
	})
}

// targets calls do for each finding that the event at i is about (rule 3). all is what an event
// without any hint is about: every open finding, or the one that is open if it is the only one.
func (t *tracker) targets(i int, all bool, do func(*finding)) {
	if t.named(do) || t.replied(i, do) {
		return
	}
	p := t.place(false)
	var last *finding
	count := 0
	for j := range t.findings {
		f := &t.findings[j]
		if f.state == resolved || p.task != 0 && !p.covers(&f.place) {
			continue
		}
		last = f
		count++
		if all || p.task != 0 {
			do(f)
		}
	}
	if !all && p.task == 0 && count == 1 {
		do(last)
	}
}

// named calls do for the findings that the message being read names, and reports whether it names
// any, known or not.
func (t *tracker) named(do func(*finding)) (any bool) {
	name := func(v jsonx.Value) {
		id := t.unescape(v)
		if len(id) == 0 {
			return
		}
		any = true
		if i, ok := t.byID[string(id)]; ok {
			do(&t.findings[i])
		}
	}
	name(t.fields[fieldFindingID])
	ids := jsonx.OpenArray(t.fields[fieldFindingIDs].Raw)
	for v, ok := ids.Next(); ok; v, ok = ids.Next() {
		name(v)
	}
	return any
}

// replied calls do for the finding of the nearest report that the message at i replies to, and
// reports whether there is one.
func (t *tracker) replied(i int, do func(*finding)) bool {
	hops := 0
	for j := t.links[i].parent; j >= 0 && hops < maxHops; j = t.links[j].parent {
		if f := t.links[j].finding; f >= 0 {
			do(&t.findings[f])
			return true
		}
		hops++
	}
	return false
}
