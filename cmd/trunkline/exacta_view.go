package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/exacta/exactaclient"
)

// paint is how text is shown on an output.
type paint struct {
	w        io.Writer
	terminal bool
	color    bool
}

// Styles of a terminal.
const (
	paintStrong = "1"
	paintFaint  = "2"
	paintRed    = "31"
	paintGreen  = "32"
	paintCyan   = "36"
)

// paintOn returns the paint of the command's stdout.
func paintOn(cmd *cobra.Command) paint {
	w := cmd.OutOrStdout()
	terminal := cli.IsTerminal(w)
	return paint{w, terminal, terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// as returns text in a style.
func (p paint) as(style, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// line writes a line.
func (p paint) line(text string) error {
	if _, err := io.WriteString(p.w, text+"\n"); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// diff writes a diff. On a terminal it has colours, and nothing that a terminal obeys.
func (p paint) diff(text string) error {
	if !p.terminal {
		_, err := io.WriteString(p.w, text)
		return err
	}
	for line := range strings.Lines(text) {
		line = cli.Visible(strings.TrimSuffix(line, "\n"))
		style := ""
		switch {
		case strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ "):
			style = paintStrong
		case strings.HasPrefix(line, "@@"):
			style = paintCyan
		case strings.HasPrefix(line, "+"):
			style = paintGreen
		case strings.HasPrefix(line, "-"):
			style = paintRed
		}
		if style != "" {
			line = p.as(style, line)
		}
		if err := p.line(line); err != nil {
			return err
		}
	}
	return nil
}

// maxShownDiffs bounds the diffs of a plan: no plan has more steps (exacta §4.5).
const maxShownDiffs = 10

// shownPlan is a plan with its diffs, as it is shown.
type shownPlan struct {
	Plan  []byte // the object of PlanProposed
	Diffs []shownDiff
}

// shownDiff is the payload of DiffProposed.
type shownDiff struct {
	StepID string `json:"step_id"`
	Diff   string `json:"diff"`
}

// take adds what an event has of a plan.
func (s *shownPlan) take(m *exactaclient.Message) {
	switch m.Event {
	case "PlanProposed":
		s.Plan, s.Diffs = append([]byte(nil), m.Payload.Object("plan")...), nil
	case "DiffProposed":
		d := shownDiff{m.Payload.Text("step_id"), m.Payload.Text("diff")}
		for i := range s.Diffs {
			if s.Diffs[i].StepID == d.StepID {
				s.Diffs[i] = d // again, when the step runs
				return
			}
		}
		if len(s.Diffs) < maxShownDiffs {
			s.Diffs = append(s.Diffs, d)
		}
	}
}

// show prints a plan with its diffs; status is empty where it is not known.
func (s *shownPlan) show(cmd *cobra.Command, status string) error {
	p, plan := paintOn(cmd), exactaclient.Object(s.Plan)
	head := fmt.Sprintf("Plan %s, version %d, about %d tokens", plan.Text("id"), plan.Int("version"), plan.Int("estimated_tokens"))
	if status != "" {
		head += ", " + status
	}
	if err := p.line(p.as(paintStrong, cli.Visible(head))); err != nil {
		return err
	}
	for _, k := range plan.Objects("constraints") {
		if err := p.line(cli.Visible(k.Text("type") + " " + k.Text("description") + " (" + k.Text("scope") + ")")); err != nil {
			return err
		}
	}
	rows := [][]string{{"STEP", "TYPE", "TARGET", "AFTER", "DESCRIPTION"}}
	order := make(map[string]string)
	for _, step := range plan.Objects("steps") {
		n := strconv.FormatInt(step.Int("order"), 10)
		order[step.Text("id")] = n
		after := "-"
		if deps := step.Texts("dependencies"); len(deps) > 0 {
			for i, id := range deps {
				deps[i] = order[id]
			}
			after = strings.Join(deps, ",")
		}
		rows = append(rows, []string{n, cli.Visible(step.Text("type")), cli.Visible(step.Text("target")), after, cli.Visible(step.Text("description"))})
	}
	if err := cli.Show(cmd, nil, rows); err != nil {
		return err
	}
	for _, d := range s.Diffs {
		if err := p.diff(d.Diff); err != nil {
			return err
		}
	}
	return nil
}

// describe returns an event in words.
func describe(m *exactaclient.Message) string {
	p := m.Payload
	switch m.Event {
	case "StateChanged":
		return p.Text("from") + " -> " + p.Text("to") + " (" + p.Text("trigger") + ")"
	case "PlanProposed":
		plan := p.Object("plan")
		return fmt.Sprintf("plan %s, version %d, steps %d", plan.Text("id"), plan.Int("version"), len(plan.Objects("steps")))
	case "DiffProposed":
		return describeDiff(p.Text("diff"))
	case "StepStarted":
		return fmt.Sprintf("step %d: %s", p.Int("order"), p.Text("description"))
	case "StepCompleted":
		if !p.True("ok") {
			return fmt.Sprintf("failed after %d ms", p.Int("duration_ms"))
		}
		return fmt.Sprintf("done in %d ms", p.Int("duration_ms"))
	case "Progress":
		return fmt.Sprintf("%s %d/%d", p.Text("phase"), p.Int("current"), p.Int("total"))
	case "LogEntry":
		return p.Text("level") + " " + p.Text("component") + ": " + p.Text("message")
	case "ErrorRaised":
		return detailed(exactaclient.ErrorOf(p.Object("error")))
	}
	return ""
}

// describeDiff returns the target of a diff and how many lines come and go.
func describeDiff(diff string) string {
	target, inside, added, removed := "", false, 0, 0
	for line := range strings.Lines(diff) {
		name := strings.TrimSuffix(line[min(4, len(line)):], "\n")
		switch {
		case strings.HasPrefix(line, "@@ "):
			inside = true
		case !inside && name != "/dev/null": // of two headers
			target = name
		case inside && line[0] == '+':
			added++
		case inside && line[0] == '-':
			removed++
		}
	}
	if _, path, ok := strings.Cut(target, "/"); ok {
		target = path // without a/ or b/
	}
	return fmt.Sprintf("%s, %d added, %d removed", target, added, removed)
}

func newExactaWatchCmd() *cobra.Command {
	var after int64
	var number int
	cmd := newOpenProjectCmd(&cobra.Command{
		Use:   "watch",
		Short: "Print the events of a project as they happen",
		Long: "Print the events of a project as they happen, one line each, or one JSON object with --json, until SIGINT, SIGTERM or --count\n" +
			"events. A lost connection is made again, and no event is left out or comes twice: where that is impossible the command fails.\n" +
			"A server that was started again numbers its events from 1; a line on stderr says so.",
		Example: "  trunkline exacta watch\n  trunkline exacta watch --after 0 --json | jq .payload",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		if after < -1 || number < 0 {
			return cli.Errorf(cli.CodeUsage, "cannot use --after %d --count %d: neither can be negative", after, number)
		}
		from := p.project.StreamSeq
		if after >= 0 {
			from = uint64(after)
			if _, err := p.subscribe(ctx, &from); err != nil {
				return err
			}
		}
		f := p.follower(from)
		defer f.Close()
		for n := 0; number == 0 || n < number; n++ {
			m, err := f.Next(ctx)
			if err != nil {
				return err
			}
			if err := p.showEvent(m); err != nil {
				return err
			}
		}
		return nil
	})
	cmd.Flags().Int64Var(&after, "after", -1, "begin behind the event of this number, 0 for all that are kept (default: with the next one)")
	cmd.Flags().IntVarP(&number, "count", "n", 0, "end after this many events; 0 goes on")
	return cmd
}

// showEvent prints an event.
func (p *projectPeer) showEvent(m *exactaclient.Message) error {
	out := paintOn(p.cmd)
	if cli.JSON(p.cmd) {
		return writeLine(out.w, m.Raw)
	}
	style := ""
	switch {
	case m.Event == "ErrorRaised" || m.Event == "StepCompleted" && !m.Payload.True("ok"):
		style = paintRed
	case m.Event == "StateChanged":
		style = paintCyan
	case m.Event == "LogEntry" || m.Event == "Progress":
		style = paintFaint
	}
	text := cli.Visible(describe(m))
	if style != "" {
		text = out.as(style, text)
	}
	return out.line(fmt.Sprintf("%6s  %-13s  %s", strconv.FormatUint(m.StreamSeq, 10), m.Event, text))
}
