package app

import (
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/envelope"
	"trunkline/engine/obs"
	"trunkline/handlers/exchange"
)

// web is the envelope exchange over HTTP (envelope §2.3). The listener is nil where
// http.listen_addr is empty.
type web struct {
	*listener
	srv *exchange.Server
}

// openWeb binds every address of http.listen_addr or none. Nothing is accepted before serve.
func openWeb(c *config.HTTP, o Options, reg *obs.Registry) (w web, err error) {
	if len(c.ListenAddr) == 0 {
		return web{}, nil
	}
	w.listener = &listener{label: "http", section: "http", protocol: "http", access: &c.Access}
	if err = w.bind(o, true); err != nil {
		return web{}, err
	}
	engine := envelope.NewEngine(envelope.Options{Now: time.Now, NewID: envelope.RandomID, StageOrder: c.DefaultStageOrder})
	hc := c.HTTPConfig
	hc.Logger, hc.Recorder = o.Logger, o.recorder
	w.srv = exchange.NewServer(engine, hc)
	w.handTo(w.srv)
	if err = addMetrics(reg, webMetrics, func() *exchange.Stats { s := w.srv.Stats(); return &s }); err != nil {
		w.abort()
		return web{}, err
	}
	return w, nil
}
