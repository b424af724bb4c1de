package app

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/monitor"
	"trunkline/engine/obs"
	"trunkline/engine/runtime"
	"trunkline/engine/store/rows"
	"trunkline/engine/stream"
	"trunkline/engine/threadstore"
	"trunkline/handlers/threads"
	"trunkline/handlers/threads/follow"
	threadlines "trunkline/handlers/threads/lines"
	"trunkline/handlers/threads/mcp"
	"trunkline/handlers/threads/method"
	"trunkline/handlers/threads/rest"
	"trunkline/handlers/threads/webhook"
)

// threadsConfig returns the limits of the state of agent threads. It is there without a listener,
// too: the journal may have their records.
func threadsConfig(c *config.Threads, o Options) threadstore.Config {
	triggers := threadstore.DefaultTriggers
	triggers.MaxRetries, triggers.MaxResumes = uint32(c.TriggerMaxRetries), uint32(c.TriggerResumeMaxAttempts)
	triggers.Recheck, triggers.MaxDefer = c.TriggerRecheck.Milliseconds(), c.TriggerMaxDefer.Milliseconds()
	triggers.PerMinute, triggers.StaleAfter = c.TriggerRateLimitPerMinute, c.SessionStaleAfter.Milliseconds()
	triggers.AckTimeout = c.TriggerAckTimeout.Milliseconds()
	triggers.NoFallback = c.TriggerFallback == config.FallbackOff
	triggers.LoopFailures, triggers.LoopSame = uint32(c.LoopMaxTurns), uint32(c.LoopMaxRepeatedFindings)
	switch c.UnreadAutoTrigger {
	case config.UnreadManaged:
		triggers.Unread = threadstore.TriggerManaged
	case config.UnreadAll:
		triggers.Unread = threadstore.TriggerAll
	}
	return threadstore.Config{
		HotBytes: c.HotBytes / o.cluster.Partitions(), MaxThreads: c.MaxThreads, MaxSessions: c.MaxSessions,
		MaxTimers: c.MaxSchedules, KeyWindow: c.IdempotencyWindow.Milliseconds(), Triggers: triggers,
		Retention:     int64(c.RetentionDays) * 24 * time.Hour.Milliseconds(),
		PostsPerAgent: c.RatePostPerAgentPerMinute, PostsPerThread: c.RatePostPerThreadPerMinute,
		Failed: func(err error) {
			o.Logger.Error("the rows of agent threads failed, stopping at once", "error", err)
			os.Exit(1)
		},
	}
}

// protocolThreads is the protocol of agent threads, as lists of connections have it.
const protocolThreads = "threads"

// threadEndpoint is the agent threads of a partition with everything that moves their bytes.
type threadEndpoint struct {
	engine   *threadstore.Engine
	shared   *threadServer
	mcp      *mcp.Handler
	service  *threads.Service
	http     *rest.Server
	web      *listener
	sessions *threadlines.Server
	lines    *listener

	meter    *obs.Meter
	cfg      *config.Config
	recorder *obs.Recorder
	jobs     *threads.Jobs
	follow   *follow.Server
	wakers   wakers
	sender   *webhook.Sender // nil before it serves
}

// openThreads binds the listeners of agent threads, which are those of the router where there are
// several partitions; nil where agent threads are closed.
func openThreads(
	cfg *config.Config,
	rt *runtime.Runtime,
	shared *threadServer,
	o Options,
) (_ *threadEndpoint, err error) {
	if shared == nil {
		return nil, nil
	}
	c := &cfg.Threads
	t := &threadEndpoint{engine: rt.Threads, shared: shared, cfg: cfg, recorder: o.recorder}
	t.meter = method.NewMeter(o.recorder)
	defer func() {
		if err != nil {
			t.abort()
		}
	}()
	resume, err := config.Argv("threads.trigger_resume_argv", c.TriggerResumeArgv)
	if err != nil {
		return nil, err
	}
	spawn, err := config.Argv("threads.trigger_spawn_argv", c.TriggerSpawnArgv)
	if err != nil {
		return nil, err
	}
	t.service = threads.New(threads.Config{
		Engine: rt.Threads, Await: rt.Store.Await, Resume: resume, Spawn: spawn, MaxDefer: c.TriggerMaxDefer,
		Busy: shared.HumanTyping, Logger: o.Logger,
	})
	if t.web, t.lines, err = threadListeners(c, o, o.cluster.Several()); err != nil {
		return nil, err
	}
	t.lines.name = o.named(protocolThreads)
	t.jobs = threads.NewJobs(t.service)
	t.follow = follow.New(follow.Config{Engine: rt.Threads, Verifier: shared.verifier, Skew: c.ClockSkew, MaxWaits: c.MaxWaits})
	issuers, connections := authServers(c), t.web.most(cfg)
	surface := method.Surface{
		Rows: method.Rows, Dispatcher: t.service, Verify: shared.verifier.Verify, Peers: shared.peers, Pending: shared.pending,
		IDs: rt.Threads.AppendRequestID, ResourceMetadata: mcp.MetadataURL(c.PublicURL, issuers),
		Meter: t.meter, Logger: o.Logger,
	}
	t.mcp = mcp.New(mcp.Config{
		Surface: surface, PublicURL: c.PublicURL, AllowedOrigins: c.MCPOrigins, AllowedHosts: c.AllowedHosts,
		CallsPerMinute: c.RateMCPCallsPerAgentPerMinute, Follow: t.follow,
		Draining: func() bool { return t.http.Draining.Load() },
		Count:    func(f method.Condition) { t.http.Count(f) },
	})
	t.http = rest.New(rest.Config{
		Name: o.named(protocolThreads + "-http"), Surface: surface, Unready: shared.unready,
		Metrics: contractMetrics(rt.Threads, t.jobs), MCP: t.mcp, Metadata: mcp.Metadata(c.PublicURL, issuers),
		Audit: t.service.Audit, Jobs: t.service.Jobs, Follow: t.follow, Limits: rest.Limits{Connections: connections},
	})
	t.web.handTo(t.http)
	t.sessions = threadlines.New(threadlines.Config{
		Dispatcher: t.service, Verifier: shared.verifier, Follow: t.follow, Peers: shared.peers, Gate: &rt.Gate, Skew: c.ClockSkew.Seconds(), Lookup: method.Lookup,
		NewRequestID: rt.Threads.AppendRequestID, Meter: t.meter, Logger: o.Logger,
	})
	err = t.lines.startLoops(o.loops(c.Loops), stream.Config{
		MaxConnections: connections, Limits: t.sessions.Limits(),
		Open: t.sessions.Open, Refuse: t.sessions.AppendRefusal,
	}, monitor.Lines(), o)
	return t, err
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
	t.sender = t.shared.hooks.Start(t.engine)
	t.web.serve(report)
	t.lines.serve(report)
}

// threadsGrace is how long a drain waits for requests in flight: 10 s (threads §2.1), less the
// second in which the output of an interrupted command is read.
const threadsGrace = 9 * time.Second

// shutdown answers what was asked until ctx ends.
func (t *threadEndpoint) shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	t.follow.Drain()
	err := errors.Join(t.web.shutdown(ctx), t.lines.shutdown(ctx))
	t.sender.Close(ctx)
	t.wakers.close(ctx)
	return unlessLate(err)
}

// abort ends an endpoint that never served.
func (t *threadEndpoint) abort() {
	if t == nil {
		return
	}
	t.web.abort()
	t.lines.abort()
}

// threadStats is what one reading of agent threads gives.
type threadStats struct {
	threadstore.Stats
	rows  rows.Stats
	lines *threadlines.Counts // nil where there are none

	waits, streams int64
}

// threadMetrics are those of agent threads on the admin address.
var threadMetrics = []metric[threadStats]{
	gauge("trunkline_threads", "Threads in all states.", func(s *threadStats) float64 { return float64(s.Threads) }),
	gauge("trunkline_threads_sessions", "Agents with a registered runtime.", func(s *threadStats) float64 { return float64(s.Sessions) }),
	gauge("trunkline_threads_open_jobs", "Trigger jobs that are not final.", func(s *threadStats) float64 { return float64(s.OpenJobs) }),
	counter("trunkline_threads_unacknowledged_total", "Deliveries to a runtime without a sign of its agent in time.", func(s *threadStats) float64 { return float64(s.Unacknowledged) }),
	counter("trunkline_threads_messages_total", "Messages appended.", func(s *threadStats) float64 { return float64(s.Posted) }),
	gauge("trunkline_threads_hot_bytes", "Memory of the latest messages.", func(s *threadStats) float64 { return float64(s.HotBytes) }),
	gauge("trunkline_threads_unstored_bytes", "Bytes of messages that are not rows yet.", func(s *threadStats) float64 { return float64(s.UnstoredBytes) }),
	gauge("trunkline_threads_waiting_calls", "Calls of read_messages that wait for a message.", func(s *threadStats) float64 { return float64(s.waits) }),
	gauge("trunkline_threads_streams", "Subscriptions and streams.", func(s *threadStats) float64 { return float64(s.streams) }),
	gauge("trunkline_threads_keys", "Idempotency keys that are remembered.", func(s *threadStats) float64 { return float64(s.Keys) }),
	gauge("trunkline_threads_key_bytes", "Memory of the filters of idempotency keys.", func(s *threadStats) float64 { return float64(s.KeyBytes) }),
	gauge("trunkline_rows_disk_bytes", "Bytes of the rows on the disk.", func(s *threadStats) float64 { return float64(s.rows.DiskBytes) }),
	gauge("trunkline_rows_memory_bytes", "Memory of the rows: cache, rows without a file, open files.", func(s *threadStats) float64 { return float64(s.rows.MemoryBytes) }),
	counter("trunkline_rows_flushed_bytes_total", "Bytes of rows written into SSTables.", func(s *threadStats) float64 { return float64(s.rows.FlushedBytes) }),
	counter("trunkline_rows_merged_bytes_total", "Bytes of rows written by merges of files.", func(s *threadStats) float64 { return float64(s.rows.MergedBytes) }),
	{Family: obs.Family{Name: "trunkline_threads_lines_sessions", Help: "Open connections of lines.", Kind: obs.Gauge}, series: func(s *threadStats, put putSeries) {
		if s.lines != nil {
			put(float64(s.lines.Sessions.Load()))
		}
	}},
	{Family: obs.Family{Name: "trunkline_threads_lines_requests_total", Help: "Requests over lines, by what came of them.", Labels: []string{"result"}}, series: func(s *threadStats, put putSeries) {
		if s.lines != nil {
			faults, refused := s.lines.Faults.Load(), s.lines.Refused.Load()
			put(float64(max(s.lines.Requests.Load()-faults, 0)), "ok")
			put(float64(faults-min(refused, faults)), "refused")
			put(float64(refused), "unauthorized")
		}
	}},
}

// threadStats returns nil before the rows are open.
func (c *replica) threadStats() *threadStats {
	rt := c.kernel.rt
	db := rt.Rows()
	if db == nil {
		return nil
	}
	st := &threadStats{Stats: rt.Threads.Stats(), rows: db.Stats()}
	if c.threads != nil {
		st.lines = c.threads.sessions.Counts()
		st.waits, st.streams = c.threads.follow.Counts()
	}
	return st
}

// contractMetrics appends the families of threads §4.10 beside those of HTTP.
func contractMetrics(e *threadstore.Engine, jobs *threads.Jobs) func(dst []byte) []byte {
	return func(dst []byte) []byte {
		dst = append(dst, "# HELP thread_messages_total Messages appended.\n# TYPE thread_messages_total counter\nthread_messages_total "...)
		dst = append(strconv.AppendUint(dst, e.Stats().Posted, 10), '\n')
		return jobs.AppendMetrics(dst)
	}
}
