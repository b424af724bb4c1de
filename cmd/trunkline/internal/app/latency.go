package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/handlers/threads/supervisor"
)

// listWithin is how long the event loops of one endpoint may take to list their connections.
const listWithin = time.Second

// connections lists the open connections of all endpoints.
func (s *server) connections() (rows []obs.Connection) {
	ctx, cancel := context.WithTimeout(context.Background(), listWithin)
	defer cancel()
	for _, l := range s.listeners() {
		rows = l.connections(ctx, rows)
	}
	return rows
}

// clientLoops are the event loops of all endpoints.
func (s *server) clientLoops() (all []*reactor.Server) {
	for _, l := range s.listeners() {
		if l.loops != nil {
			all = append(all, l.loops)
		}
	}
	return all
}

// dropConnection closes a connection of any endpoint at once.
func (s *server) dropConnection(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	for _, l := range s.listeners() {
		if found, err := l.drop(ctx, name); found || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: connection %q is not open", obs.ErrNotFound, name)
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
