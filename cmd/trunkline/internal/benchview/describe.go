package benchview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"trunkline/cmd/trunkline/internal/loadgen"
)

// address is where a target listens, fit to show: without the user name, the password and the query
// of a URL, where secrets are put.
func address(t loadgen.Target) string {
	scheme, rest, ok := strings.Cut(t.Addr, "://")
	if !ok || scheme == "unix" {
		return clean(t.Addr)
	}
	rest, _, asks := strings.Cut(rest, "?")
	host, path, slash := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if slash {
		host += "/" + path
	}
	if asks {
		host += "?…"
	}
	return clean(scheme + "://" + host)
}

func targetText(t loadgen.Target) string { return clean(t.Protocol) + " " + address(t) }

func connsText(p *loadgen.Plan) string {
	noun := "connections"
	if p.Conns == 1 {
		noun = "connection"
	}
	return fmt.Sprintf("%s %s × depth %s", countText(int64(p.Conns)), noun, countText(int64(p.Depth)))
}

// scheduleText is the schedule with its bounds: what the run was asked for.
func scheduleText(p *loadgen.Plan) string {
	var b strings.Builder
	switch p.Schedule.Kind {
	case loadgen.Ramp:
		fmt.Fprintf(&b, "ramp from %s/s to %s/s", rateText(p.Schedule.From), rateText(p.Schedule.To))
	case loadgen.Max:
		b.WriteString("as fast as it goes")
	default:
		fmt.Fprintf(&b, "constant %s/s", rateText(p.Schedule.To))
	}
	if p.Timed() {
		b.WriteString(" for " + spanText(p.Duration))
	}
	if p.Count > 0 {
		b.WriteString(", at most " + countText(p.Count) + " requests")
	}
	if p.Warmup > 0 {
		b.WriteString(", after " + spanText(p.Warmup) + " of warm-up")
	}
	return b.String()
}

// kind names a schedule for programs, as --rate would spell it.
func kind(k loadgen.ScheduleKind) string {
	switch k {
	case loadgen.Ramp:
		return "ramp"
	case loadgen.Max:
		return "max"
	}
	return "constant"
}

// counted is a code or a name and how often it came.
type counted struct {
	name string
	n    int64
}

// byCount sorts codes: the most frequent first, equal ones by name.
func byCount(errs map[string]int64) []counted {
	out := make([]counted, 0, len(errs))
	for name, n := range errs {
		if n > 0 {
			out = append(out, counted{name, n})
		}
	}
	slices.SortFunc(out, func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
	})
	return out
}

// methods lists the names of s in the order of the mix, then what the mix does not name, sorted.
// Each comes once.
func methods(p *loadgen.Plan, by map[string]*loadgen.MethodSample) []string {
	out := make([]string, 0, len(by))
	for _, sh := range p.Mix {
		if by[sh.Name] != nil && !slices.Contains(out, sh.Name) {
			out = append(out, sh.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if by[name] != nil && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
