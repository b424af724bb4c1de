package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/engine/projects/schema"
	"trunkline/handlers/exacta/exactaclient"
)

// maxPayload bounds the payload of a call, in bytes, and maxPayloadDepth its nesting: more is
// refused by any server.
const (
	maxPayload      = 8 << 20
	maxPayloadDepth = 31
)

// callFlags are the flags of exacta call.
type callFlags struct{ events, wait bool }

func newExactaCallCmd() *cobra.Command {
	var f callFlags
	cmd, _ := newProjectCmd(&cobra.Command{
		Use:   "call COMMAND [JSON]",
		Short: "Send one request and print its response",
		Long: "Send one request with a payload, which is a JSON object, and print the response: indented on a terminal, else on one line.\n" +
			"- reads the payload from stdin. --events prints the events that come with it, --wait waits until the execution that was\n" +
			"started, resumed or cancelled has ended.",
		Example: "  trunkline exacta call OpenProject '{\"path\":\"/srv/demo\"}'\n" +
			"  trunkline exacta call ExecutePlan '{\"project_id\":\"…\",\"plan_id\":\"…\"}' --wait --events",
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, p *projectPeer, args []string) error { return f.run(ctx, p, args) })
	cmd.Flags().BoolVar(&f.events, "events", false, "print events too, one line each")
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait for the end of the execution")
	return cmd
}

const exitHelp = "Exit codes: 0 ok, 1 not approved on the terminal, 10 configuration, 20 security or a path outside of the project, 30 a plan that is not approved, 40 a plan\n" +
	"that is not valid or out of date, 50 other failures of input, files, planner and build, 60 protocol, state, resources and lost\n" +
	"connections; 2 usage, 130 interrupted."

func (f *callFlags) run(ctx context.Context, p *projectPeer, args []string) error {
	text, err := argument(p.cmd, args[1:], "{}")
	if err != nil {
		return err
	}
	text = bytes.TrimSpace(text)
	if problem := jsonx.Check(text, maxPayloadDepth); !problem.OK() || text[0] != '{' || len(text) > maxPayload {
		return cli.Errorf(cli.CodeUsage, "cannot use the payload: it is no JSON object: %s", problem).WithHint("such as '{\"path\":\"/srv/demo\"}'")
	}
	text = bytes.ReplaceAll(text, []byte("\n"), []byte(" ")) // a line ends a message; in a string it would be escaped
	command := args[0]
	conn, err := p.connected(ctx)
	if err != nil {
		return err
	}
	project := exactaclient.Object(text).Text("project_id")
	end := execution{command: command}
	if f.wait && end.may() && project != "" {
		if err := end.watch(ctx, conn, project); err != nil {
			return err
		}
	}
	_, m, err := p.request(ctx, command, text, func(m *exactaclient.Message) error {
		end.note(m)
		return f.event(p.cmd, m)
	})
	if m == nil || err != nil && !isAnswer(err) {
		return err
	}
	end.correlation = m.Correlation
	err = ofExecute(command, err)
	if printed := f.print(p.cmd, m.Raw); printed != nil {
		return printed
	}
	if err != nil || !f.wait || !end.runs() {
		return err
	}
	return end.wait(ctx, conn.Next, func(m *exactaclient.Message) error { return f.event(p.cmd, m) })
}

func isAnswer(err error) bool {
	var e *exactaclient.Error
	return errors.As(err, &e) && !e.Local
}

// event prints an event if that was asked for.
func (f *callFlags) event(cmd *cobra.Command, m *exactaclient.Message) error {
	if !f.events {
		return nil
	}
	return writeLine(cmd.OutOrStdout(), m.Raw)
}

// print prints the response.
func (f *callFlags) print(cmd *cobra.Command, raw []byte) error {
	out := paintOn(cmd)
	if f.events || !out.terminal || cli.JSON(cmd) {
		return writeLine(out.w, raw)
	}
	return cli.WriteJSON(cmd.OutOrStdout(), json.RawMessage(raw))
}

// execution is what a command began or ends.
type execution struct {
	command     string
	correlation string
	cancelling  bool // files are taken back
}

// may reports whether something may go on behind the response (exacta §2.4).
func (e *execution) may() bool {
	return e.command == "ExecutePlan" || e.command == "Resume" || e.command == "Cancel"
}

// runs reports whether something goes on behind the response. A Cancel may be of a plan or a build,
// whose end comes before it.
func (e *execution) runs() bool { return e.may() && (e.command != "Cancel" || e.cancelling) }

// watch subscribes to the events of a project before the request is sent. Where that is refused, so
// is the request.
func (e *execution) watch(ctx context.Context, conn *exactaclient.Conn, project string) error {
	id, err := conn.Subscribe(ctx, project, "", nil)
	if err != nil {
		return err
	}
	m, err := conn.Await(ctx, id, nil)
	if err != nil {
		if isAnswer(err) {
			return nil
		}
		return err
	}
	e.cancelling = m.Result.Text("state") == "Cancelling"
	return nil
}

// note takes an event that comes before the response.
func (e *execution) note(m *exactaclient.Message) {
	if m.Event == "StateChanged" && m.Payload.Text("to") == "Cancelling" {
		e.cancelling = true
	}
}

// wait waits until the execution ends; event gets all that comes. How it ended is the error.
func (e *execution) wait(ctx context.Context, next func(context.Context) (*exactaclient.Message, error), event func(*exactaclient.Message) error) error {
	var raised *exactaclient.Error
	failures := 0 // a second one is that of the rollback
	for {
		m, err := next(ctx)
		if err != nil {
			return err
		}
		if m.Kind != exactaclient.Event {
			continue
		}
		if err := event(m); err != nil {
			return err
		}
		if m.Event == "ErrorRaised" && m.Correlation == e.correlation {
			raised = exactaclient.ErrorOf(m.Payload.Object("error"))
			failures++
		}
		from := m.Payload.Text("from")
		restored := m.Payload.Text("trigger") == "SessionRestored"
		if m.Event != "StateChanged" || from != "Executing" && from != "Cancelling" && !restored {
			continue
		}
		switch to := m.Payload.Text("to"); to {
		case "Completed":
			return nil
		case "Paused":
			if restored {
				continue // it is resumed
			}
			return cli.Errorf(exitProtocol, "the execution is paused").WithHint("'trunkline exacta resume' goes on")
		case "Idle":
			if e.command == "Cancel" {
				return nil
			}
			return cli.Errorf(exitProtocol, "the execution was cancelled; its files are as before")
		case "Failed":
			switch {
			case raised == nil:
				return cli.Errorf(exitProtocol, "the execution failed")
			case failures > 1 || from == "Cancelling":
				return raised
			}
			return explained(projectStatus(raised), raised, "the files are as before: all steps were taken back")
		}
	}
}

func newExactaSchemaCmd() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of a message, or the names of all",
		Long: "Print a JSON Schema (2020-12) of the protocol of projects by its name or $id. Without a name the names are printed.\n" +
			"--dir DIR writes all schemas into a directory, a file each.",
		Example:           "  trunkline exacta schema\n  trunkline exacta schema command:Build:payload\n  trunkline exacta schema --dir schemas",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(schema.Names(), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case dir != "" && len(args) > 0:
				return cli.Errorf(cli.CodeUsage, "cannot write one schema: --dir takes no name")
			case dir != "":
				return writeSchemas(dir)
			case len(args) == 0:
				for _, name := range schema.Names() {
					if _, err := fmt.Fprintln(cmd.OutOrStdout(), name); err != nil {
						return err
					}
				}
				return nil
			}
			text, ok := schema.Lookup(args[0])
			if !ok {
				return cli.Errorf(cli.CodeNotFound, "cannot find the schema %q", args[0]).WithHint("run 'trunkline exacta schema' for all names")
			}
			_, err := cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write all schemas into the directory `DIR`, which is made if it is missing")
	return cmd
}

// writeSchemas writes all schemas into a directory.
func writeSchemas(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range schema.Names() {
		text, _ := schema.Lookup(name)
		if err := os.WriteFile(filepath.Join(dir, schema.File(name)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
