package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/handlers/console"
	"trunkline/handlers/threads/supervisor"
)

// listWithin is how long the event loops of one endpoint may take to list their connections.
const listWithin = time.Second

// connections lists the open connections of all endpoints.
func (s *server) connections() (rows []obs.Connection) {
	ctx, cancel := context.WithTimeout(context.Background(), listWithin)
	defer cancel()
	for _, l := range s.clientLoops() {
		rows = append(rows, l.Connections(ctx)...)
	}
	if s.web != nil {
		rows = s.web.srv.Connections(rows)
	}
	for _, t := range s.threadClients() {
		rows = t.Connections(rows)
	}
	if e := s.exacta; e != nil {
		if e.ws != nil {
			rows = e.ws.Connections(rows)
		}
		if e.viewer != nil {
			rows = e.viewer.Connections(rows)
		}
	}
	return rows
}

// clientLoops are the event loops of all endpoints.
func (s *server) clientLoops() (all []*reactor.Server) {
	for _, r := range s.replicas() {
		all = append(all, r.kernel.srv)
		if r.threads != nil {
			all = append(all, r.threads.loops)
		}
	}
	for _, l := range []*reactor.Server{s.first().tools.loopsOf(), s.exacta.loopsOf()} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// clientBook is a part of the server that knows its clients, beside those of event loops.
type clientBook interface {
	Connections([]obs.Connection) []obs.Connection
	Totals() (open, in, out int64)
	Drop(name string) (found bool)
}

// threadClients are the parts of agent threads that know their clients: routers, and HTTP.
func (s *server) threadClients() (all []clientBook) {
	if r := s.threadRouter; r != nil {
		all = append(all, r.web, r.lines)
	}
	for _, r := range s.replicas() {
		if r.threads != nil {
			all = append(all, r.threads.web)
		}
	}
	return all
}

// dropConnection closes a connection of any endpoint at once.
func (s *server) dropConnection(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	var others []func(name string) bool
	if s.web != nil {
		others = append(others, s.web.srv.Drop)
	}
	for _, t := range s.threadClients() {
		others = append(others, t.Drop)
	}
	if e := s.exacta; e != nil {
		if e.ws != nil {
			others = append(others, e.ws.Drop)
		}
		if e.viewer != nil {
			others = append(others, e.viewer.Drop)
		}
	}
	for _, l := range s.clientLoops() {
		if found, err := l.Drop(ctx, name); found || err != nil {
			return err
		}
	}
	if slices.ContainsFunc(others, func(drop func(string) bool) bool { return drop(name) }) {
		return nil
	}
	return fmt.Errorf("%w: connection %q is not open", console.ErrNotFound, name)
}

// registerLatency adds the metrics of latencies and of certificates.
func (s *server) registerLatency(reg *obs.Registry, rec *obs.Recorder) error {
	return errors.Join(rec.Register(reg), reg.AddGroup([]obs.Family{{
		Name: "trunkline_certificate_expiry_timestamp_seconds", Kind: obs.Gauge, Labels: []string{"listener"},
		Help: "When the certificate of a TLS listener expires, or the first of its chain, in seconds since 1970, by its section.",
	}}, func(put obs.Put) {
		for _, l := range s.listeners() {
			for _, b := range l.bound {
				if at, ok := notAfter(b.tls); ok {
					put(0, float64(at.Unix()), l.section)
					break // those of one section share a certificate
				}
			}
		}
	}))
}

// listeners are those of a section of the settings.
type listeners struct {
	section string
	bound   []bound
}

func (s *server) listeners() []listeners {
	all := []listeners{{"kernel", s.kernelBound()}}
	if s.web != nil {
		all = append(all, listeners{"http", s.web.bound})
	}
	if tools := s.first().tools; tools != nil {
		all = append(all, listeners{"toolhost", tools.bound})
	}
	if s.threads != nil {
		web, lines := s.threadsBound()
		all = append(all, listeners{"threads", web}, listeners{"threads_lines", lines})
	}
	if s.exacta != nil {
		all = append(all, listeners{"exacta", s.exacta.bound}, listeners{"exacta_ws", s.exacta.wsBound})
	}
	return all
}

// notAfter returns when the first certificate that c shows to clients expires.
func notAfter(c *tls.Config) (at time.Time, ok bool) {
	if c == nil {
		return at, false
	}
	if c.GetConfigForClient != nil { // a reload replaces it
		c, _ = c.GetConfigForClient(&tls.ClientHelloInfo{})
	}
	var shown *tls.Certificate
	if c.GetCertificate != nil {
		shown, _ = c.GetCertificate(&tls.ClientHelloInfo{})
	}
	if shown == nil && len(c.Certificates) > 0 {
		shown = &c.Certificates[0]
	}
	if shown == nil {
		return at, false
	}
	for _, der := range shown.Certificate {
		if leaf, err := x509.ParseCertificate(der); err == nil && (!ok || leaf.NotAfter.Before(at)) {
			at, ok = leaf.NotAfter, true
		}
	}
	return at, ok
}

// The rows of the meter of a storage.
const (
	stepQueueWait = iota
	stepCommit
)

// newStorageMeter returns the meter of what the journal does.
func newStorageMeter(rec *obs.Recorder) *obs.Meter {
	return rec.Meter(obs.StepProtocol, []string{stepQueueWait: "store_queue_wait", stepCommit: "store_commit"})
}

// written is the OnWritten of the journal.
func (s *storage) written(waited, took time.Duration) {
	if waited >= 0 {
		s.meter.Record(stepQueueWait, int64(waited), 1, 0, nil)
	}
	s.meter.Record(stepCommit, int64(took), 1, 0, nil)
}

// timeWakes has the attempts of a supervisor timed: a delivery to a runtime until it is there, a
// command until it has ended.
func timeWakes(sc *supervisor.Config, rec *obs.Recorder) {
	m := rec.Meter(obs.StepProtocol, []string{"agent_wake", "agent_run"})
	record := func(row int, began time.Time, o supervisor.Outcome) supervisor.Outcome {
		failed := int64(0)
		if o.Code != supervisor.Success {
			failed = 1
		}
		m.Record(row, int64(time.Since(began)), 1, failed, nil)
		return o
	}
	deliver, run := sc.Deliver, sc.Run
	sc.Deliver = func(ctx context.Context, a supervisor.Attempt) supervisor.Outcome {
		began := time.Now()
		return record(0, began, deliver(ctx, a))
	}
	sc.Run = func(ctx context.Context, c supervisor.Command, acked <-chan struct{}) supervisor.Outcome {
		began := time.Now()
		return record(1, began, run(ctx, c, acked))
	}
}
