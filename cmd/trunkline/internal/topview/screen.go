package topview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/benchview"
	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/engine/obs"
)

// screen is what is shown, without where it is shown.
type screen struct {
	target string
	every  time.Duration
	sample *Sample // nil before the first interval is over
	err    error   // of the last question
	order  Order
	paused bool
	help   bool
	from   int // the first method that is shown
}

// The least that a terminal has.
const (
	minWidth  = 20
	minHeight = 4
)

// lines draws the screen: at most height lines of at most width cells.
func (s *screen) lines(width, height int) []benchview.Line {
	width, height = max(width, minWidth), max(height, minHeight)
	out := s.head(width)
	if s.sample != nil {
		out = append(out, s.counts(width)...)
	}
	keys := s.keys(width)
	room := max(height-len(out)-len(keys)-1, 0)
	if s.sample != nil && room > 1 {
		out = append(out, nil)
		out = append(out, s.methods(width, room)...)
	}
	return append(out[:min(len(out), height-len(keys))], keys...)
}

// head is which server this is, and what is wrong with it.
func (s *screen) head(width int) []benchview.Line {
	state := "every " + s.every.String()
	if s.paused {
		state = "paused"
	}
	items := []benchview.Span{{Text: s.target, As: benchview.Strong}, {Text: state}}
	if sm := s.sample; sm != nil {
		items = append(items, benchview.Span{Text: "up " + ageText(sm.UptimeSeconds)}, benchview.Span{Text: benchview.Clean(sm.Version)}, benchview.Span{Text: sm.At.Local().Format(time.TimeOnly)})
	}
	out := []benchview.Line{benchview.Labelled(width, "top", items...)}
	switch {
	case s.err != nil:
		out = append(out, benchview.Labelled(width, "error", benchview.Span{Text: benchview.Clean(s.err.Error()), As: benchview.Bad}))
	case s.sample == nil:
		out = append(out, benchview.Labelled(width, "ready", benchview.Span{Text: "waiting for the first interval", As: benchview.Faint}))
	case !s.sample.Ready:
		out = append(out, benchview.Labelled(width, "ready", benchview.Span{Text: "no: " + benchview.Clean(strings.Join(s.sample.Reasons, ", ")), As: benchview.Bad}))
	default:
		out = append(out, benchview.Labelled(width, "ready", benchview.Span{Text: "yes", As: benchview.Good}))
	}
	if s.sample != nil {
		out = append(out, cluster(width, s.sample.Cluster)...)
	}
	return out
}

// cluster is what the server is in its cluster; no line where it has none.
func cluster(width int, st *obs.Standing) []benchview.Line {
	switch text := st.Standby(); {
	case st == nil:
		return nil
	case text != "":
		return []benchview.Line{benchview.Labelled(width, "cluster", benchview.Span{Text: benchview.Clean(text)}, benchview.Span{Text: "clients are seen at the owner"})}
	}
	return []benchview.Line{benchview.Labelled(width, "cluster", benchview.Span{Text: benchview.Clean(st.Node) + " owns the journal"})}
}

// counts are the lines between the head and the methods.
func (s *screen) counts(width int) []benchview.Line {
	sm := s.sample
	share := ""
	if sm.Errors > 0 && sm.Requests > 0 {
		share = fmt.Sprintf(" (%.2g %%)", min(100*sm.Errors/sm.Requests, 100))
	}
	kernel := append([]benchview.Span{{Text: "queue " + benchview.CountText(sm.QueueDepth), As: benchview.Strong}, {Text: "sessions " + benchview.CountText(sm.Sessions)}}, counted(sm.Processes, true)...)
	events := []benchview.Span{{Text: "published " + perSecond(sm.Published)}, {Text: "dropped " + perSecond(sm.Dropped), As: alarm(sm.Dropped > 0)},
		{Text: "subscribers " + benchview.CountText(sm.Subscribers)}}
	if sm.Cluster != nil && sm.Cluster.Role != obs.RoleOwner { // it does not look at its tables
		kernel, events = []benchview.Span{{Text: "at the owner"}}, []benchview.Span{{Text: "at the owner"}}
	}
	return []benchview.Line{
		benchview.Labelled(width, "load", benchview.Span{Text: "requests " + perSecond(sm.Requests), As: benchview.Strong},
			benchview.Span{Text: "errors " + perSecond(sm.Errors) + share, As: alarm(sm.Errors > 0)},
			benchview.Span{Text: "in " + bytesText(sm.BytesIn) + "/s"}, benchview.Span{Text: "out " + bytesText(sm.BytesOut) + "/s"}),
		benchview.Labelled(width, "conns", counted(sm.Connections, false)...),
		benchview.Labelled(width, "kernel", kernel...),
		benchview.Labelled(width, "events", events...),
		s.store(width),
	}
}

// store is how far the store is behind.
func (s *screen) store(width int) benchview.Line {
	sm := s.sample
	items := []benchview.Span{{Text: benchview.Clean(sm.StoreMode)}}
	if sm.Refusing {
		items = append(items, benchview.Span{Text: "changes are refused", As: benchview.Bad})
	}
	if sm.StoreMode != "memory" {
		items = append(items, benchview.Span{Text: "lag " + benchview.CountText(int64(sm.LagRecords)) + " records"},
			benchview.Span{Text: "queue " + bytesText(float64(sm.QueueBytes))})
	}
	return benchview.Labelled(width, "store", items...)
}

// counted lists named numbers: the greatest first, or by name. With busy, those that are 0 are left
// out.
func counted(by map[string]int64, busy bool) (out []benchview.Span) {
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		if busy {
			return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
		}
		return cmp.Compare(a, b)
	})
	for _, n := range names {
		if by[n] != 0 || !busy {
			out = append(out, benchview.Span{Text: strings.ToLower(benchview.Clean(n)) + " " + benchview.CountText(by[n])})
		}
	}
	return out
}

// methods is the table, as far as it fits into so many lines.
func (s *screen) methods(width, room int) []benchview.Line {
	all := s.sample.Methods
	if len(all) == 0 {
		return []benchview.Line{{{Text: "no method was called yet", As: benchview.Faint}}}
	}
	s.from = max(min(s.from, len(all)-(room-1)), 0)
	shown := all[s.from:min(len(all), s.from+room-1)]
	cols := []benchview.Column{
		{Head: "method"}, {Head: "protocol", Drop: 9}, {Head: s.mark(ByRate, "req/s")}, {Head: s.mark(ByErrors, "err/s"), Drop: 2},
		{Head: s.mark(ByMean, "mean"), Drop: 4}, {Head: "p50", Drop: 6}, {Head: s.mark(ByP99, "p99")}, {Head: "p99.9", Drop: 5},
		{Head: "count", Drop: 7}, {Head: "errors", Drop: 8},
	}
	for i := range cols[2:] {
		cols[i+2].Head = fmt.Sprintf("%*s", numberCells, cols[i+2].Head)
	}
	rows := make([][]string, len(shown))
	for i := range shown {
		m := &shown[i]
		rows[i] = []string{benchview.Clean(m.Method), benchview.Clean(m.Protocol), benchview.RateText(tenths(m.Rate)), benchview.RateText(tenths(m.Errors)),
			latency(m.Mean), latency(m.P50), latency(m.P99), latency(m.P999), benchview.CountText(int64(m.Count)), benchview.CountText(int64(m.Failed))}
	}
	texts := benchview.Table(width, cols, rows)
	out := make([]benchview.Line, len(texts))
	for i, text := range texts {
		out[i] = benchview.Line{{Text: text}}
	}
	out[0][0].As = benchview.Faint
	for i := range shown {
		if shown[i].Errors > 0 {
			out[i+1][0].As = benchview.Bad
		}
	}
	return out
}

// numberCells is the width of a column of numbers: wide enough that columns stand still.
const numberCells = 8

// mark marks the column that the methods are sorted by.
func (s *screen) mark(by Order, head string) string {
	if s.order == by {
		return "▼" + head
	}
	return head
}

// keys are the lines at the bottom.
func (s *screen) keys(width int) []benchview.Line {
	if !s.help {
		return []benchview.Line{benchview.Labelled(width, "keys", faint("q quit", "space pause", "s sort: "+string(s.order), "↑↓ scroll", "h help")...)}
	}
	return []benchview.Line{
		benchview.Labelled(width, "keys", faint("q quit", "space pause or go on", "h close this help")...),
		benchview.Labelled(width, "sort", faint("r rate", "e errors", "m mean", "9 p99", "n name", "s next")...),
		benchview.Labelled(width, "scroll", faint("↑ k", "↓ j", "g first")...),
		benchview.Labelled(width, "note", faint("all but count and errors are of this interval")...),
	}
}

func faint(texts ...string) []benchview.Span {
	out := make([]benchview.Span, len(texts))
	for i, t := range texts {
		out[i] = benchview.Span{Text: t, As: benchview.Faint}
	}
	return out
}

func alarm(is bool) benchview.Style {
	if is {
		return benchview.Bad
	}
	return benchview.Plain
}

func perSecond(v float64) string { return benchview.RateText(tenths(v)) + "/s" }

// tenths leaves one decimal of a small rate: more is noise of the interval.
func tenths(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }

func bytesText(n float64) string { return cli.Bytes(uint64(max(n, 0))) }

// latency is a time in seconds, a dash where there is none.
func latency(secs float64) string {
	if secs <= 0 {
		return "-"
	}
	return benchview.LatencyText(int64(secs * 1e9))
}

// ageText is how long something has lasted: the two greatest units.
func ageText(secs float64) string {
	d := time.Duration(secs) * time.Second
	switch days := d / (24 * time.Hour); {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.String()
}
