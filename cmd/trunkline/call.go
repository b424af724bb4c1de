package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/handlers/ipc"
	"trunkline/handlers/ipc/ipcclient"
)

func newCallCmd() *cobra.Command {
	var f peerFlags
	var list bool
	var key string
	cmd := &cobra.Command{
		Use:   "call SERVICE.METHOD [JSON]",
		Short: "Call one method of a running server",
		Long: "Call one method of a running server and print the reply's body as JSON: indented on a terminal, else on one line.\n" +
			"The body of the request is a JSON object, - reads it from stdin, without one it is empty. --list shows all methods.",
		Example: "  trunkline call kernel.CreateProcess '{\"pid\":\"p1\",\"priority\":\"high\"}'\n" +
			"  trunkline call kernel.GetSystemStatus --json\n  echo '{\"pid\":\"p1\"}' | trunkline call kernel.GetProcess -",
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.RangeArgs(1, 2)(cmd, args)
		},
	}
	f.add(cmd, callTimeout)
	cmd.Flags().BoolVarP(&list, "list", "l", false, "list the methods with what they do and the fields they take, without a server")
	cmd.Flags().StringVar(&key, "idempotency-key", "",
		"idempotency_key of the request, 32 to 200 bytes: repeated with it, the call has one effect")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if list {
			return listMethods(cmd)
		}
		return runCall(cmd, &f, key, args)
	}
	return cmd
}

func runCall(cmd *cobra.Command, f *peerFlags, key string, args []string) error {
	service, method, ok := strings.Cut(args[0], ".")
	if !ok || service == "" || method == "" {
		return cli.Errorf(cli.CodeUsage, "cannot call %q: want SERVICE.METHOD", args[0]).WithHint(nearHint(args[0]))
	}
	info := methodOf(service, method)
	if info.Stream {
		return cli.Errorf(cli.CodeUsage, "cannot call %s: it opens a stream", args[0]).WithHint("'trunkline sub' prints the events of some types")
	}
	text, err := argument(cmd, args[1:], "{}")
	if err != nil {
		return err
	}
	body, err := transcode.EncodeJSON(text)
	if err == nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		err = errors.New("it is no object")
	}
	if err != nil {
		return cli.Errorf(cli.CodeUsage, "cannot use the request's body: %w", err).WithHint("the body is one JSON object, like '{\"pid\":\"p1\"}'")
	}
	var reply []byte
	var mixed string
	err = f.with(cmd, func(ctx context.Context, conn *ipcclient.Conn) error {
		if key != "" {
			ctx = ipcclient.WithIdempotencyKey(ctx, key)
		}
		if reply, err = conn.Call(ctx, service, method, body); err != nil {
			mixed = mixedUp(ctx, conn, info, err)
		}
		return err
	})
	if err != nil {
		return callError(err, request{info, args[0], text, mixed})
	}
	return printBody(cmd, reply)
}

// argument returns the text of an optional argument: the argument itself, all of stdin for -, or
// what stands in for none.
func argument(cmd *cobra.Command, args []string, none string) ([]byte, error) {
	switch {
	case len(args) == 0:
		return []byte(none), nil
	case args[0] != "-":
		return jsonx.TrimBOM([]byte(args[0])), nil
	}
	const most = wire.DefaultMaxFrame // more could not be sent anyway
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), most+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read stdin: %w", err)
	}
	if len(text) > most {
		return nil, cli.Errorf(cli.CodeUsage, "cannot use stdin: it is longer than %d bytes", most)
	}
	return jsonx.TrimBOM(text), nil
}

func printBody(cmd *cobra.Command, body []byte) error {
	text, err := transcode.AppendJSON(nil, body)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if cli.IsTerminal(out) && !cli.JSON(cmd) {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, text, "", "  "); err != nil {
			return fmt.Errorf("cannot indent the reply: %w", err)
		}
		text = pretty.Bytes()
	}
	return writeLine(out, text)
}

// writeLine writes a line, as cli.Write does.
func writeLine(w io.Writer, text []byte) error { return cli.Write(w, string(text)+"\n") }

const listHint = "'trunkline call --list' shows the methods"

// listedMethod is an entry of call --list --json.
type listedMethod struct {
	Method string   `json:"method"`
	Doc    string   `json:"doc"`
	Fields []string `json:"fields"`
	Stream bool     `json:"stream"`
}

func listMethods(cmd *cobra.Command) error {
	rows := [][]string{{"METHOD", "DOES", "FIELDS"}}
	listed := []listedMethod{}
	for _, m := range ipc.Methods() {
		entry := listedMethod{Method: m.Service + "." + m.Name, Doc: m.Doc, Fields: append([]string{}, m.Fields...), Stream: m.Stream}
		listed = append(listed, entry)
		rows = append(rows, []string{entry.Method, entry.Doc, strings.Join(entry.Fields, ", ")})
	}
	return cli.Show(cmd, listed, rows)
}

// methodOf returns a method's row of the table, an empty one for a method that this program does
// not know.
func methodOf(service, name string) ipc.MethodInfo {
	for _, m := range ipc.Methods() {
		if m.Service == service && m.Name == name {
			return m
		}
	}
	return ipc.MethodInfo{}
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
	var done ipcclient.Delivery
	err = f.with(cmd, func(ctx context.Context, conn *ipcclient.Conn) error {
		done, err = conn.Publish(ctx, ipcclient.Publish{EventType: args[0], Payload: string(payload), Source: source})
		return err
	})
	if err != nil {
		return callError(err, request{info: methodOf("commbus", "Publish")})
	}
	line := fmt.Appendf(nil, "delivered %d", done.Delivered)
	if cli.JSON(cmd) {
		line = fmt.Appendf(nil, `{"delivered":%d}`, done.Delivered)
	}
	return writeLine(cmd.OutOrStdout(), line)
}
