package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/envelope"
	"trunkline/engine/obs"
	"trunkline/engine/stream"
	"trunkline/handlers/exchange"
)

// web is the envelope exchange over HTTP (envelope §2.3).
type web struct {
	srv   *exchange.Server
	bound []bound
	tasks sync.WaitGroup // one accept loop per listener
}

// openWeb binds every address of http.listen_addr or none; without addresses it returns nil.
// Nothing is accepted before Serve.
func openWeb(c *config.HTTP, log *slog.Logger, reg *obs.Registry) (*web, error) {
	if len(c.ListenAddr) == 0 {
		return nil, nil
	}
	bs, err := listenAll(&c.Access)
	if err != nil {
		return nil, err
	}
	engine := envelope.NewEngine(envelope.Options{Now: time.Now, NewID: envelope.RandomID, StageOrder: c.DefaultStageOrder})
	w := &web{srv: exchange.NewServer(engine, webConfig(c, log)), bound: bs}
	if err := addMetrics(reg, webMetrics, func() *exchange.Stats { s := w.srv.Stats(); return &s }); err != nil {
		closeAll(bs)
		return nil, err
	}
	return w, nil
}

// count has the connections counted by files.
func (w *web) count(files *stream.Files, log *slog.Logger) {
	for i := range w.bound {
		w.bound[i].ln = files.Listener(w.bound[i].ln, log)
	}
}

// serve starts answering on every listener. An accept loop that ends by itself is reported.
func (w *web) serve(report func(error)) {
	if w == nil {
		return
	}
	for _, b := range w.bound {
		w.tasks.Go(func() { report(w.srv.Serve(b.ln)) })
	}
}

// shutdown lets running requests finish until ctx ends and closes what is left then, which is no
// failure.
func (w *web) shutdown(ctx context.Context) error {
	if w == nil {
		return nil
	}
	err := w.srv.Shutdown(ctx)
	w.tasks.Wait()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// abort ends a listener that never served.
func (w *web) abort() {
	if w != nil {
		closeAll(w.bound)
	}
}

func webConfig(c *config.HTTP, log *slog.Logger) exchange.HTTPConfig {
	return exchange.HTTPConfig{
		MaxBodyBytes:      c.MaxBodyBytes,
		MaxInFlight:       c.MaxInFlight,
		MaxConnections:    c.MaxConnections,
		ReadHeaderTimeout: seconds(c.ReadHeaderTimeoutSecs),
		ReadBodyTimeout:   seconds(c.ReadBodyTimeoutSecs),
		IdleTimeout:       seconds(c.IdleTimeoutSecs),
		WriteTimeout:      seconds(c.WriteTimeoutSecs),
		MaxHeaderBytes:    c.MaxHeaderBytes,
		Logger:            log,
	}
}
