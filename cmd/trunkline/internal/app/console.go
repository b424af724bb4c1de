package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/codec/jsonx"
	"trunkline/codec/transcode"
	"trunkline/codec/wire"
	"trunkline/engine/connection"
	"trunkline/engine/obs"
	"trunkline/engine/projects/secret"
	"trunkline/engine/stream"
	"trunkline/handlers/console"
	"trunkline/handlers/exacta"
	"trunkline/handlers/exacta/exactaclient"
	"trunkline/handlers/ipc/ipcclient"
	"trunkline/handlers/ops"
)

// maxConsoleCalls bounds the connections of the console to the kernel endpoint: its live views, and
// the pages and changes that ask for one process.
const maxConsoleCalls = 64

// consolePages is the web console with what it reads the server through.
type consolePages struct {
	*console.Console
	s *server
	// host serves the console's own connections to the kernel endpoint, which are pipes: what it
	// shows and changes of a process goes the way of all requests, the wait for the disk included.
	host *stream.Host
}

// openConsole returns the console of the admin listener, whose other parts are in oc.
func (s *server) openConsole(oc *ops.Config, version string) (*consolePages, error) {
	cfg := s.cfg.Load()
	viewer, operator, err := cfg.Admin.ConsoleTokens()
	if err != nil {
		return nil, err
	}
	p := &consolePages{s: s, host: stream.NewHost(stream.Config{
		MaxConnections: maxConsoleCalls, Limits: limits(&cfg.Kernel), Logger: s.log, Refuse: s.first().kernel.svc.AppendRefusal,
	})}
	src := console.Source{
		Overview: oc.Overview, Processes: p.processes, Process: p.process, Terminate: p.terminate,
		Threads: p.threads, Thread: p.thread, FollowThread: p.followThread, PostMessage: p.postMessage, CloseThread: p.closeThread, Topics: p.topics, Subscribe: p.subscribe,
		Connections: oc.Connections, Drop: s.dropConnection, Slow: oc.Slow, Store: p.store, Settings: p.settings,
		Standing: oc.Standing, Unready: p.unready,
	}
	if c := s.options.cluster; c != nil {
		src.Order = func(ctx context.Context, o console.ClusterOrder) error {
			return c.Order(ctx, o.Verb, o.Partition, o.Node)
		}
		src.Cluster = func() obs.Cluster { return c.View(c.Closed(), false) }
	}
	if s.exacta != nil {
		src.Projects, src.Project, src.Cancel = p.projects, p.project, p.cancel
	}
	p.Console, err = console.New(console.Config{
		Source: src, ViewerToken: viewer, OperatorToken: operator, Loopback: cfg.Admin.Loopback(), Version: version, Logger: s.log,
	})
	if err != nil {
		p.shutdown()
		return nil, err
	}
	return p, nil
}

// shutdown ends what is live, and the connections to the kernel endpoint.
func (p *consolePages) shutdown() {
	if p == nil {
		return
	}
	if p.Console != nil {
		p.Close()
	}
	_ = within(adminGrace, p.host.Close)
}

// errNotReady is returned for what cannot be asked before the store was read.
var errNotReady = errors.New("the server is not ready: it has not read its store yet")

// unready returns why what is in tables cannot be shown: they are not read yet, or a standby keeps
// them warm, and a look would change them.
func (p *consolePages) unready() error {
	if slices.ContainsFunc(p.s.replicas(), func(r *replica) bool { return r.kernel.whole.Load() }) {
		return nil
	}
	st := p.s.options.cluster.Standing()
	text := st.Standby()
	if text == "" {
		return errNotReady
	}
	if admin := p.s.options.cluster.Admin(st.Owner); admin != "" {
		return fmt.Errorf("%s: the console of the owner shows this, on its admin address %s", text, admin)
	}
	return fmt.Errorf("%s: the console of the owner shows this", text)
}

// dial opens a connection to the kernel endpoint.
func (p *consolePages) dial() (*ipcclient.Conn, error) {
	r := p.s.first()
	if p.s.router != nil {
		ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
		defer cancel()
		conn, err := p.s.router.inside.Dial(ctx, "console")
		if err != nil {
			return nil, errNotReady
		}
		return ipcclient.New(conn), nil
	}
	if !r.kernel.whole.Load() {
		return nil, cmp.Or(p.unready(), errNotReady)
	}
	here, there := net.Pipe()
	go func() {
		if r.lease != nil {
			defer context.AfterFunc(r.lease.Ended(), func() { _ = there.Close() })()
		}
		_ = p.host.ServeSession(there, "console", r.kernel.svc.Open)
	}()
	return ipcclient.New(here), nil
}

// notFound returns obs.ErrNotFound for the answer of that meaning.
func notFound(err error) error {
	var refused *ipcclient.Error
	if errors.As(err, &refused) && refused.Code == wire.NotFound {
		return fmt.Errorf("%w: %s", obs.ErrNotFound, refused.Message)
	}
	return err
}

func (p *consolePages) process(ctx context.Context, pid string) (d console.ProcessDetail, err error) {
	c, err := p.dial()
	if err != nil {
		return d, err
	}
	defer c.Close()
	got, err := c.GetProcess(ctx, pid)
	if err != nil {
		return d, notFound(err)
	}
	d.Process = console.Process{PID: got.PID, RequestID: got.RequestID, UserID: got.UserID, SessionID: got.SessionID,
		State: got.State, Priority: got.Priority, Stage: got.CurrentStage, Usage: console.Usage(got.Usage)}
	state, err := c.GetSessionState(ctx, pid)
	if err = notFound(err); errors.Is(err, obs.ErrNotFound) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	text, err := transcode.AppendJSON(nil, state.Envelope)
	if err != nil {
		return d, fmt.Errorf("cannot show the envelope: %w", err)
	}
	d.Session = &console.Session{CurrentStage: state.CurrentStage, StageOrder: state.StageOrder, Terminated: state.Terminated,
		TerminalReason: state.TerminalReason, Edges: state.EdgeTraversals, Envelope: text}
	return d, nil
}

func (p *consolePages) terminate(ctx context.Context, pid, reason string) error {
	c, err := p.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.TerminateProcess(ctx, ipcclient.TerminateProcess{PID: pid, Reason: reason})
	return notFound(err)
}

// subscription is a stream of events over a connection of its own.
type subscription struct {
	conn *ipcclient.Conn
	sub  *ipcclient.Subscription
}

func (p *consolePages) subscribe(ctx context.Context, types []string) (console.Subscription, error) {
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	sub, err := c.Subscribe(ctx, ipcclient.Subscribe{EventTypes: types})
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &subscription{c, sub}, nil
}

// Next implements console.Subscription.
func (s *subscription) Next(ctx context.Context) (console.Event, error) {
	e, err := s.sub.Next(ctx)
	if err != nil {
		return console.Event{}, err
	}
	out := console.Event{At: time.UnixMilli(e.TimestampMS).UTC(), Type: e.EventType, Source: e.Source, Payload: e.Payload}
	out.Dropped, out.Gap = ipcclient.Gap(&e)
	return out, nil
}

// Close implements console.Subscription.
func (s *subscription) Close() { _ = s.conn.Close() }

func shownProject(p *exacta.OpenProject) console.Project {
	return console.Project{ID: p.ID, Root: p.Root, State: p.State.String(), Oldest: p.Oldest, Last: p.Last}
}

func (p *consolePages) projects() []console.Project {
	list := []console.Project{}
	for _, open := range p.s.exacta.srv.Projects() {
		list = append(list, shownProject(&open))
	}
	return list
}

func (p *consolePages) project(id string, limit int) (d console.ProjectDetail, err error) {
	open, lines, ok := p.s.exacta.srv.Events(id, limit)
	if !ok {
		return d, fmt.Errorf("%w: project %q is not open", obs.ErrNotFound, id)
	}
	d.Project = shownProject(&open)
	for line := range bytes.Lines(lines) {
		d.Events = append(d.Events, bytes.TrimSpace(line))
	}
	return d, nil
}

// cancel asks for what goes on in a project, and cancels it, as a client does.
func (p *consolePages) cancel(ctx context.Context, id string) error {
	srv := p.s.exacta.srv
	open, _, ok := srv.Events(id, 0)
	if !ok {
		return fmt.Errorf("%w: project %q is not open", obs.ErrNotFound, id)
	}
	here, there := net.Pipe()
	go func() {
		_ = p.host.ServeSession(there, "console", func(port *connection.Port) connection.Session { return srv.Open(port, exacta.Unix, nil) })
	}()
	c := exactaclient.New(here, "this server")
	defer c.Close()
	m, err := c.Ask(ctx, "OpenProject", jsonx.Build(nil).Text("path", open.Root).End(), nil)
	if err != nil {
		return err
	}
	handle := cmp.Or(m.Result.Text("active_execution_id"), m.Result.Text("active_plan_id"))
	if handle == "" {
		return fmt.Errorf("cannot cancel: nothing goes on in project %s", open.Root)
	}
	_, err = c.Ask(ctx, "Cancel", jsonx.Build(nil).Text("project_id", open.ID).Text("execution_id", handle).End(), nil)
	return err
}

func (p *consolePages) store() console.Store {
	now := time.Now()
	v := p.s.first().kernel.store.view(now)
	out := console.Store{Mode: v.Mode, Dir: v.Dir, Warnings: v.Warnings}
	if r := v.Recovery; r != nil {
		out.Recovery = fmt.Sprintf("%s, %.1f %%", r.Phase, r.Percent)
	}
	if j := v.Journal; j != nil {
		out.Open, out.Epoch, out.Appended, out.Durable, out.QueueRecords, out.QueueBytes = true, j.Epoch, j.Appended, j.Durable, j.QueueRecords, j.QueueBytes
		out.Records, out.Groups, out.Bytes, out.Snapshots, out.Error = j.Records, j.Groups, j.Bytes, j.Snapshots, j.Error
		if j.LastSnapshot != nil {
			at := now.Add(-time.Duration(j.LastSnapshot.AgeSecs * float64(time.Second))).UTC()
			out.LastSnapshot, out.LastSnapshotAt = j.LastSnapshot.Index, &at
		}
	}
	if d := v.Disk; d != nil {
		out.UsedBytes, out.FreeBytes = d.UsedBytes, d.FreeBytes
	}
	return out
}

// settings lists those in force, also after a reload.
func (p *consolePages) settings() (list []console.Setting) {
	waiting := p.s.lastReload().Restart
	for _, row := range p.s.cfg.Load().Rows() {
		list = append(list, console.Setting{Key: row.Key, Value: redacted(fmt.Sprint(row.Value)), Origin: row.Origin, Reload: row.Reload,
			Waiting: slices.Contains(waiting, row.Key), Help: row.Help})
	}
	return list
}

// prepare reads the tokens that apply puts in force. apply returns the settings whose tokens are
// others than before.
func (p *consolePages) prepare(c *config.Admin) (apply func() []string, err error) {
	if p == nil {
		return func() []string { return nil }, nil
	}
	viewer, operator, err := c.ConsoleTokens()
	return func() (changed []string) {
		viewers, operators := p.SetTokens(viewer, operator)
		if viewers {
			changed = append(changed, "admin.console_token_file")
		}
		if operators {
			changed = append(changed, "admin.console_operator_token_file")
		}
		return changed
	}, err
}

// redacted returns a value without its secrets: the password of a URL, and what looks like a
// credential.
func redacted(value string) string {
	if u, err := url.Parse(value); err == nil && u.User != nil && strings.Contains(value, "://") {
		value = u.Redacted()
	}
	return string(secret.Redact(nil, []byte(value)))
}
