package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/config"
	"trunkline/codec/jsonx"
	"trunkline/engine/projects/codec"
	"trunkline/engine/smallfile"
	"trunkline/handlers/exacta/exactaclient"
)

// The environment of the commands on projects; it is no setting of a server.
const (
	envExactaAddr      = "EXACTA_ADDR"
	envExactaTokenFile = "EXACTA_TOKEN_FILE"
)

// answerWithin is how long an answer may take without --timeout: longer than any limit of a server
// that the payload does not set (exacta §4.0.3).
const answerWithin = 630 * time.Second

// cancelWithin is how long the answer to a Cancel may take when this side was interrupted.
const cancelWithin = 5 * time.Second

// maxTokenFile bounds the file of a token, in bytes.
const maxTokenFile = 4096

// projectPeer is a server of projects, as a command sees it.
type projectPeer struct {
	addr, tokenFile string
	timeout         time.Duration
	path            string // of the project

	cmd     *cobra.Command
	target  string // the server's address, once it is known
	conn    *exactaclient.Conn
	project projectState
}

// projectState is the answer of an OpenProject (exacta §4.1).
type projectState struct {
	Raw                 []byte
	ID, Root, State     string
	Markers             []string
	Session             string
	StreamSeq           uint64
	PlanID, ExecutionID string
}

// newProjectCmd returns a command that asks a server of projects.
func newProjectCmd(cmd *cobra.Command, run func(ctx context.Context, p *projectPeer, args []string) error) (*cobra.Command, *projectPeer) {
	p := &projectPeer{cmd: cmd}
	fs := cmd.Flags()
	fs.StringVar(&p.addr, "addr", "", "server, host:port or unix:///path (default $"+envExactaAddr+", the context, else the first of exacta.listen_addr)")
	fs.StringVar(&p.tokenFile, "token-file", "", "file with the token for a server over TCP (default $"+envExactaTokenFile+", the context, else exacta.auth_token_file)")
	fs.DurationVar(&p.timeout, "timeout", 0, "how long the command may take (default: as long as the server may)")
	config.AddSourceFlags(fs)
	cmd.Long = cmp.Or(cmd.Long, cmd.Short+".")
	cmd.Long += "\n\n" + exitHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := cli.UntilSignal(cmd.Context())
		defer stop()
		if p.timeout < 0 {
			return cli.Errorf(cli.CodeUsage, "cannot use --timeout %s: it must be positive", p.timeout)
		}
		if p.timeout > 0 {
			var cancel func()
			ctx, cancel = context.WithTimeout(ctx, p.timeout)
			defer cancel()
		}
		defer func() {
			if p.conn != nil {
				p.conn.Close()
			}
		}()
		return p.explain(run(ctx, p, args))
	}
	return cmd, p
}

// newOpenProjectCmd is newProjectCmd for a project that is opened first.
func newOpenProjectCmd(cmd *cobra.Command, run func(ctx context.Context, p *projectPeer, args []string) error) *cobra.Command {
	cmd, p := newProjectCmd(cmd, func(ctx context.Context, p *projectPeer, args []string) error {
		if err := p.open(ctx); err != nil {
			return err
		}
		return run(ctx, p, args)
	})
	cmd.Flags().StringVarP(&p.path, "project", "C", ".", "path of the project, or in it")
	return cmd
}

// dial connects to the server that the flags, the environment or the settings name.
func (p *projectPeer) dial(ctx context.Context) (*exactaclient.Conn, error) {
	if p.target == "" {
		if err := p.find(); err != nil {
			return nil, err
		}
	}
	token, err := readToken(p.tokenFile)
	if err != nil {
		return nil, err
	}
	return exactaclient.Dial(ctx, p.target, exactaclient.Options{Token: token})
}

// find finds the address of the server and the file of its token. That of the context, or of the
// settings, is shown only to the address of the same.
func (p *projectPeer) find() error {
	target := cmp.Or(p.addr, os.Getenv(envExactaAddr))
	p.tokenFile = cmp.Or(p.tokenFile, os.Getenv(envExactaTokenFile))
	if target == "" {
		at, err := findReach(p.cmd, fieldExactaAddr)
		if err != nil {
			return err
		}
		token, err := findReach(p.cmd, fieldExactaTokenFile)
		if err != nil {
			return err
		}
		if target = at.Value; target != "" && at.fromContext() == token.fromContext() {
			p.tokenFile = cmp.Or(p.tokenFile, token.Value)
		}
	}
	hint := "--addr or $" + envExactaAddr + " is an address like 127.0.0.1:7777 or unix:///run/projects.sock"
	if target == "" {
		return cli.Errorf(cli.CodeUsage, "cannot ask a server of projects without its address").WithHint(hint)
	}
	if strings.HasPrefix(target, "/") {
		target = "unix://" + target
	}
	if err := config.CheckAddr(target); err != nil {
		return cli.Errorf(cli.CodeUsage, "cannot connect to %q: %w", target, err).WithHint(hint)
	}
	if chosenLater(target) {
		return cli.Errorf(cli.CodeUsage, "cannot connect to %s: port 0 is chosen when the server starts", target).WithHint(hint)
	}
	p.target = target
	return nil
}

// readToken reads the file of a token; an empty name is none.
func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	text, err := smallfile.Read(name)
	if err != nil {
		return "", cli.Errorf(cli.CodeUsage, "cannot use --token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(text) > maxTokenFile {
		return "", cli.Errorf(cli.CodeUsage, "cannot use --token-file %s: want a token of at most %d bytes", name, maxTokenFile)
	}
	return token, nil
}

// open opens the project.
func (p *projectPeer) open(ctx context.Context) error {
	path, err := filepath.Abs(p.path)
	if err != nil {
		return cli.Errorf(cli.CodeUsage, "cannot use the path %q: %w", p.path, err)
	}
	m, err := p.ask(ctx, "OpenProject", jsonx.Builder(codec.AppendText(jsonx.Build(nil).Name("path"), path)), nil)
	if err != nil {
		return err
	}
	r := m.Result
	p.project = projectState{Raw: append([]byte(nil), r...), ID: r.Text("project_id"), Root: r.Text("project_root"), State: r.Text("state"),
		Markers: r.Texts("detected_markers"), Session: r.Text("session_id"), StreamSeq: uint64(r.Int("stream_seq")),
		PlanID: r.Text("active_plan_id"), ExecutionID: r.Text("active_execution_id")}
	return nil
}

// payload begins the payload of a command on the project.
func (p *projectPeer) payload() jsonx.Builder {
	return jsonx.Build(nil).Text("project_id", p.project.ID)
}

// ask sends a request and waits for its answer; event gets what comes before it. Warnings are
// printed. When ctx ends first, an activity of the server is cancelled: it would go on for no
// reader.
func (p *projectPeer) ask(ctx context.Context, command string, payload jsonx.Builder, event func(*exactaclient.Message)) (*exactaclient.Message, error) {
	id, m, err := p.request(ctx, command, payload.End(), func(m *exactaclient.Message) error {
		p.warn(m)
		if event != nil {
			event(m)
		}
		return nil
	})
	late := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if late && id != "" && (command == "ExtractIntent" || command == "GeneratePlan" || command == "Build" || command == "Preview") {
		p.withdraw(id)
	}
	return m, err
}

// request sends a request and returns its id and its response. An error that was raised for it is
// an error, also where the response has none: of a build that failed, an intent that is unknown
// (exacta D5, D15).
func (p *projectPeer) request(ctx context.Context, command string, payload []byte, event func(*exactaclient.Message) error) (id string, m *exactaclient.Message, err error) {
	conn, err := p.connected(ctx)
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limitOf(payload))
	defer cancel()
	if id, err = conn.Send(ctx, command, payload); err != nil {
		return "", nil, err
	}
	var raised error
	m, err = conn.Await(ctx, id, func(m *exactaclient.Message) error {
		if m.Event == "ErrorRaised" && m.RequestID == id {
			raised = exactaclient.ErrorOf(m.Payload.Object("error"))
		}
		return event(m)
	})
	return id, m, cmp.Or(err, raised)
}

// limitOf returns how long the answer to a request may take.
func limitOf(payload []byte) time.Duration {
	seconds := min(max(exactaclient.Object(payload).Int("timeout_seconds"), 0), 3600)
	return answerWithin + time.Duration(seconds)*time.Second
}

// connected returns the connection of the command.
func (p *projectPeer) connected(ctx context.Context) (_ *exactaclient.Conn, err error) {
	if p.conn == nil {
		p.conn, err = p.dial(ctx)
	}
	return p.conn, err
}

// withdraw cancels an activity (exacta §4.11).
func (p *projectPeer) withdraw(request string) {
	ctx, cancel := context.WithTimeout(context.Background(), cancelWithin)
	defer cancel()
	_, _ = p.conn.Ask(ctx, "Cancel", p.payload().Text("execution_id", request).End(), nil)
}

// warn prints an event of the log that is a warning.
func (p *projectPeer) warn(m *exactaclient.Message) {
	if m.Event != "LogEntry" {
		return
	}
	if level := m.Payload.Text("level"); level == "WARN" || level == "ERROR" {
		fmt.Fprintln(p.cmd.ErrOrStderr(), "warning:", cli.Visible(m.Payload.Text("message")))
	}
}

// Exit statuses of the commands on projects (exacta §4.21), beside those of all commands.
const (
	exitConfiguration = 10
	exitSecurity      = 20
	exitUnapproved    = 30
	exitPlan          = 40
	exitWork          = 50
	exitProtocol      = 60
)

// projectStatus returns the exit status of an error (exacta §4.21).
func projectStatus(e *exactaclient.Error) int {
	family, _, _ := strings.Cut(e.Code, "-")
	switch {
	case family == "CFG":
		return exitConfiguration
	case family == "SEC" || e.Code == "FS-003":
		return exitSecurity
	case e.Code == "VAL-004" || e.Code == "VAL-005":
		return exitPlan
	case family == "VAL" || family == "FS" || family == "AI" || family == "BLD":
		return exitWork
	}
	return exitProtocol
}

// unapproved is the answer to an ExecutePlan of a plan that was not approved.
type unapproved struct{ answer *exactaclient.Error }

// Error implements error.
func (u unapproved) Error() string { return u.answer.Error() }

// ofExecute finds out whether an ExecutePlan was refused for want of an approval: only that leads
// from AwaitingApproval to ST-001 (exacta §4.8).
func ofExecute(command string, err error) error {
	var e *exactaclient.Error
	if command == "ExecutePlan" && errors.As(err, &e) && e.Code == "ST-001" && strings.HasPrefix(e.Message, "Invalid state transition: AwaitingApproval ") {
		return unapproved{e}
	}
	return err
}

// explain gives an error its exit status and a hint.
func (p *projectPeer) explain(err error) error {
	var done *cli.Error
	var answer *exactaclient.Error
	var lost *exactaclient.ConnError
	var u unapproved
	switch {
	case err == nil || errors.As(err, &done):
		return err
	case errors.As(err, &u):
		return explained(exitUnapproved, u.answer, "'trunkline exacta show' shows the plan, 'trunkline exacta approve' approves it")
	case errors.As(err, &answer):
		return explained(projectStatus(answer), answer, recoveryHint(answer))
	case errors.As(err, &lost):
		return &cli.Error{Code: exitProtocol, Err: err, Hint: "is the server running? --addr or $" + envExactaAddr + " names another address"}
	case errors.Is(err, context.DeadlineExceeded):
		return &cli.Error{Code: exitProtocol, Err: fmt.Errorf("no answer from %s in time", p.target), Hint: "--timeout allows it more time"}
	case errors.Is(err, context.Canceled):
		return cli.Interrupted(err)
	}
	return err
}

// explained returns an error with a code, its message and its detail.
func explained(status int, e *exactaclient.Error, hint string) *cli.Error {
	return &cli.Error{Code: status, Err: errors.New(cli.VisibleLines(detailed(e))), Hint: hint, ServerCode: e.Code}
}

// detailed returns an error with its detail: behind it, or below it where that is of several lines,
// as the output of a build.
func detailed(e *exactaclient.Error) string {
	detail := strings.TrimRight(e.Detail, "\n")
	switch {
	case detail == "":
		return e.Error()
	case strings.Contains(detail, "\n"):
		return e.Error() + "\n" + detail
	}
	return e.Error() + " (" + detail + ")"
}

func recoveryHint(e *exactaclient.Error) string {
	switch {
	case e.Code == "CFG-002" && strings.Contains(e.Message, "debug_commands"):
		return "the server allows this over its unix socket, or with exacta.debug_commands"
	case e.Code == "SEC-002" && strings.HasPrefix(e.Detail, "auth:"):
		return "--token-file or $" + envExactaTokenFile + " names the file with the token of the server"
	case e.Code == "ST-003" && (strings.HasPrefix(e.Detail, "project_id") || strings.HasPrefix(e.Detail, "session_id")):
		return "the project was closed, or the server started again: 'trunkline exacta status' shows its state"
	case e.Code == "VAL-004" && strings.Contains(e.Message, "no concrete edit"), e.Code == "VAL-001" && strings.HasPrefix(e.Detail, "intent: "):
		return editForms
	case e.Code == "FS-005":
		return "'trunkline exacta close', to the server that has it open, ends that"
	case e.Code == "ST-001":
		return stateHint(e)
	case e.Retryable && e.Recovery == "Retry":
		return "the same command may succeed a moment later"
	}
	return ""
}

// editForms are what the built-in planner understands, as one types it.
const editForms = "name the file and quote the text, and the whole request for the shell: 'append \"TEXT\" to FILE', 'replace \"OLD\" with \"NEW\" in FILE',\n" +
	"'insert \"TEXT\" before \"LINE\" in FILE', 'create file FILE with \"TEXT\"', 'delete FILE', 'build'; several with a ';' between them"

// stateHint returns what leads out of the state that refused a command.
func stateHint(e *exactaclient.Error) string {
	from, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "Invalid state transition: "), " ")
	switch from {
	case "AwaitingApproval":
		return "a plan waits: 'trunkline exacta show' shows it, 'trunkline exacta reject' makes room for another one"
	case "Executing":
		return "a plan is executed: 'trunkline exacta watch' shows it, 'trunkline exacta cancel' takes it back"
	case "Paused":
		return "an execution is paused: 'trunkline exacta resume' goes on, 'trunkline exacta cancel' takes it back"
	}
	return ""
}
