package page

import (
	"cmp"
	"fmt"
	"strings"

	"trunkline/bench/report/internal/figures"
)

// source is one kind of figures: the name of its file and the command that makes it.
type source struct{ name, command, what string }

// questionsSource is the one source that is no run.
func questionsSource() source { return source{"questions", "make bench", "what each step costs"} }

// sources are all kinds of figures, in the order of the page.
func sources() []source {
	return []source{
		{"peers", "make bench-peers", "peers"},
		{"scale", "make bench-scale", "scaling story, tuning"},
		questionsSource(),
		{"envelope", "make bench-envelope", "envelopes"},
		{"sessions", "make bench-sessions", "sessions"},
		{"store", "make bench-store", "the store"},
		{"threads", "make bench-threads", "agent threads"},
		{"projects", "make bench-projects", "projects"},
		{"toolhost", "make bench-toolhost", "tools"},
		{"soak", "make soak", "a minute of everything"},
		{"hostile", "make hostile", "hostile peers"},
	}
}

func commandOf(name string) string {
	for _, s := range sources() {
		if s.name == name {
			return s.command
		}
	}
	return ""
}

// runs is the table of what was measured when, on what, and how often.
func (b *builder) runs() string {
	t := newTable("figures", "command", "date", "revision", "machine", "rounds")
	for _, s := range sources() {
		run, outputs := b.set.Runs[s.name], b.set.Outputs[s.name]
		switch {
		case s == questionsSource() && b.set.Questions != nil:
			q := b.set.Questions
			t.row(s.what, "`"+s.command+"`", q.Machine.Date, code(q.Machine.Revision), machine(q.Machine), fmt.Sprintf("%d of %.2g s", q.Rounds, q.Benchtime))
		case run != nil:
			t.row(s.what, "`"+s.command+"`", run.Machine.Date, code(run.Machine.Revision), machine(run.Machine), rounds(run))
		case len(outputs) > 0:
			o := outputs[0]
			t.row(s.what, code(cmp.Or(o.Command, s.command)), or(o.Date, "not recorded"), or(code(o.Revision), "not recorded"), "as printed", "as printed")
		default:
			t.row(s.what, "`"+s.command+"`", "not measured", "", "", "")
		}
	}
	return t.String()
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// machine describes a machine in one line.
func machine(m figures.Machine) string {
	parts := []string{fmt.Sprintf("%d CPUs", m.CPUs), m.OS + "/" + m.Arch + " " + m.Kernel, m.Go}
	if m.Disk != "" {
		parts = append(parts, "stores on "+m.Disk)
	}
	return strings.Join(append(parts, "load average "+m.Load), ", ")
}

// rounds reports how often and how long each cell was measured.
func rounds(run *figures.Run) string {
	s := run.Settings
	if s.Rounds == 0 {
		return "see there"
	}
	text := fmt.Sprintf("%d", s.Rounds)
	if s.Window > 0 {
		text += fmt.Sprintf(" of %.2g s", s.Window)
	}
	if run.GridRounds > 0 {
		text += fmt.Sprintf(", %d of what no goal is about", run.GridRounds)
	}
	if s.Loops > 0 {
		text += fmt.Sprintf(", loops %d", s.Loops)
	}
	return text
}
