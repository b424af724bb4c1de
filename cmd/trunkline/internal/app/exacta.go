package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/engine/stream"
	"trunkline/handlers/exacta"
)

// projectEndpoint is the server of projects with everything that moves its bytes (exacta §2).
type projectEndpoint struct {
	cfg   *config.Exacta
	srv   *exacta.Server
	loops *reactor.Server
	bound []bound
	tasks sync.WaitGroup
}

// openProjects binds every address of exacta.listen_addr or none; without addresses it returns nil.
// Nothing is accepted before serve. reg may be nil.
func openProjects(c *config.Exacta, o Options, reg *obs.Registry) (_ *projectEndpoint, err error) {
	if len(c.WSAddr) > 0 {
		return nil, errors.New("cannot open exacta.ws_addr: this program has no WebSocket")
	}
	if len(c.ListenAddr) == 0 {
		return nil, nil
	}
	ec, err := c.Server()
	if err != nil {
		return nil, err
	}
	ec.Logger, ec.Version = o.Logger, o.Build.Version
	e := &projectEndpoint{cfg: c, srv: exacta.New(ec)}
	defer func() {
		if err != nil {
			e.abort()
		}
	}()
	if e.bound, err = listenAll(&c.Access); err != nil {
		return nil, err
	}
	e.loops, err = reactor.New(reactor.Config{Loops: c.Loops, Config: stream.Config{MaxConnections: c.MaxConnections, Files: o.files,
		Limits: e.srv.SocketLimits(), Open: e.srv.OpenSocket, Refuse: e.srv.AppendRefused, Logger: o.Logger}})
	if err != nil {
		return nil, fmt.Errorf("cannot start the event loops of projects: %w", err)
	}
	if reg != nil {
		if err = e.register(reg); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// banner shows the addresses.
func (e *projectEndpoint) banner(to io.Writer) {
	showBound(to, "exacta", e.bound)
}

// serve starts answering on every listener.
func (e *projectEndpoint) serve(report func(error)) {
	if e != nil {
		serveLoops(&e.tasks, e.loops, e.bound, report, report)
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
	err := e.loops.Shutdown(ctx)
	e.tasks.Wait()
	e.srv.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// abort ends an endpoint that never served.
func (e *projectEndpoint) abort() {
	if e == nil {
		return
	}
	abortLoops(e.bound, e.loops)
	e.srv.Close()
}

// RunProjects serves projects, and nothing else, on the addresses of exacta.listen_addr and
// exacta.ws_addr until ctx ends (exacta §2.1).
func RunProjects(ctx context.Context, c *config.Exacta, o Options) error {
	o.files = stream.NewFiles()
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
