package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/codec/jsonx"
	"trunkline/engine/projects/codec"
	"trunkline/handlers/exacta/exactaclient"
)

// projectVerbs lists the commands below.
const projectVerbs = "open, status, plan, show, approve, reject, run, resume, pause, cancel, watch, apply, build, preview, diagnostics, close, rollback"

// newProjectCmds returns the commands for people.
func newProjectCmds() []*cobra.Command {
	return []*cobra.Command{
		newExactaOpenCmd(), newExactaStatusCmd(), newExactaPlanCmd(), newExactaShowCmd(), newExactaApproveCmd(), newExactaRejectCmd(),
		newExactaRunCmd(), newExactaResumeCmd(), newExactaPauseCmd(), newExactaCancelCmd(), newExactaWatchCmd(),
		newExactaApplyCmd(), newExactaBuildCmd(), newExactaPreviewCmd(), newExactaDiagnosticsCmd(), newExactaCloseCmd(), newExactaRollbackCmd(),
	}
}

func newExactaOpenCmd() *cobra.Command {
	cmd, _ := newProjectCmd(&cobra.Command{
		Use:   "open [PATH]",
		Short: "Open the project of a path and show its state",
		Long: "Open the project that a path belongs to, by default that of the working directory, and show its state. All other commands\n" +
			"open their project too. It stays open until 'trunkline exacta close'.",
		Example: "  trunkline exacta open ~/src/demo --addr unix:///run/projects.sock",
		Args:    cobra.MaximumNArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		p.path = "."
		if len(args) > 0 {
			p.path = args[0]
		}
		if err := p.open(ctx); err != nil {
			return err
		}
		return p.showProject(ctx)
	})
	return cmd
}

func newExactaStatusCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "status",
		Short: "Show the state of a project",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error { return p.showProject(ctx) })
}

// showProject prints the answer of an OpenProject, and for people why the project failed.
func (p *projectPeer) showProject(ctx context.Context) error {
	s := &p.project
	none := func(text string) string {
		if text == "" {
			return "-"
		}
		return cli.Visible(text)
	}
	rows := [][]string{
		{"project", none(s.Root)}, {"id", none(s.ID)}, {"state", none(s.State)}, {"markers", none(strings.Join(s.Markers, ", "))},
		{"plan", none(s.PlanID)}, {"execution", none(s.ExecutionID)}, {"events", strconv.FormatUint(s.StreamSeq, 10)},
	}
	if s.State == "Failed" && !cli.JSON(p.cmd) {
		why, raised := "the server that knew it has ended", ""
		err := p.replay(ctx, func(m *exactaclient.Message) {
			if m.Event == "ErrorRaised" {
				raised, _, _ = strings.Cut(describe(m), "\n")
			} else if m.Event == "StateChanged" && m.Payload.Text("to") == "Failed" && raised != "" {
				why = raised
			}
		})
		if err != nil {
			return err
		}
		rows = append(rows, []string{"error", why})
	}
	return cli.Show(p.cmd, json.RawMessage(s.Raw), rows)
}

// showResult prints the result of a request, for people as a line.
func (p *projectPeer) showResult(m *exactaclient.Message, text string) error {
	if cli.JSON(p.cmd) {
		return cli.WriteJSON(p.cmd.OutOrStdout(), json.RawMessage(m.Result))
	}
	return writeLine(p.cmd.OutOrStdout(), []byte(cli.Visible(text)))
}

func newExactaBuildCmd() *cobra.Command {
	var configuration string
	var seconds int
	cmd := newOpenProjectCmd(&cobra.Command{
		Use:     "build",
		Short:   "Build a project with its own tool",
		Long:    "Build a project with go, cargo, npm, make or dotnet. A build that fails is exit code 50. ^C ends the build.",
		Example: "  trunkline exacta build --configuration Release",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		payload := p.payload()
		if configuration != "" {
			payload = payload.Text("configuration", configuration)
		}
		m, err := p.ask(ctx, "Build", payload.Int("timeout_seconds", int64(seconds)), nil)
		if m == nil || m.Result == nil {
			return err
		}
		r := m.Result
		shown := p.showResult(m, fmt.Sprintf("exit code %d, %d errors, %d warnings, %d ms", r.Int("exit_code"), r.Int("errors"), r.Int("warnings"), r.Int("duration_ms")))
		if shown != nil {
			return shown
		}
		return err
	})
	cmd.Flags().StringVar(&configuration, "configuration", "", "Debug or Release (default: that of the project)")
	cmd.Flags().IntVar(&seconds, "seconds", 300, "how long the build may take")
	return cmd
}

func newExactaPreviewCmd() *cobra.Command {
	var seconds int
	cmd := newOpenProjectCmd(&cobra.Command{
		Use:   "preview",
		Short: "Start the program of a project",
		Long:  "Start the program of a project. It runs until its end or its time is over; 'trunkline exacta cancel' with the handle that is\nprinted ends it before.",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		m, err := p.ask(ctx, "Preview", p.payload().Int("timeout_seconds", int64(seconds)), nil)
		if err != nil {
			return err
		}
		return p.showResult(m, "started, handle "+m.Correlation)
	})
	cmd.Flags().IntVar(&seconds, "seconds", 300, "how long it may run")
	return cmd
}

func newExactaDiagnosticsCmd() *cobra.Command {
	var debug, tree bool
	cmd := newOpenProjectCmd(&cobra.Command{
		Use:   "diagnostics PATH",
		Short: "Write a bundle for a report: no source, no diffs, no credentials",
		Long: "Have the server write a .zip with its state, its settings and its log of the project. A relative PATH is below\n" +
			".exacta/diagnostics of the project.",
		Example: "  trunkline exacta diagnostics report.zip --tree",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, p *projectPeer, args []string) error {
		b := jsonx.Builder(codec.AppendText(p.payload().Name("output_path"), args[0]))
		m, err := p.ask(ctx, "ExportDiagnostics", b.Bool("include_debug", debug).Bool("include_project_tree", tree), nil)
		if err != nil {
			return err
		}
		return p.showResult(m, m.Result.Text("bundle_path"))
	})
	cmd.Flags().BoolVar(&debug, "debug", false, "with log lines of all levels")
	cmd.Flags().BoolVar(&tree, "tree", false, "with the names of all files")
	return cmd
}

func newExactaCloseCmd() *cobra.Command {
	return newOpenProjectCmd(&cobra.Command{
		Use:   "close",
		Short: "Close a project, for all clients",
		Long:  "Close a project, for all clients: its lock is released. A plan that waits for an approval expires.",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, p *projectPeer, _ []string) error {
		m, err := p.ask(ctx, "CloseProject", p.payload(), nil)
		if err != nil {
			return err
		}
		return p.showResult(m, "closed "+p.project.Root)
	})
}
