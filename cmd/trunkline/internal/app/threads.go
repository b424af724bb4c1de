package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/engine/journal/embedded"
	"trunkline/engine/link"
	"trunkline/engine/obs"
	"trunkline/engine/reactor"
	"trunkline/engine/store/rows"
	"trunkline/engine/stream"
	core "trunkline/engine/threads"
	"trunkline/handlers/ipc"
	"trunkline/handlers/threads"
	threadlines "trunkline/handlers/threads/lines"
	"trunkline/handlers/threads/mcp"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/token"
	threadweb "trunkline/handlers/threads/web"
)

// threadState is the state of agent threads. It is there without a listener, too: the journal may
// have their records.
type threadState struct {
	engine *core.Engine
	db     *rows.DB // nil until open
}

// newThreadState returns the state, whose rows are yet to be opened.
func newThreadState(c *config.Threads, o Options) (*threadState, error) {
	triggers := core.DefaultTriggers
	triggers.MaxRetries, triggers.MaxResumes = uint32(c.TriggerMaxRetries), uint32(c.TriggerResumeMaxAttempts)
	triggers.Recheck, triggers.MaxDefer = c.TriggerRecheck.Milliseconds(), c.TriggerMaxDefer.Milliseconds()
	triggers.PerMinute, triggers.StaleAfter = c.TriggerRateLimitPerMinute, c.SessionStaleAfter.Milliseconds()
	triggers.AckTimeout = c.TriggerAckTimeout.Milliseconds()
	triggers.NoFallback = c.TriggerFallback == config.FallbackOff
	triggers.LoopFailures, triggers.LoopSame = uint32(c.LoopMaxTurns), uint32(c.LoopMaxRepeatedFindings)
	switch c.UnreadAutoTrigger {
	case config.UnreadManaged:
		triggers.Unread = core.TriggerManaged
	case config.UnreadAll:
		triggers.Unread = core.TriggerAll
	}
	s := &threadState{}
	s.engine = core.New(core.Config{
		HotBytes: c.HotBytes, MaxThreads: c.MaxThreads, MaxSessions: c.MaxSessions,
		KeyWindow: c.IdempotencyWindow.Milliseconds(), Triggers: triggers,
		PostsPerAgent: c.RatePostPerAgentPerMinute, PostsPerThread: c.RatePostPerThreadPerMinute,
		Failed: func(err error) {
			o.Logger.Error("the rows of agent threads failed, stopping at once", "error", err)
			os.Exit(1)
		},
	})
	return s, nil
}

// open opens the rows; dir is that of the store, empty in mode memory. barrier waits for the
// journal.
func (s *threadState) open(dir string, barrier func(context.Context) error, o Options, fatal func(error)) (err error) {
	rc := rows.Config{Memory: dir == "", Barrier: barrier, OnFatal: fatal, Logger: o.Logger}
	if dir != "" {
		rc.Dir = filepath.Join(dir, embedded.RowsDir)
	}
	if s.db, err = rows.Open(rc); err != nil {
		return fmt.Errorf("cannot open the rows of agent threads: %w", err)
	}
	return s.engine.SetRows(core.StoredRows(s.db))
}

// close releases the rows. Nothing changes any more.
func (s *threadState) close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// threadEndpoint is agent threads with everything that moves their bytes.
type threadEndpoint struct {
	state    *threadState
	verifier *token.Current
	peers    *token.Peers
	mcp      *mcp.Handler
	service  *threads.Service
	web      *threadweb.Server
	webBound []bound
	webPeers []bound // for what nodes forward
	lines    *threadlines.Server
	loops    *reactor.Server
	taps     link.Taps
	lnBound  []bound
	lnPeers  []bound // for what nodes forward
	tasks    sync.WaitGroup
	draining atomic.Bool
	devToken string // of --dev

	meter    *obs.Meter
	cfg      *config.Config
	logger   *slog.Logger
	recorder *obs.Recorder
	jobs     *threads.Jobs
	wakers   wakers
}

// errThreadsClosed is why agent threads are closed, for the banner.
const threadsClosed = "threads off: no key source (threads.jwks_url, threads.jwks_file, threads.public_key_file or threads.hs256_secret_file)"

// openThreads binds the listeners of agent threads; nil without a key source, or without addresses.
func openThreads(cfg *config.Config, state *threadState, svc *ipc.Service, ready func() bool, o Options) (_ *threadEndpoint, err error) {
	c := &cfg.Threads
	t := &threadEndpoint{state: state, cfg: cfg, logger: o.Logger, recorder: o.recorder, meter: method.NewMeter(o.recorder)}
	if len(c.ListenAddr)+len(c.LinesAddr) == 0 || c.KeySources() == 0 && !cfg.Dev() {
		return nil, nil
	}
	defer func() {
		if err != nil {
			t.abort()
		}
	}()
	v, err := t.newVerifier(c)
	if err != nil {
		return nil, err
	}
	t.verifier = token.NewCurrent(v)
	resume, err := config.Argv("threads.trigger_resume_argv", c.TriggerResumeArgv)
	if err != nil {
		return nil, err
	}
	spawn, err := config.Argv("threads.trigger_spawn_argv", c.TriggerSpawnArgv)
	if err != nil {
		return nil, err
	}
	st := svc.Store()
	t.service = threads.New(threads.Config{
		Engine: state.engine, Await: st.Await, Resume: resume, Spawn: spawn, MaxDefer: c.TriggerMaxDefer,
		Busy: t.wakers.busy, Logger: o.Logger,
	})
	if t.webBound, err = listenThreads(cfg, &c.Access, o); err != nil {
		return nil, err
	}
	if t.lnBound, err = listenThreads(cfg, c.Lines(), o); err != nil {
		return nil, err
	}
	for i := range t.webBound {
		t.webBound[i].ln = o.files.Listener(t.webBound[i].ln, o.Logger)
	}
	t.jobs = threads.NewJobs(t.service)
	t.peers = token.NewPeers(c.FailedAuthPer10s)
	issuers := authServers(c)
	pending := method.NewBudget(0)
	t.mcp = t.newMCP(c, issuers, pending, o)
	t.web = threadweb.New(threadweb.Config{
		Rows: method.Rows, Dispatcher: t.service, Verify: t.verifier.Verify, Peers: t.peers, Pending: pending, IDs: state.engine.AppendRequestID, Ready: ready, Metrics: contractMetrics(state.engine, t.jobs),
		MCP: t.mcp, Metadata: mcp.Metadata(c.PublicURL, issuers), ResourceMetadata: mcp.MetadataURL(c.PublicURL, issuers),
		Audit: t.service.Audit, Jobs: t.service.Jobs, Limits: threadweb.Limits{Connections: c.MaxConnections}, Meter: t.meter, Logger: o.Logger,
	})
	t.lines = threadlines.New(threadlines.Config{
		Dispatcher: t.service, Verifier: t.verifier, Peers: t.peers, Gate: svc.Gate(), Skew: c.ClockSkew.Seconds(), Lookup: method.Lookup,
		NewRequestID: state.engine.AppendRequestID, Meter: t.meter, Logger: o.Logger,
	})
	t.loops, err = reactor.New(reactor.Config{Loops: c.Loops, Config: stream.Config{Protocol: "threads", MaxConnections: c.MaxConnections, Files: o.files,
		Limits: t.lines.Limits(), Open: t.taps.Opener(t.lines.Open), Refuse: t.lines.AppendRefusal, Logger: o.Logger}})
	if err != nil {
		return nil, fmt.Errorf("cannot start the event loops of agent threads: %w", err)
	}
	return t, nil
}

// loopsOf returns the event loops, nil where there are none.
func (t *threadEndpoint) loopsOf() *reactor.Server {
	if t == nil {
		return nil
	}
	return t.loops
}

// linesOf returns the server of lines, nil where there is none.
func (t *threadEndpoint) linesOf() *threadlines.Server {
	if t == nil {
		return nil
	}
	return t.lines
}

// newMCP returns what answers MCP clients.
func (t *threadEndpoint) newMCP(c *config.Threads, issuers []string, pending *method.Budget, o Options) *mcp.Handler {
	return mcp.New(mcp.Config{
		Rows: method.Rows, Dispatcher: t.service, Verify: t.verifier.Verify, Peers: t.peers, Pending: pending, IDs: t.state.engine.AppendRequestID,
		ResourceMetadata: mcp.MetadataURL(c.PublicURL, issuers), AllowedOrigins: c.MCPOrigins,
		CallsPerMinute: c.RateMCPCallsPerAgentPerMinute, Draining: t.draining.Load, Meter: t.meter, Count: func(f method.Condition) { t.web.Count(f) }, Logger: o.Logger,
	})
}

// authServers are the issuers that MCP clients are shown (threads §4.10).
func authServers(c *config.Threads) []string {
	if len(c.AuthServers) == 0 && strings.HasPrefix(c.Issuer, "https://") {
		return []string{c.Issuer}
	}
	return c.AuthServers
}

// listenThreads is listenAll. With --dev, an address that was not chosen and is in use is replaced
// by one with a free port: throw-away instances run side by side.
func listenThreads(cfg *config.Config, a *config.Access, o Options) ([]bound, error) {
	bs, err := listenAll(a, o)
	if errors.Is(err, syscall.EADDRINUSE) && cfg.Dev() && cfg.IsDefault(a) {
		free := *a
		free.ListenAddr = []string{"127.0.0.1:0"}
		return listenAll(&free, o)
	}
	return bs, err
}

// newVerifier opens the key source; with --dev and without one it makes a key and a token.
func (t *threadEndpoint) newVerifier(c *config.Threads) (v *token.Verifier, err error) {
	tc := token.Config{
		KeySetURL: c.JWKSURL, KeySetFile: c.JWKSFile, PublicKeyFile: c.PublicKeyFile, SecretFile: c.HS256SecretFile, Issuer: c.Issuer,
		Audience: c.Audience, ClockSkew: c.ClockSkew, MaxTTL: c.MaxTokenTTL, RevocationFile: c.RevocationFile, Workspace: c.WorkspaceID, Logger: t.logger,
	}
	if c.KeySources() == 0 {
		if t.devToken, err = devKey(&tc); err != nil {
			return nil, fmt.Errorf("cannot make a key for agent threads: %w", err)
		}
		defer os.Remove(tc.PublicKeyFile)
	}
	if v, err = token.New(tc); err != nil {
		return nil, fmt.Errorf("cannot open agent threads: %w", err)
	}
	return v, nil
}

// devIssuer is the issuer of the tokens that --dev makes.
const devIssuer = "trunkline-dev"

// devTokenFor is how long a token of --dev is valid.
const devTokenFor = 24 * time.Hour

// devKey makes a key pair, and a token for a coordinator by it. The private half is forgotten.
func devKey(tc *token.Config) (text string, err error) {
	private, public, err := token.NewKey()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp("", "trunkline-dev-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(public)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	tc.PublicKeyFile = f.Name()
	if tc.Issuer == "" {
		tc.Issuer = devIssuer
	}
	if tc.Audience == "" {
		tc.Audience = token.DefaultAudience
	}
	now := time.Now().Truncate(time.Second)
	workspace := tc.Workspace
	if workspace == "" {
		workspace = "dev"
	}
	claims := token.Claims{Agent: "dev_coordinator", Workspace: workspace, Session: "dev_session", ID: fmt.Sprintf("dev-%d", now.UnixNano()),
		Role: token.Coordinator, Issued: float64(now.Unix()), Expires: float64(now.Add(devTokenFor).Unix())}
	return token.Sign(private, &claims, tc.Issuer, tc.Audience)
}

// serve starts answering on every listener.
func (t *threadEndpoint) serve(report func(error)) {
	if t == nil {
		return
	}
	if err := t.wakers.start(t); err != nil {
		report(err)
		return
	}
	for _, b := range slices.Concat(t.webBound, t.webPeers) {
		t.tasks.Go(func() { report(t.web.Serve(b.ln)) })
	}
	serveLoops(&t.tasks, t.loops, slices.Concat(t.lnBound, t.lnPeers), report, report)
}

// threadsGrace is how long a drain waits for requests in flight: 10 s (threads §2.1), less the
// second in which the output of an interrupted command is read.
const threadsGrace = 9 * time.Second

// shutdown answers what was asked until ctx ends.
func (t *threadEndpoint) shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.draining.Store(true)
	err := errors.Join(t.web.Shutdown(ctx), t.loops.Shutdown(ctx))
	t.tasks.Wait()
	t.wakers.close(ctx)
	t.verifier.Close()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// abort ends an endpoint that never served.
func (t *threadEndpoint) abort() {
	if t == nil {
		return
	}
	closeAll(t.webBound)
	abortLoops(t.lnBound, t.loops)
	if t.verifier != nil {
		t.verifier.Close()
	}
}
