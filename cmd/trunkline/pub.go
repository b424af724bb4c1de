package main

import (
	"context"
	"encoding/json"
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

// published is the document of pub --json.
type published struct {
	Delivered int64 `json:"delivered"`
}

func runPub(cmd *cobra.Command, f *peerFlags, source string, args []string) error {
	payload, err := argument(cmd, args[1:], "{}")
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		return cli.Errorf(cli.CodeUsage, "cannot publish an empty payload").WithHint("leave it out for {}, or give any JSON value")
	}
	var done published
	err = f.with(cmd, func(ctx context.Context, conn *client.Conn) error {
		done.Delivered, err = conn.Publish(ctx, client.Publish{EventType: args[0], Payload: string(payload), Source: source})
		return err
	})
	if err != nil {
		return callError(err, methodOf("commbus", "Publish"))
	}
	line := fmt.Appendf(nil, "delivered %d", done.Delivered)
	if cli.JSON(cmd) {
		if line, err = json.Marshal(done); err != nil {
			return fmt.Errorf("cannot print the answer: %w", err)
		}
	}
	return writeLine(cmd.OutOrStdout(), line)
}
