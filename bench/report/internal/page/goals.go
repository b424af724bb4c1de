package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/bench/internal/goal"
)

// aim is one of the project's performance goals in words. What is asked in figures stands beside
// what was measured.
type aim struct{ id, what string }

// allocationsAim is evaluated by the questions, unlike the others, which the commands evaluate.
const allocationsAim = "G6"

// aims are all goals, in order.
func aims() []aim {
	return []aim{
		{"G1", "hot kernel method, 64 connections × 64 in flight: server CPU per request against the bare constant-reply server"},
		{"G2", "the same against GET of redis-server, or of redcon where that is not installed"},
		{"G3", "the same, server CPU per request, against grpc-go unary"},
		{"G4", "one in flight, 64 and 1000 connections: requests/s against bare gnet"},
		{"G5", "growth of server CPU per request from 10k to 10M rows"},
		{allocationsAim, "heap allocations per hot request, frame in to reply out"},
		{"G7", "worst pause and CPU share of garbage collection with 1M live rows under load"},
		{"G8", "p99 at half of the maximum load against bare gnet at the same rate"},
		{"G9", "server CPU per delivered event to 100 subscribers, in µs"},
		{"G10", "memory per idle connection and per live process row with 36-byte ids"},
		{"G11", "requests/s against another kernel server of the same protocol, 64 in flight"},
	}
}

// otherServer is the goal that needs a server from elsewhere.
const otherServer = "G11"

// found collects what the runs hold about one goal; several entries if it has several parts.
func (b *builder) found(id string) (all []goal.Goal) {
	for _, name := range slices.Sorted(maps.Keys(b.set.Runs)) {
		for _, g := range b.set.Runs[name].Goals {
			if g.ID == id {
				all = append(all, g)
			}
		}
	}
	if id == allocationsAim && b.set.Questions != nil {
		all = append(all, b.allocations())
	}
	return all
}

// goals is the table of all goals.
func (b *builder) goals() string {
	t := newTable("goal", "what", "asked", "measured", "verdict")
	for _, a := range aims() {
		entries := b.found(a.id)
		if len(entries) == 0 {
			t.row(a.id, a.what, "", "", unmeasured(a.id))
		}
		for _, g := range entries {
			what := a.what
			if len(entries) > 1 || len(g.What) > len(what) { // the run shows more: which part, at which rate
				what = g.What
			}
			said := verdict(g.Verdict)
			if g.Verdict == goal.None {
				said = unmeasured(a.id)
			}
			t.row(a.id, what, asked(&g), measured(&g), said)
		}
	}
	return t.String()
}

func unmeasured(id string) string {
	if id == otherServer {
		return "not measured: no such server was given"
	}
	return verdict(goal.None)
}

// misses are the notes on goals that were missed, each below a heading of its own.
func (b *builder) misses() (string, error) {
	var parts []string
	for _, a := range aims() {
		missed := goal.Missed(b.found(a.id))
		if !missed {
			continue
		}
		note, err := b.note(a.id)
		if err != nil {
			return "", err
		}
		parts = append(parts, fmt.Sprintf("### %s is missed: why", a.id), or(note, "Not looked into yet."))
	}
	return strings.Join(parts, "\n\n"), nil
}

// asked is the bound of a goal and its moonshot.
func asked(g *goal.Goal) string {
	sign := "≤ "
	if g.AtLeast {
		sign = "≥ "
	}
	switch {
	case g.ID == allocationsAim:
		return "0"
	case g.Must == 0:
		return ""
	case g.Moonshot == 0:
		return sign + exact(g.Must)
	}
	return sign + exact(g.Must) + " (moonshot " + exact(g.Moonshot) + ")"
}

// measured is the worst member of a goal, and all of them if there are several.
func measured(g *goal.Goal) string {
	write := figure
	if g.ID == allocationsAim {
		write = exact
	}
	names := slices.Sorted(maps.Keys(g.Members))
	switch len(names) {
	case 0:
		return write(g.Measured)
	case 1:
		return "**" + write(g.Measured) + "** (" + names[0] + cpu(g, names[0]) + ")"
	}
	var list []string
	for _, name := range names {
		list = append(list, name+" "+write(g.Members[name])+cpu(g, name))
	}
	return "**" + write(g.Measured) + "**: " + strings.Join(list, " · ")
}

// cpu is the ratio of CPU time that is reported beside a member, if there is one.
func cpu(g *goal.Goal, member string) string {
	if g.CPU[member] == 0 {
		return ""
	}
	return ", CPU " + times(g.CPU[member])
}

// verdict is a verdict in the page's words.
func verdict(v goal.Verdict) string {
	switch v {
	case goal.Pass:
		return "holds"
	case goal.Moonshot:
		return "holds, moonshot reached"
	case goal.Miss:
		return "**missed**"
	case goal.Reported:
		return "reported"
	}
	return "not measured"
}
