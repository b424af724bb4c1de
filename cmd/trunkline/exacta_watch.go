package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/exacta/client"
)

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
func (p *projectPeer) showEvent(m *client.Message) error {
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
