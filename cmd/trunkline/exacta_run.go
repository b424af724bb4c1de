package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/handlers/exacta/exactaclient"
)

// reconnectWithin is how long a command that follows a project tries to reach its server again.
const reconnectWithin = time.Minute

func newExactaRunCmd() *cobra.Command {
	var approve bool
	cmd := newOpenProjectCmd(&cobra.Command{
		Use:   "run [PLAN]",
		Short: "Execute the approved plan, and follow it to its end",
		Long: "Execute the approved plan, and follow it to its end. --approve approves it first: the plan that PLAN names, or the one that is\n" +
			"shown and confirmed on the terminal. ^C ends the following; the execution goes on, and 'trunkline exacta cancel' takes it back.",
		Example: "  trunkline exacta run\n  trunkline exacta run --approve 73b01c65",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		if err := p.named(args); err != nil {
			return err
		}
		if approve {
			if err := p.consent(ctx, args); err != nil {
				return err
			}
			if _, err := p.approve(ctx); err != nil {
				return err
			}
		}
		return p.execute(ctx, "ExecutePlan", p.payload().Text("plan_id", p.project.PlanID))
	})
	cmd.Flags().BoolVar(&approve, "approve", false, "approve the plan first")
	return cmd
}

// needExecution returns an error where nothing runs or is paused.
func (p *projectPeer) needExecution() error {
	if p.project.ExecutionID == "" {
		return cli.Errorf(exitProtocol, "nothing is executed: the project is %s", cli.Visible(p.project.State))
	}
	return nil
}

func newExactaResumeCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "resume",
		Short: "Go on with a paused execution, and follow it to its end",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		if err := p.needExecution(); err != nil {
			return err
		}
		return p.execute(ctx, "Resume", p.payload().Text("execution_id", p.project.ExecutionID))
	})
}

func newExactaPauseCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "pause",
		Short: "Pause an execution at the end of its running step",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		if err := p.needExecution(); err != nil {
			return err
		}
		m, err := p.ask(ctx, "Pause", p.payload().Text("execution_id", p.project.ExecutionID), nil)
		if err != nil {
			return err
		}
		return p.showResult(m, m.Result.Text("status")+" "+m.Result.Text("execution_id"))
	})
}

func newExactaCancelCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "cancel [HANDLE]",
		Short: "Cancel an execution and take its changes back, or the plan that waits",
		Long: "Cancel the execution that runs or is paused, and wait until all of its changes are taken back; else the plan that waits for an\n" +
			"approval. HANDLE is the request_id or correlation_id of something else that runs, such as a preview.",
		Args: cobra.MaximumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		handle := p.project.ExecutionID
		handle = cmp.Or(handle, p.project.PlanID)
		if len(args) > 0 {
			handle = args[0]
		}
		if handle == "" {
			return cli.Errorf(exitProtocol, "nothing to cancel: the project is %s", cli.Visible(p.project.State))
		}
		return p.execute(ctx, "Cancel", p.payload().Text("execution_id", handle))
	})
}

// execute sends a request that something goes on behind, and follows that to its end.
func (p *projectPeer) execute(ctx context.Context, command string, payload jsonx.Builder) error {
	v := newRunView(p.cmd)
	defer v.bar.Clear()
	end := execution{command: command, cancelling: p.project.State == "Cancelling"}
	if v.bar != nil && command != "Cancel" {
		if shown, _, err := p.activePlan(ctx); err == nil { // else the bar comes with the end of a step
			v.begin(uint64(len(exactaclient.Object(shown.Plan).Objects("steps"))))
		}
	}
	after := p.project.StreamSeq
	m, err := p.ask(ctx, command, payload, func(m *exactaclient.Message) {
		after = max(after, m.StreamSeq)
		end.note(m)
		v.show(m)
	})
	if err != nil {
		return ofExecute(command, err)
	}
	end.correlation = m.Correlation
	result := append(exactaclient.Object(nil), m.Result...)
	if end.runs() {
		f := p.follower(after)
		f.Reopen = func(ctx context.Context, conn *exactaclient.Conn) error {
			return p.goOn(ctx, f, conn, command, result.Text("execution_id"), &end)
		}
		defer f.Close()
		err = end.wait(ctx, f.Next, func(m *exactaclient.Message) error {
			p.warn(m)
			return v.show(m)
		})
	}
	v.bar.Clear()
	if errors.Is(err, context.Canceled) && command != "Cancel" {
		return cli.Errorf(cli.CodeInterrupted, "interrupted; the execution goes on").WithHint("'trunkline exacta watch' shows it, 'cancel' takes it back")
	}
	if err != nil {
		return err
	}
	done := "completed"
	if command == "Cancel" {
		done = "cancelled"
	}
	id := result.Text("execution_id")
	if command != "Cancel" && !cli.JSON(p.cmd) {
		defer fmt.Fprintln(p.cmd.ErrOrStderr(), "take it back with: trunkline exacta close && trunkline exacta rollback "+cli.Visible(short(id)))
	}
	return p.showResult(&exactaclient.Message{Result: result}, done+" "+id)
}

// follower returns one of the project's events.
func (p *projectPeer) follower(after uint64) *exactaclient.Follower {
	f := &exactaclient.Follower{Dial: p.dial, Project: p.project.ID, Session: p.project.Session, After: after, Within: reconnectWithin, Conn: p.conn, Lost: p.lost}
	f.Reopen = func(ctx context.Context, conn *exactaclient.Conn) error { return p.reopen(ctx, f, conn) }
	return f
}

// reopen opens the project in a server that was started again and counts its events from 1.
func (p *projectPeer) reopen(ctx context.Context, f *exactaclient.Follower, conn *exactaclient.Conn) error {
	p.conn = conn
	if err := p.open(ctx); err != nil {
		return err
	}
	f.Project, f.Session, f.After = p.project.ID, p.project.Session, 0
	fmt.Fprintf(p.cmd.ErrOrStderr(), "the server was started again, and its events are numbered from 1; the project is %s\n", cli.Visible(p.project.State))
	return nil
}

// goOn is reopen for an execution: where the end of the server paused it, it is resumed.
func (p *projectPeer) goOn(ctx context.Context, f *exactaclient.Follower, conn *exactaclient.Conn, command, id string, end *execution) error {
	if err := p.reopen(ctx, f, conn); err != nil {
		return err
	}
	switch state := p.project.State; {
	case state == "Paused" && p.project.ExecutionID == id && command != "Cancel":
		m, err := p.ask(ctx, "Resume", p.payload().Text("execution_id", id), nil)
		if err == nil {
			end.correlation = m.Correlation
		}
		return err
	case p.project.ExecutionID != id && state != "Completed" && state != "Failed":
		return cli.Errorf(exitProtocol, "the execution ended with the server: the project is %s", cli.Visible(state))
	}
	return nil
}

// lost reports a connection that is made again.
func (p *projectPeer) lost(err error) {
	fmt.Fprintf(p.cmd.ErrOrStderr(), "%s; connecting again\n", cli.Visible(err.Error()))
}

// runView shows an execution: lines, and a bar below them on a terminal.
type runView struct {
	paint
	quiet    bool // --json: the result is all that is printed
	bar      *cli.Progress
	total, n uint64
}

func newRunView(cmd *cobra.Command) *runView {
	v := &runView{paint: paintOn(cmd), quiet: cli.JSON(cmd)}
	if v.terminal && v.color && !v.quiet {
		v.bar = cli.NewProgress(v.w, time.Now)
	}
	return v
}

// show takes an event.
func (v *runView) show(m *exactaclient.Message) error {
	if v.quiet {
		return nil
	}
	switch m.Event {
	case "Progress":
		return v.progress(m.Payload)
	case "StepStarted":
		return v.write(describe(m), "")
	case "StepCompleted":
		if m.Payload.True("ok") {
			return v.write("  "+describe(m), paintGreen)
		}
		return v.write("  "+describe(m), paintRed)
	case "StateChanged":
		return v.write(describe(m), paintFaint)
	case "ErrorRaised":
		text, _, _ := strings.Cut(describe(m), "\n") // the error at the end has all
		return v.write(text, paintRed)
	}
	return nil
}

// write writes a line above the bar.
func (v *runView) write(text, style string) error {
	v.bar.Clear()
	text = cli.Visible(text)
	if style != "" {
		text = v.as(style, text)
	}
	err := v.line(text)
	if v.total > 0 {
		v.bar.Set(v.n)
	}
	return err
}

// progress moves the bar, which is of the steps that are applied.
func (v *runView) progress(p exactaclient.Object) error {
	if p.Text("phase") != "apply" {
		return nil
	}
	total := uint64(max(p.Int("total"), 0))
	v.n = uint64(max(p.Int("current"), 0))
	if v.bar == nil {
		return v.line(fmt.Sprintf("  %d of %d", v.n, total))
	}
	v.begin(total)
	v.bar.Set(v.n)
	return nil
}

// begin begins the bar.
func (v *runView) begin(total uint64) {
	if v.total != total {
		v.total = total
		v.bar.Begin("apply", "steps", total)
	}
}
