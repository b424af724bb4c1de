package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/link"
	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
	projectweb "trunkline/handlers/exacta/web"
)

// projectEndpoint is the server of projects with everything that moves its bytes (exacta §2).
type projectEndpoint struct {
	cfg     *config.Exacta
	srv     *exacta.Server
	taps    link.Taps
	loops   *reactor.Server // nil when exacta.listen_addr is empty
	bound   []bound
	ws      *projectweb.Server // nil when exacta.ws_addr is empty
	wsBound []bound
	viewer  *projectweb.Viewer // nil without an admin listener
	tasks   sync.WaitGroup
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
	if e.bound, err = listenAll(&c.Access, o); err != nil {
		return err
	}
	e.loops, err = reactor.New(reactor.Config{Loops: c.Loops, Config: stream.Config{Protocol: "exacta", MaxConnections: c.MaxConnections, Files: o.files,
		Limits: e.srv.SocketLimits(), Open: e.taps.Opener(e.srv.OpenSocket), Refuse: e.srv.AppendRefused, Logger: o.Logger}})
	if err != nil {
		return fmt.Errorf("cannot start the event loops of projects: %w", err)
	}
	return nil
}

// openWeb binds the addresses of WebSockets.
func (e *projectEndpoint) openWeb(o Options) (err error) {
	if len(e.cfg.WSAddr) == 0 {
		return nil
	}
	if e.wsBound, err = listenAll(e.cfg.WS(), o); err != nil {
		return err
	}
	for i := range e.wsBound {
		e.wsBound[i].ln = o.files.Listener(e.wsBound[i].ln, o.Logger)
	}
	e.ws = projectweb.NewServer(e.srv)
	return nil
}

// loopsOf returns the event loops, nil where there are none.
func (e *projectEndpoint) loopsOf() *reactor.Server {
	if e == nil {
		return nil
	}
	return e.loops
}

// refused returns how many connections were turned away.
func (e *projectEndpoint) refused() (n int64) {
	if e.loops != nil {
		n = e.loops.Stats().Refused
	}
	if e.ws != nil {
		n += e.ws.Refused()
	}
	return n
}

// view returns the page that shows projects, for the admin listener.
func (e *projectEndpoint) view() http.Handler {
	if e == nil {
		return nil
	}
	e.viewer = projectweb.NewViewer(e.srv)
	return e.viewer
}

// banner shows the addresses.
func (e *projectEndpoint) banner(to io.Writer) {
	showBound(to, "exacta", e.bound)
	showBound(to, "exacta websocket", e.wsBound)
}

// serve starts answering on every listener.
func (e *projectEndpoint) serve(report func(error)) {
	if e == nil {
		return
	}
	if e.loops != nil {
		serveLoops(&e.tasks, e.loops, e.bound, report, report)
	}
	for _, b := range e.wsBound {
		e.tasks.Go(func() { report(e.ws.Serve(b.ln)) })
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), projectsGrace)
	defer cancel()
	webEnded := make(chan error, 1)
	go func() { webEnded <- e.shutdownWeb(ctx) }()
	var err error
	if e.loops != nil {
		err = e.loops.Shutdown(ctx)
	}
	err = errors.Join(err, <-webEnded)
	e.tasks.Wait()
	e.srv.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// shutdownWeb ends all WebSockets.
func (e *projectEndpoint) shutdownWeb(ctx context.Context) (err error) {
	if e.viewer != nil {
		err = e.viewer.Shutdown(ctx)
	}
	if e.ws != nil {
		err = errors.Join(err, e.ws.Shutdown(ctx))
	}
	return err
}

// abort ends an endpoint that never served.
func (e *projectEndpoint) abort() {
	if e == nil {
		return
	}
	abortLoops(e.bound, e.loops)
	closeAll(e.wsBound)
	_ = e.shutdownWeb(context.Background()) // there is no connection
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
	e.banner(o.Banner)
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
