package console

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"trunkline/engine/obs"
)

// Bounds of samples.
const (
	sampleEvery = time.Second // shortest time between two
	rateOver    = time.Minute // longest time that a rate is of
)

// sampler reads the overview for all who look, and derives rates from earlier readings. Nothing is
// read while there is no viewer.
type sampler struct {
	read func() obs.Overview
	now  func() time.Time

	mu      sync.Mutex
	samples []sample // oldest first, of the last rateOver
	latest  overview
}

// sample is a reading.
type sample struct {
	at       time.Time
	overview obs.Overview
}

// overview is a reading of the whole server with its rates. It is the body of overview.json.
type overview struct {
	obs.Overview
	// Latencies has the busiest methods first.
	Latencies []method `json:"latencies"`
	// Rates are over up to a minute where there are earlier readings, else since the start of the
	// server.
	Rates obs.Rates `json:"rates"`
}

// method is the latency of a method with its rate.
type method struct {
	obs.Latency
	PerSecond float64 `json:"per_second"`
}

// take returns the present reading; one that is younger than sampleEvery serves again.
func (s *sampler) take() overview {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if n := len(s.samples); n > 0 && now.Sub(s.samples[n-1].at) < sampleEvery {
		return s.latest
	}
	next := sample{now, s.read()}
	s.samples = slices.DeleteFunc(s.samples, func(old sample) bool { return now.Sub(old.at) > rateOver })
	var before sample
	if len(s.samples) > 0 {
		before = s.samples[0]
	}
	s.latest = between(&before, &next)
	s.samples = append(s.samples, next)
	return s.latest
}

// between returns the later of two readings with the rates since the earlier one, or since the
// start of the server if that is zero.
func between(from, to *sample) overview {
	secs := to.overview.UptimeSeconds
	if !from.at.IsZero() {
		secs = to.at.Sub(from.at).Seconds()
	}
	o := overview{Overview: to.overview, Latencies: []method{}}
	var was []obs.Latency
	o.Rates, was = to.overview.Since(&from.overview, max(secs, 1e-3))
	for i := range was {
		l := to.overview.Latencies[i]
		o.Latencies = append(o.Latencies, method{l, obs.PerSecond(was[i].Count, l.Count, o.Rates.OverSeconds)})
	}
	slices.SortStableFunc(o.Latencies, func(x, y method) int {
		return cmp.Or(cmp.Compare(y.PerSecond, x.PerSecond), cmp.Compare(y.Count, x.Count), strings.Compare(x.Method, y.Method))
	})
	o.Latencies = o.Latencies[:min(len(o.Latencies), maxMethods)]
	return o
}

// fact is a number with its name. ID names its place on the page, where it is replaced live.
type fact struct {
	ID, Label, Value string
	Bad              bool
	Whole            bool // it has a line of its own
}

// facts returns what the overview shows above its tables.
func (o *overview) facts() []fact {
	slowest := method{}
	for _, m := range o.Latencies {
		if m.P99 > slowest.P99 && m.Protocol != obs.StepProtocol {
			slowest = m
		}
	}
	slow := "no request yet"
	if slowest.Method != "" {
		slow = seconds(slowest.P99) + " (" + slowest.Method + ")"
	}
	list := []fact{
		{ID: "ready", Label: "Ready", Value: o.readiness(), Bad: !o.Ready},
		{ID: "uptime", Label: "Up for", Value: seconds(o.UptimeSeconds)},
		{ID: "requests", Label: "Requests", Value: perSecond(o.Rates.Requests)},
		{ID: "errors", Label: "Errors", Value: perSecond(o.Rates.Errors), Bad: o.Rates.Errors > 0},
		{ID: "slowest", Label: "Highest p99", Value: slow},
		{ID: "queue", Label: "Ready queue", Value: o.held(group(fmt.Sprint(o.QueueDepth)))},
		{ID: "lag", Label: "Durable lag", Value: o.lag(), Bad: o.Refusing},
		{ID: "sessions", Label: "Sessions", Value: o.held(group(fmt.Sprint(o.Sessions)))},
		{ID: "events", Label: "Events", Value: o.held(perSecond(o.Rates.Events))},
		{ID: "dropped", Label: "Events dropped", Value: o.held(group(fmt.Sprint(o.EventsDropped)) + " (" + perSecond(o.Rates.Dropped) + ")"), Bad: o.Rates.Dropped > 0},
		{ID: "subscribers", Label: "Subscribers", Value: o.held(group(fmt.Sprint(o.Subscribers)))},
		{ID: "in", Label: "Received", Value: size(o.Rates.BytesIn) + "/s"},
		{ID: "out", Label: "Sent", Value: size(o.Rates.BytesOut) + "/s"},
	}
	return list
}

// held returns the text of what a table holds. A standby does not look at its own.
func (o *overview) held(text string) string {
	if o.Cluster != nil && o.Cluster.Role != obs.RoleOwner {
		return "at the owner"
	}
	return text
}

func (o *overview) readiness() string {
	if o.Ready {
		return "yes"
	}
	return "no: " + strings.Join(o.Reasons, ", ")
}

func (o *overview) lag() string {
	text := group(fmt.Sprint(o.LagRecords)) + " records, " + size(float64(o.QueueBytes)) + " waiting"
	if o.StoreMode == "memory" {
		text = "nothing is kept (memory)"
	}
	if o.Refusing {
		text += "; changes are refused"
	}
	return text
}

// total is a count of one kind.
type total struct {
	Name  string
	Count int64
	Text  string // it, for people
}

// states returns the processes by state, in the order of a life.
func (o *overview) states() (list []total) {
	for _, state := range processStates {
		n := o.Processes[state]
		list = append(list, total{state, n, o.held(group(fmt.Sprint(n)))})
	}
	return list
}

// protocols returns the open connections by protocol.
func (o *overview) protocols() (list []total) {
	for _, name := range slices.Sorted(maps.Keys(o.Connections)) {
		n := o.Connections[name]
		list = append(list, total{name, n, group(fmt.Sprint(n))})
	}
	return list
}

// texts returns what a live view replaces, by the ID of its place. What begins with "bad-" has no
// place: it is empty unless the fact of that ID is bad.
func (o *overview) texts() map[string]string {
	m := map[string]string{"rates-over": seconds(o.Rates.OverSeconds)}
	addFacts(m, o.facts())
	for _, s := range o.states() {
		m["state-"+s.Name] = s.Text
	}
	for _, p := range o.protocols() {
		m["open-"+p.Name] = p.Text
	}
	return m
}

// addFacts adds the texts of facts.
func addFacts(m map[string]string, facts []fact) {
	for _, f := range facts {
		m["fact-"+f.ID] = f.Value
		if m["bad-"+f.ID] = ""; f.Bad {
			m["bad-"+f.ID] = "yes"
		}
	}
}
