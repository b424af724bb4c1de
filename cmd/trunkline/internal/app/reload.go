package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/systemd"
	"trunkline/engine/obs"
	"trunkline/engine/procgroup"
	"trunkline/handlers/exacta"
	"trunkline/handlers/ops"
)

// lastReload is what /reload shows.
func (s *server) lastReload() ops.Reload {
	if r := s.reloaded.Load(); r != nil {
		return *r
	}
	return ops.Reload{PID: os.Getpid(), Started: procgroup.StartOf(os.Getpid()), Changed: []string{}, Restart: []string{}}
}

// reload reads the settings again, and takes over what a running server can change: all of it or,
// if anything is wrong or ctx ends meanwhile, nothing.
func (s *server) reload(ctx context.Context) {
	now := time.Now()
	s.options.notify(systemd.Reloading, systemd.Monotonic(), systemd.Status("reading the settings again"))
	changed, restart, err := s.takeOver(ctx, now)
	s.keepOutcome(now, changed, restart, err)
	status := systemd.Status("serving")
	if err != nil {
		status = systemd.Status("serving with the settings of before: %v", err)
	}
	if ctx.Err() == nil { // a server that stops is not ready
		s.options.notify(systemd.Ready, status)
	}
}

// errStopping is the outcome of a reload that was ordered too late.
var errStopping = errors.New("the server is stopping")

// refuseReloads refuses all reloads while the server stops.
func (s *server) refuseReloads() {
	for {
		select {
		case <-s.stopped:
			return
		case <-s.options.Hangup:
			s.keepOutcome(time.Now(), nil, nil, errStopping)
		}
	}
}

// keepOutcome has a reload that began at now logged, and shown by /reload.
func (s *server) keepOutcome(now time.Time, changed, restart []string, err error) {
	s.outcomes.Lock()
	defer s.outcomes.Unlock()
	r := s.lastReload()
	r.Count++
	r.At, r.Error = &now, ""
	r.OK, r.Changed, r.Restart = err == nil, append([]string{}, changed...), append([]string{}, restart...)
	if err != nil {
		r.Error = err.Error()
		s.log.Error("cannot reload, the settings stay as they were", "error", err)
	} else {
		s.log.Info("reloaded", "changed", strings.Join(changed, ","), "restart", strings.Join(restart, ","))
	}
	s.reloaded.Store(&r)
}

// takeOver returns the settings that have changed, their files included, and those that take a
// restart.
func (s *server) takeOver(ctx context.Context, now time.Time) (changed, restart []string, err error) {
	old := s.cfg.Load()
	next, err := s.options.Reload()
	if err != nil {
		return nil, nil, err
	}
	next, changed, restart, err = old.Reloaded(next)
	if err != nil {
		return nil, nil, err
	}
	certify, files, err := s.options.certs.prepare(next, now)
	if err != nil {
		return nil, nil, err
	}
	projects, err := s.exacta.prepare(&next.Exacta)
	if err != nil {
		return nil, nil, err
	}
	admit, err := s.console.prepare(&next.Admin)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := s.threads.prepareWebhooks(&next.Threads)
	if err != nil {
		return nil, nil, err
	}
	level, err := obs.ParseLevel(next.Log.Level)
	if err != nil {
		return nil, nil, err
	}
	verify, err := s.threads.prepare(&old.Threads, &next.Threads) // the last one: what it has opened is used
	if err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, errStopping
	}
	certify()
	hooks()
	if s.exacta != nil {
		if s.exacta.srv.Live().AuthToken != projects.AuthToken {
			files = append(files, "exacta.auth_token_file")
		}
		s.exacta.srv.SetLive(projects)
	}
	files = append(append(files, admit()...), verify()...)
	if s.options.LogLevel != nil {
		s.options.LogLevel.Set(level)
	}
	s.limit(next)
	s.cfg.Store(next)
	warnFiles(s.log, next)
	for _, key := range files {
		if !slices.Contains(changed, key) {
			changed = append(changed, key)
		}
	}
	return changed, restart, nil
}

// limit applies the limits of cfg.
func (s *server) limit(cfg *config.Config) {
	s.options.cluster.SetClients(clusterClients(cfg))
	for _, l := range s.listeners() {
		if l.most != nil {
			l.clients.SetMaxConnections(l.most(cfg))
		}
	}
	s.threads.limit(&cfg.Threads)
	for _, c := range s.replicas() {
		c.limit(cfg)
	}
	if s.web.srv != nil {
		s.web.srv.SetLimits(cfg.HTTP.MaxConnections, cfg.HTTP.MaxInFlight)
	}
	s.options.recorder.SetSlowThreshold(cfg.Admin.SlowThreshold)
}

// limit applies the limits of c.
func (t *threadServer) limit(c *config.Threads) {
	if t != nil {
		t.peers.SetLimit(c.FailedAuthPer10s)
	}
}

// prepare opens what tokens are verified by. apply puts it in force, if it differs, and returns the
// settings whose files have another content.
func (t *threadServer) prepare(old, next *config.Threads) (apply func() []string, err error) {
	nothing := func() []string { return nil }
	if t == nil || next.KeySources() == 0 {
		return nothing, nil // the key of --dev stays
	}
	if next.JWKSURL != "" && sameTokens(old, next) {
		return nothing, nil // the key set is asked for again and again anyway
	}
	v, err := t.newVerifier(next)
	if err != nil {
		return nil, err
	}
	if !v.AwaitKeys() {
		v.Close()
		return nil, errors.New("cannot use threads.jwks_url: the key set cannot be read")
	}
	return func() []string {
		if !t.verifier.Replace(v) || !sameTokens(old, next) {
			return nil
		}
		key, _ := next.KeySource()
		return []string{key}
	}, nil
}

// sameTokens reports whether the settings by which tokens are verified are the same.
func sameTokens(a, b *config.Threads) bool {
	return a.JWKSURL == b.JWKSURL && a.JWKSFile == b.JWKSFile && a.PublicKeyFile == b.PublicKeyFile && a.HS256SecretFile == b.HS256SecretFile &&
		a.Audience == b.Audience && a.MaxTokenTTL == b.MaxTokenTTL && a.RevocationFile == b.RevocationFile && a.WorkspaceID == b.WorkspaceID
}

// prepare reads what apply puts in force.
func (e *projectEndpoint) prepare(c *config.Exacta) (live exacta.Live, err error) {
	if e == nil {
		return live, nil
	}
	live = exacta.Live{MaxConnections: c.MaxConnections, MaxOpenProjects: c.MaxOpenProjects}
	live.AuthToken, err = c.Token()
	return live, err
}
