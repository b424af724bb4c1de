package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/monitor"
	"trunkline/engine/obs"
	"trunkline/engine/projects"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
	projectweb "trunkline/handlers/exacta/web"
)

// projectEndpoint is the server of projects with everything that moves its bytes (exacta §2).
type projectEndpoint struct {
	cfg    *config.Exacta
	srv    *exacta.Server
	lines  *listener          // nil when exacta.listen_addr is empty
	ws     *listener          // nil when exacta.ws_addr is empty
	page   *projectweb.Viewer // nil without an admin listener
	viewer *listener          // of the page; it has no addresses
}

// openProjects binds every address of exacta.listen_addr and exacta.ws_addr or none; without
// addresses it returns nil. Nothing is accepted before serve. reg may be nil.
func openProjects(c *config.Exacta, o Options, reg *obs.Registry) (_ *projectEndpoint, err error) {
	if len(c.ListenAddr)+len(c.WSAddr) == 0 {
		return nil, nil
	}
	ec, err := c.Server()
	if err != nil {
		return nil, err
	}
	ec.Logger, ec.Version, ec.Recorder = o.Logger, o.Build.Version, o.recorder
	e := &projectEndpoint{cfg: c, srv: exacta.New(ec)}
	defer func() {
		if err != nil {
			e.abort()
		}
	}()
	if err = e.openLines(o); err != nil {
		return nil, err
	}
	if err = e.openWeb(o); err != nil {
		return nil, err
	}
	if reg != nil {
		if err = e.register(reg); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// openLines binds the addresses of lines.
func (e *projectEndpoint) openLines(o Options) (err error) {
	c := e.cfg
	if len(c.ListenAddr) == 0 {
		return nil
	}
	e.lines = &listener{label: "exacta", section: "exacta", protocol: "exacta", of: " of projects", access: &c.Access,
		most: func(c *config.Config) int { return c.Exacta.MaxConnections }}
	if err = e.lines.bind(o, false); err != nil {
		return err
	}
	return e.lines.startLoops(c.Loops, stream.Config{
		MaxConnections: c.MaxConnections, Limits: e.srv.SocketLimits(),
		Open: e.srv.OpenSocket, Refuse: e.srv.AppendRefused,
	}, monitor.Lines(), o)
}

// openWeb binds the addresses of WebSockets.
func (e *projectEndpoint) openWeb(o Options) (err error) {
	if len(e.cfg.WSAddr) == 0 {
		return nil
	}
	e.ws = &listener{label: "exacta websocket", section: "exacta_ws", protocol: "exacta", access: e.cfg.WS(),
		most: func(c *config.Config) int { return c.Exacta.MaxConnections }}
	srv := projectweb.NewServer(e.srv)
	e.ws.clients, e.ws.book = srv, srv.Clients()
	return e.ws.bind(o, true)
}

// listeners are those that there are.
func (e *projectEndpoint) listeners() []*listener {
	if e == nil {
		return nil
	}
	return []*listener{e.lines, e.ws, e.viewer}
}

// refused returns how many connections were turned away.
func (e *projectEndpoint) refused() (n int64) {
	if e.lines != nil {
		n = e.lines.loops.Stats().Refused
	}
	if e.ws != nil {
		n += e.ws.clients.(*projectweb.Server).Refused()
	}
	return n
}

// view returns the page that shows projects, for the admin listener.
func (e *projectEndpoint) view() http.Handler {
	if e == nil {
		return nil
	}
	e.page = projectweb.NewViewer(e.srv)
	e.viewer = &listener{protocol: "exacta", book: e.page.Clients()}
	return e.page
}

// serve starts answering on every listener.
func (e *projectEndpoint) serve(report func(error)) {
	if e == nil {
		return
	}
	e.lines.serve(report)
	e.ws.serve(report)
}

// projectsGrace is how long the last answers may take in a drain.
const projectsGrace = 11 * time.Second

// shutdown ends the connections, and waits until all executions are paused and saved: a step that
// runs is finished, however long a build takes (exacta §2.1).
func (e *projectEndpoint) shutdown() error {
	if e == nil {
		return nil
	}
	e.srv.Stop()
	err := together(
		func() error { return within(projectsGrace, e.lines.shutdown) },
		func() error { return within(projectsGrace, e.ws.shutdown) },
		func() error { return within(projectsGrace, e.endPage) },
	)
	e.srv.Close()
	return unlessLate(err)
}

// endPage ends the WebSockets of the page.
func (e *projectEndpoint) endPage(ctx context.Context) error {
	if e.page == nil {
		return nil
	}
	return e.page.Shutdown(ctx)
}

// abort ends an endpoint that never served.
func (e *projectEndpoint) abort() {
	if e == nil {
		return
	}
	e.lines.abort()
	e.ws.abort()
	_ = e.endPage(context.Background()) // there is no connection
	e.srv.Close()
}

// RunProjects serves projects, and nothing else, on the addresses of exacta.listen_addr and
// exacta.ws_addr until ctx ends (exacta §2.1).
func RunProjects(ctx context.Context, c *config.Exacta, o Options) error {
	o.files, o.certs = stream.NewFiles(), make(certificates)
	e, err := openProjects(c, o, nil)
	if err != nil {
		return err
	}
	for _, l := range []*listener{e.lines, e.ws} {
		l.show(o.Banner)
	}
	failed := make(chan error, 1)
	e.serve(func(err error) {
		if err != nil {
			select {
			case failed <- err:
			default:
			}
		}
	})
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(err, e.shutdown())
}

// projectStats is what one reading of projects gives.
type projectStats struct {
	exacta.Stats
	refused int64
}

// projectMetrics are those of projects.
var projectMetrics = []metric[projectStats]{
	{Family: obs.Family{Name: "trunkline_exacta_sessions", Help: "Open connections of projects, by carrier.", Kind: obs.Gauge, Labels: []string{"carrier"}},
		series: func(s *projectStats, put putSeries) {
			for carrier, n := range s.Sessions {
				put(float64(n), exacta.Carrier(carrier).String())
			}
		}},
	counter("trunkline_exacta_connections_refused_total", "Connections of projects turned away: over the limit, a unix peer of another user, a WebSocket of another origin or without the token.",
		func(s *projectStats) float64 { return float64(s.refused) }),
	{Family: obs.Family{Name: "trunkline_exacta_requests_total", Labels: []string{"command", "code"},
		Help: "Messages answered, by command and error code; the command is empty for what cannot be read, the code for what went well."},
		series: func(s *projectStats, put putSeries) {
			for _, r := range s.Requests {
				put(float64(r.Count), r.Command, r.Code)
			}
		}},
	counter("trunkline_exacta_repeats_total", "Requests that got the answer of an earlier one with the same id.",
		func(s *projectStats) float64 { return float64(s.Repeats) }),
	counter("trunkline_exacta_events_total", "Events of all projects, each counted once.",
		func(s *projectStats) float64 { return float64(s.Events.Load()) }),
	{Family: obs.Family{Name: "trunkline_exacta_projects", Help: "Open projects, by state.", Kind: obs.Gauge, Labels: []string{"state"}},
		series: func(s *projectStats, put putSeries) {
			for _, state := range projects.States() {
				put(float64(s.Projects[state]), state.String())
			}
		}},
	{Family: obs.Family{Name: "trunkline_exacta_transitions_total", Help: "Transitions of projects, by the state they led to: Executing counts executions that began or went on.", Labels: []string{"state"}},
		series: func(s *projectStats, put putSeries) {
			for _, state := range projects.States() {
				put(float64(s.Entered(state)), state.String())
			}
		}},
	{Family: obs.Family{Name: "trunkline_exacta_steps_total", Help: "Steps of executions that ended, by result: done, failed.", Labels: []string{"result"}},
		series: func(s *projectStats, put putSeries) {
			put(float64(s.StepsDone.Load()), "done")
			put(float64(s.StepsFailed.Load()), "failed")
		}},
	{Family: obs.Family{Name: "trunkline_exacta_planner_requests_total", Help: "Questions to an external planner, answers of its cache included, by error code; empty for what went well.", Labels: []string{"code"}},
		series: func(s *projectStats, put putSeries) {
			for _, r := range s.Planner {
				put(float64(r.Count), r.Code)
			}
		}},
}

// register adds the metrics of projects.
func (e *projectEndpoint) register(reg *obs.Registry) error {
	return addMetrics(reg, projectMetrics, func() *projectStats {
		return &projectStats{Stats: e.srv.Stats(), refused: e.refused()}
	})
}
