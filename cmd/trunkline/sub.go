package main

import (
	"context"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/handlers/ipc/client"
)

// subFlags are the arguments of sub beside its event types.
type subFlags struct {
	peerFlags
	count      int
	subscriber string
}

func newSubCmd() *cobra.Command {
	var f subFlags
	cmd := &cobra.Command{
		Use:   "sub TYPE...",
		Short: "Print events as they are published",
		Long: "Subscribe to event types and print one JSON object per event and line, until SIGINT, SIGTERM or --count events.\n" +
			"Events the server had to drop, because this side was too slow, are reported on stderr.",
		Example: "  trunkline sub process.created process.terminated\n  trunkline sub job.done --count 1 | jq .payload",
		Args:    cobra.MinimumNArgs(1),
	}
	f.add(cmd, callTimeout)
	cmd.Flags().IntVarP(&f.count, "count", "n", 0, "end after this many events; 0 goes on")
	cmd.Flags().StringVar(&f.subscriber, "subscriber-id", "", "name of the subscription (default made up by the server)")
	cmd.RunE = func(cmd *cobra.Command, types []string) error { return runSub(cmd, &f, types) }
	return cmd
}

func runSub(cmd *cobra.Command, f *subFlags, types []string) error {
	if f.count < 0 {
		return cli.Errorf(cli.CodeUsage, "cannot use --count %d: it must not be negative", f.count)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	opening, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	conn, err := f.dial(opening, cmd)
	if err != nil {
		return endedBySignal(ctx, err)
	}
	defer conn.Close()
	sub, err := conn.Subscribe(opening, client.Subscribe{EventTypes: types, SubscriberID: f.subscriber})
	if err != nil {
		return endedBySignal(ctx, callError(f.explain(err), methodOf("commbus", "Subscribe")))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "trunkline: subscribed to %d event types as %s\n", len(types), sub.Name)
	return endedBySignal(ctx, f.print(ctx, cmd, sub))
}

// endedBySignal makes the end by signal a success: it is how one stops this verb.
func endedBySignal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (f *subFlags) print(ctx context.Context, cmd *cobra.Command, sub *client.Subscription) error {
	printed := 0
	for event, err := range sub.All(ctx) {
		if err != nil {
			return callError(f.explain(err), methodOf("commbus", "Subscribe"))
		}
		shown, err := showEvent(cmd.OutOrStdout(), cmd.ErrOrStderr(), &event)
		if err != nil {
			return err
		}
		if printed += shown; printed == f.count && shown > 0 {
			return sub.Close()
		}
	}
	return cli.Errorf(cli.CodeUnavailable, "the server ended the subscription").WithHint("it is shutting down, or another subscription took over this subscriber id")
}

// showEvent prints an event as a line of out, or a gap mark as a warning to talk; shown
// is the number of lines.
func showEvent(out, talk io.Writer, e *client.Event) (shown int, err error) {
	if dropped, ok := client.Gap(e); ok {
		_, err := fmt.Fprintf(talk, "trunkline: warning: %d events are missing here, the server dropped them\n", dropped)
		return 0, err
	}
	return 1, writeEvent(out, e)
}

// writeEvent prints an event as one line; a payload that is no JSON becomes a string.
func writeEvent(w io.Writer, e *client.Event) error {
	line := jsonx.Build(nil).Text("event_type", e.EventType)
	if payload := []byte(e.Payload); jsonx.Check(payload, jsonx.MaxDepth).OK() {
		line = line.Raw("payload", jsonx.Compact(payload))
	} else {
		line = line.Text("payload", e.Payload)
	}
	return writeLine(w, line.Int("timestamp_ms", e.TimestampMS).Text("source", e.Source).End())
}

func newPubCmd() *cobra.Command {
	var f peerFlags
	var source string
	cmd := &cobra.Command{
		Use:   "pub TYPE [JSON]",
		Short: "Publish an event",
		Long: "Publish an event and print how many subscriptions took it. The payload is any JSON value, - reads it from stdin,\n" +
			"without one it is {}. No subscription is no error.",
		Example: "  trunkline pub job.done '{\"job\":7}'\n  trunkline pub tick",
		Args:    cobra.RangeArgs(1, 2),
	}
	f.add(cmd, callTimeout)
	cmd.Flags().StringVar(&source, "source", "", "name of the publisher, part of the event")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return runPub(cmd, &f, source, args) }
	return cmd
}

func runPub(cmd *cobra.Command, f *peerFlags, source string, args []string) error {
	payload, err := argument(cmd, args[1:], "{}")
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		return cli.Errorf(cli.CodeUsage, "cannot publish an empty payload").WithHint("leave it out for {}, or give any JSON value")
	}
	var done client.Delivery
	err = f.with(cmd, func(ctx context.Context, conn *client.Conn) error {
		done, err = conn.Publish(ctx, client.Publish{EventType: args[0], Payload: string(payload), Source: source})
		return err
	})
	if err != nil {
		return callError(err, methodOf("commbus", "Publish"))
	}
	line := fmt.Appendf(nil, "delivered %d", done.Delivered)
	if cli.JSON(cmd) {
		line = fmt.Appendf(nil, `{"delivered":%d}`, done.Delivered)
	}
	return writeLine(cmd.OutOrStdout(), line)
}
