package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/engine/projects/plan"
	"trunkline/handlers/exacta/exactaclient"
)

// maxPlanFile bounds what is read of a plan's document, in bytes: 10 diffs and what is around them.
const maxPlanFile = 8 << 20

// minPlanName is how many characters name a plan at least.
const minPlanName = 4

// planOutput is the output of plan and show under --json.
type planOutput struct {
	Intent json.RawMessage `json:"intent,omitempty"`
	Plan   json.RawMessage `json:"plan"`
	Diffs  []shownDiff     `json:"diffs"`
}

func newExactaPlanCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "plan TEXT...",
		Short: "Turn a request into a plan, and show it with its diffs",
		Long: "Turn a typed request into a plan of file and build steps, and show it with its diffs. Nothing changes: the plan waits for an\n" +
			"approval. - reads the request from stdin. ^C ends the planning.",
		Example: "  trunkline exacta plan 'Append \"Bye.\" to README.md'\n  trunkline exacta plan - < request.txt",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		text := []byte(strings.Join(args, " "))
		if len(args) == 1 {
			var err error
			if text, err = argument(p.cmd, args, ""); err != nil {
				return err
			}
		}
		m, err := p.ask(ctx, "ExtractIntent", jsonx.Builder(codec.AppendText(p.payload().Name("user_input"), string(text))), nil)
		if err != nil {
			return err
		}
		intent := append(exactaclient.Object(nil), m.Result.Object("intent")...)
		var shown shownPlan
		if _, err = p.ask(ctx, "GeneratePlan", p.payload().Text("intent_id", intent.Text("id")), shown.take); err != nil {
			return err
		}
		if cli.JSON(p.cmd) {
			return cli.WriteJSON(p.cmd.OutOrStdout(), planOutput{json.RawMessage(intent), shown.Plan, shown.Diffs})
		}
		if err := paintOn(p.cmd).line(cli.Visible(fmt.Sprintf("%s, confidence %s", intent.Text("type"), intent.Get("confidence").Raw))); err != nil {
			return err
		}
		if err := shown.show(p.cmd, string(plan.Pending)); err != nil {
			return err
		}
		fmt.Fprintln(p.cmd.ErrOrStderr(), "approve it with: trunkline exacta approve "+cli.Visible(short(shown.id())))
		return nil
	})
}

// id returns the id of the plan.
func (s *shownPlan) id() string { return exactaclient.Object(s.Plan).Text("id") }

// short returns the part of an id that people type.
func short(id string) string { return id[:min(len(id), 8)] }

func newExactaShowCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "show",
		Short: "Show the active plan with its diffs",
		Long: "Show the plan that waits, runs or is paused, with its diffs: as the events of the server have it, or else as the document in\n" +
			".exacta/plan has it, whose fingerprint is checked.",
		Args: cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		shown, status, err := p.activePlan(ctx)
		if err != nil {
			return err
		}
		if cli.JSON(p.cmd) {
			return cli.WriteJSON(p.cmd.OutOrStdout(), planOutput{nil, shown.Plan, shown.Diffs})
		}
		return shown.show(p.cmd, status)
	})
}

// needPlan returns an error where no plan is active.
func (p *projectPeer) needPlan() error {
	if p.project.PlanID == "" {
		return cli.Errorf(exitProtocol, "no plan is active: the project is %s", cli.Visible(p.project.State)).WithHint("'trunkline exacta plan' makes one")
	}
	return nil
}

// activePlan returns the active plan, and its status if that is known.
func (p *projectPeer) activePlan(ctx context.Context) (*shownPlan, string, error) {
	if err := p.needPlan(); err != nil {
		return nil, "", err
	}
	replayed, err := p.replayedPlan(ctx)
	if err != nil {
		return nil, "", err
	}
	shown, status, err := p.storedPlan()
	if replayed != nil {
		return replayed, status, nil
	}
	if err != nil {
		return nil, "", cli.Errorf(exitProtocol, "cannot show the plan %s: the server does not have its events any more, and its document cannot be read: %w", cli.Visible(p.project.PlanID), err)
	}
	return shown, status, nil
}

// replayedPlan returns the active plan as the kept events have it, nil if they do not.
func (p *projectPeer) replayedPlan(ctx context.Context) (*shownPlan, error) {
	var shown, last shownPlan
	err := p.replay(ctx, func(m *exactaclient.Message) {
		if last.take(m); last.id() == p.project.PlanID {
			shown = last
		}
	})
	if err != nil || shown.Plan == nil {
		return nil, err
	}
	return &shown, nil
}

// replay calls event for all events of the project that are kept.
func (p *projectPeer) replay(ctx context.Context, event func(*exactaclient.Message)) error {
	oldest, err := p.subscribe(ctx, nil)
	if err != nil {
		return err
	}
	after := uint64(max(oldest.Int("oldest_stream_seq"), 1) - 1)
	ack, err := p.subscribe(ctx, &after)
	if err != nil {
		return err
	}
	for left := ack.Int("replayed"); left > 0; {
		m, err := p.conn.Next(ctx)
		if err != nil {
			return err
		}
		if m.Kind == exactaclient.Event {
			left--
			event(m)
		}
	}
	return nil
}

// subscribe subscribes to the project's events behind one of them, and returns the result.
func (p *projectPeer) subscribe(ctx context.Context, after *uint64) (exactaclient.Object, error) {
	id, err := p.conn.Subscribe(ctx, p.project.ID, p.project.Session, after)
	if err != nil {
		return nil, err
	}
	m, err := p.conn.Await(ctx, id, nil)
	if err != nil {
		return nil, err
	}
	return append(exactaclient.Object(nil), m.Result...), nil
}

// storedPlan reads the document of the active plan: the files of a project are on this machine.
func (p *projectPeer) storedPlan() (*shownPlan, string, error) {
	if _, ok := codec.ParseID([]byte(p.project.PlanID)); !ok {
		return nil, "", fmt.Errorf("no id: %q", p.project.PlanID)
	}
	name := filepath.Join(p.project.Root, ".exacta", "plan", p.project.PlanID+".json")
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s is no regular file", name)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxPlanFile))
	if err != nil {
		return nil, "", err
	}
	doc, err := plan.Parse(text)
	if err != nil {
		return nil, "", err
	}
	shown := &shownPlan{Plan: exactaclient.Object(projects.AppendPlanProposed(nil, doc)).Object("plan")}
	for i := range doc.Steps {
		if s := &doc.Steps[i]; s.IsFile() {
			shown.Diffs = append(shown.Diffs, shownDiff{s.ID, s.Diff})
		}
	}
	if doc.Status == plan.Executed { // or on its way to that: the state of the project has more
		return shown, "", nil
	}
	return shown, string(doc.Status), nil
}

func newExactaApproveCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "approve [PLAN]",
		Short: "Approve the active plan",
		Long: "Approve the active plan. PLAN is its id, or how it begins: what was looked at is what is approved, and not a later version.\n" +
			"Without PLAN the plan is shown, and the approval is asked for on the terminal.",
		Example: "  trunkline exacta approve 73b01c65",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		if err := p.consent(ctx, args); err != nil {
			return err
		}
		m, err := p.approve(ctx)
		if err != nil {
			return err
		}
		return p.showResult(m, "approved "+p.project.PlanID)
	})
}

func (p *projectPeer) approve(ctx context.Context) (*exactaclient.Message, error) {
	return p.ask(ctx, "ApprovePlan", p.payload().Text("plan_id", p.project.PlanID), nil)
}

// consent makes sure that an approval is of a plan that was looked at: it is named, or shown now.
func (p *projectPeer) consent(ctx context.Context, args []string) error {
	if err := p.named(args); err != nil || len(args) > 0 {
		return err
	}
	if !cli.IsTerminal(p.cmd.InOrStdin()) {
		return cli.Errorf(cli.CodeUsage, "cannot approve a plan that is not named: stdin is no terminal").WithHint("name the plan as 'trunkline exacta plan' and 'show' print it")
	}
	shown, _, err := p.activePlan(ctx)
	if err != nil {
		return err
	}
	if err := shown.show(p.cmd, ""); err != nil {
		return err
	}
	return p.confirm(ctx, "Approve this plan? [y/N] ")
}

// named checks the optional name of a plan.
func (p *projectPeer) named(args []string) error {
	if err := p.needPlan(); err != nil || len(args) == 0 {
		return err
	}
	name := strings.ToLower(args[0])
	if len(name) < minPlanName {
		return cli.Errorf(cli.CodeUsage, "cannot find the plan %q: want its id, or at least %d characters of it", args[0], minPlanName)
	}
	if !strings.HasPrefix(p.project.PlanID, name) {
		return cli.Errorf(exitPlan, "the active plan is %s, not %s", cli.Visible(p.project.PlanID), args[0]).WithHint("'trunkline exacta show' shows it")
	}
	return nil
}

// confirm asks a question on the terminal. All but yes is no.
func (p *projectPeer) confirm(ctx context.Context, question string) error {
	fmt.Fprint(p.cmd.ErrOrStderr(), question)
	answer := make(chan string, 1)
	go func() { // it may wait for a line that never comes, until the process ends
		line, _ := bufio.NewReader(p.cmd.InOrStdin()).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case text := <-answer:
		if text == "y" || text == "yes" {
			return nil
		}
		return cli.Errorf(cli.CodeFailed, "not approved")
	case <-ctx.Done():
		fmt.Fprintln(p.cmd.ErrOrStderr())
		return ctx.Err()
	}
}

func newExactaRejectCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:     "reject [PLAN]",
		Short:   "Reject the active plan",
		Example: "  trunkline exacta reject",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		if err := p.named(args); err != nil {
			return err
		}
		m, err := p.ask(ctx, "RejectPlan", p.payload().Text("plan_id", p.project.PlanID), nil)
		if err != nil {
			return err
		}
		return p.showResult(m, "rejected "+p.project.PlanID)
	})
}
