package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// stages returns the stages of a session with what became of each.
func stages(s *Session) (list []stageView) {
	hops := map[string]int64{}
	for edge, n := range s.Edges {
		if _, to, ok := strings.Cut(edge, "->"); ok {
			hops[to] += n
		}
	}
	for i, name := range s.StageOrder {
		v := stageView{Name: name, Order: i + 1, Entered: hops[name], Current: name == s.CurrentStage}
		list = append(list, v)
	}
	return list
}

// stageView is a stage of a session.
type stageView struct {
	Order   int
	Name    string
	Entered int64 // by a hop
	Current bool
}

// edges returns the hops of a session, the most frequent first.
func edges(s *Session) (list []total) {
	for name, n := range s.Edges {
		list = append(list, total{name, n, group(fmt.Sprint(n))})
	}
	slices.SortFunc(list, func(a, b total) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxRows)]
}

// moment is an entry of the timeline of a session.
type moment struct {
	At   time.Time `json:"at,omitzero"` // zero: the entry has no time
	What string    `json:"what"`
	// Where is a stage or an agent; empty where the entry names none.
	Where string `json:"where"`
	// Detail is the rest of the entry, as JSON in one line.
	Detail string `json:"detail"`
}

// envelopeTimes is what the timeline takes from an envelope, in either of its shapes (envelope §3).
type envelopeTimes struct {
	ReceivedAt string            `json:"received_at"`
	CreatedAt  string            `json:"created_at"`
	Completed  string            `json:"completed_at"`
	History    []json.RawMessage `json:"processing_history"`
	Errors     []json.RawMessage `json:"errors"`
	Audit      struct {
		CreatedAt string            `json:"created_at"`
		Completed string            `json:"completed_at"`
		History   []json.RawMessage `json:"processing_history"`
		Errors    []json.RawMessage `json:"errors"`
	} `json:"audit"`
}

// Names under which entries of a history have what a timeline shows. Entries are maps of the
// programs that wrote them, so these are the usual names only; the rest is shown as it is.
var (
	timeNames  = []string{"timestamp", "at", "completed_at", "started_at", "created_at"}
	placeNames = []string{"stage", "agent", "agent_name", "stage_name", "name"}
	eventNames = []string{"event", "status", "action", "result", "error", "message"}
)

// timeline returns the ways of an envelope, oldest first; what has no time keeps its place. At most
// maxRows entries are there, the last ones.
func timeline(envelope json.RawMessage) []moment {
	var e envelopeTimes
	if json.Unmarshal(envelope, &e) != nil {
		return []moment{}
	}
	list := []moment{}
	fixed := func(what, text string) {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			list = append(list, moment{At: at, What: what})
		}
	}
	fixed("received", e.ReceivedAt)
	fixed("created", cmp.Or(e.CreatedAt, e.Audit.CreatedAt))
	for _, raw := range latest(append(e.History, e.Audit.History...)) {
		list = append(list, entry(raw, "step"))
	}
	for _, raw := range latest(append(e.Errors, e.Audit.Errors...)) {
		list = append(list, entry(raw, "error"))
	}
	fixed("completed", cmp.Or(e.Completed, e.Audit.Completed))
	var last time.Time
	order := make([]time.Time, 0, len(list)) // those without a time stay behind the entry before
	for i := range list {
		if !list[i].At.IsZero() {
			last = list[i].At
		}
		order = append(order, last)
	}
	index := make([]int, len(list))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int { return order[a].Compare(order[b]) })
	sorted := make([]moment, len(list))
	for i, from := range index {
		sorted[i] = list[from]
	}
	return sorted[max(0, len(sorted)-maxRows):]
}

// latest returns the last entries of a list that grows at its end, as many as a page shows.
func latest(list []json.RawMessage) []json.RawMessage { return list[max(0, len(list)-maxRows):] }

// entry reads an entry of a history.
func entry(raw json.RawMessage, what string) moment {
	m := moment{What: what}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		m.Detail = oneLine(raw)
		return m
	}
	m.At, _ = time.Parse(time.RFC3339, take(fields, timeNames))
	m.Where = clip(take(fields, placeNames))
	if event := take(fields, eventNames); event != "" {
		m.What = clip(event)
	}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		rest = append(rest, name+": "+oneLine(fields[name]))
	}
	m.Detail = clip(strings.Join(rest, ", "))
	return m
}

// take removes the first of some fields that is a text, and returns it.
func take(fields map[string]json.RawMessage, names []string) (text string) {
	for _, name := range names {
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, &text) == nil && text != "" {
			delete(fields, name)
			return text
		}
	}
	return ""
}

// oneLine returns JSON without its white space.
func oneLine(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return clip(string(raw))
	}
	return clip(b.String())
}

// maxDetail bounds a text in one row, in bytes.
const maxDetail = 4 << 10

// clip returns a text of at most maxDetail bytes.
func clip(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + " …"
}
