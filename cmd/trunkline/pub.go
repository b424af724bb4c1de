package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/handlers/ipc/client"
)

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
