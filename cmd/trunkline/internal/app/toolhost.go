package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"trunkline/cmd/trunkline/internal/config"
	"trunkline/cmd/trunkline/internal/monitor"
	"trunkline/cmd/trunkline/internal/toolset"
	"trunkline/engine/bus"
	"trunkline/engine/obs"
	"trunkline/engine/runtime"
	"trunkline/engine/stream"
	"trunkline/handlers/toolhost"
)

// toolEndpoint is the tool server with everything that moves its bytes (toolhost §2.3).
type toolEndpoint struct {
	*listener
	set *toolset.Set
	srv *toolhost.Server
}

// openTools binds every address of toolhost.listen_addr or none; without addresses it returns nil.
// Nothing is accepted before Serve.
func openTools(c *config.Toolhost, rt *runtime.Runtime, o Options) (*toolEndpoint, error) {
	if len(c.ListenAddr) == 0 {
		return nil, nil
	}
	set, err := toolset.Open(
		toolset.Options{
			Plugins:          c.Plugins,
			Root:             c.Root,
			BreakerThreshold: -1,
			BreakerCooldown:  -1,
			Events:           emitTo(rt.Bus),
		},
	)
	if err != nil {
		return nil, fmt.Errorf("cannot open the tools (toolhost.plugins, toolhost.root): %w", err)
	}
	t := &toolEndpoint{set: set}
	t.listener = &listener{label: "toolhost", section: "toolhost", protocol: "toolhost", service: "toolhost",
		of: " of the tool server", access: &c.Access, most: func(c *config.Config) int { return c.Toolhost.MaxConnections }}
	if err := t.open(c, rt, o); err != nil {
		t.abort()
		return nil, err
	}
	return t, nil
}

func (t *toolEndpoint) open(c *config.Toolhost, rt *runtime.Runtime, o Options) (err error) {
	log := o.Logger
	tc := c.Config
	tc.Logger, tc.Files, tc.Recorder = log, o.files, o.recorder
	if tc, err = t.set.ServerConfig(tc); err != nil {
		return err
	}
	tc.Events, tc.EventsWanted = emitTo(rt.Bus), rt.Bus.Wants
	if tc.Keys = rt.Outcomes; tc.Keys != nil {
		tc.Journal = rt.Store // outcomes outlive the server with everything else
	}
	t.set.Warn(log)
	t.srv = toolhost.New(tc)
	if err = t.bind(o, false); err != nil {
		return err
	}
	for _, b := range t.bound {
		if b.open && os.Getenv("MACHINA_API_TOKEN") == "" {
			return fmt.Errorf("cannot open toolhost.listen_addr = %q: it can be reached from other machines, and MACHINA_API_TOKEN is not set", b.addr)
		}
	}
	return t.startLoops(c.Loops, stream.Config{
		MaxConnections: c.MaxConnections, Limits: t.srv.SocketLimits(), Open: t.srv.OpenSocket, Refuse: toolhost.AppendRefusal,
	}, monitor.Lines(), o)
}

// toolGrace is how long a drain waits for tools that run (toolhost §2.3), and a moment for what
// follows.
const toolGrace = 11 * time.Second

// shutdown answers what was asked, waits for the tools that run until ctx ends, and ends the
// workers.
func (t *toolEndpoint) shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	err := t.listener.shutdown(ctx)
	t.srv.Drain(ctx) // tools whose callers have gone
	t.close()
	return unlessLate(err)
}

func (t *toolEndpoint) close() {
	if t.srv != nil { // nil: the start was refused before there was one
		_ = t.srv.Close()
	}
	t.set.Close()
}

// abort ends an endpoint that never served.
func (t *toolEndpoint) abort() {
	if t == nil {
		return
	}
	t.listener.abort()
	t.close()
}

// toolMetrics are the counters of toolhost §4.12, under its names, and the gauges of _stats.
var toolMetrics = []metric[toolhost.Stats]{
	byTool("machina_tool_ok_total", "Calls of a tool that went well.",
		func(t *toolhost.ToolStats) float64 { return float64(t.OK) }),
	byTool("machina_tool_fail_total", "Calls of a tool that did not.",
		func(t *toolhost.ToolStats) float64 { return float64(t.Fail) }),
	byTool("machina_tool_duration_ms_total", "Time that calls of a tool took, in milliseconds.",
		func(t *toolhost.ToolStats) float64 { return float64(t.Duration.Milliseconds()) }),
	gauge("trunkline_toolhost_sessions", "Open sessions of the tool server.",
		func(s *toolhost.Stats) float64 { return float64(s.Sessions) }),
	gauge("trunkline_toolhost_in_flight", "Tools that run.",
		func(s *toolhost.Stats) float64 { return float64(s.InFlight) }),
	gauge("trunkline_toolhost_idempotency_entries", "Idempotency keys held.",
		func(s *toolhost.Stats) float64 { return float64(s.IdempotencyEntries) }),
	counter("trunkline_toolhost_idempotency_hits_total", "Requests answered with the outcome of an earlier one.",
		func(s *toolhost.Stats) float64 { return float64(s.IdempotencyHits) }),
	gauge("trunkline_toolhost_leases", "Leases that can be used.",
		func(s *toolhost.Stats) float64 { return float64(s.LeaseActive) }),
	gauge("trunkline_toolhost_breakers_open", "Circuit breakers that are not closed.",
		func(s *toolhost.Stats) float64 { return float64(s.BreakersOpen) }),
	gauge("trunkline_toolhost_workers", "Worker processes.",
		func(s *toolhost.Stats) float64 { return float64(s.Workers) }),
	gauge("trunkline_toolhost_unfinished_lines_bytes", "Bytes held of unfinished lines and of lines read ahead, without 128 KiB of each connection.",
		func(s *toolhost.Stats) float64 { return float64(s.Unfinished) }),
	counter("trunkline_toolhost_unfinished_lines_refused_total", "Connections closed because their unfinished line found no room.",
		func(s *toolhost.Stats) float64 { return float64(s.UnfinishedRefused) }),
}

// byTool is a counter of each tool.
func byTool(name, help string, value func(*toolhost.ToolStats) float64) metric[toolhost.Stats] {
	return metric[toolhost.Stats]{Family: obs.Family{Name: name, Help: help, Labels: []string{"aid"}},
		series: func(s *toolhost.Stats, put putSeries) {
			for i := range s.Tools {
				put(value(&s.Tools[i]), s.Tools[i].AID)
			}
		}}
}

// toolSource is the source of the events of tools on the message bus.
const toolSource = "toolhost"

// emitTo returns what carries the events of tools to a bus (toolhost §4.12). The bus bounds what
// waits for a subscriber, and drops for those who are behind (kernel-ipc §4.18): nothing waits
// here. Breakers and workers call it under locks of theirs.
func emitTo(b *bus.Bus) func(toolhost.Event) {
	return func(ev toolhost.Event) {
		if b.Wants(ev.Name) {
			b.Emit(ev.Name, toolSource, ev.Payload)
		}
	}
}
