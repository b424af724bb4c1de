package conformance

import (
	"cmp"
	"log/slog"
	"strconv"
	"time"

	"github.com/cockroachdb/datadriven"

	"trunkline/codec/wire"
	"trunkline/engine/journal"
	"trunkline/engine/journal/embedded"
	"trunkline/fuzz/kit/ipctest"
)

// startServer starts the server a command describes, by the setting names of kernel-ipc §6 and
// envelope §6.
func (s *script) startServer(d *datadriven.TestData) {
	s.t.Helper()
	if s.program != "" {
		s.startProgram(d)
		return
	}
	s.limit = wire.DefaultMaxFrame
	s.clock = &clock{mono: int64(time.Hour), wall: wallStart}
	now := s.clock.now
	var set []func(*ipctest.Config)
	if d.Cmd == "server" {
		for _, a := range d.CmdArgs {
			if a.Key == "clock" {
				now = nil // clock=real
				continue
			}
			set = append(set, s.setting(a.Key, a.Vals[0], d))
		}
	}
	logger := slog.New(slog.NewTextHandler(s.file.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	s.srv = inside{ipctest.Start(s.file, ipctest.With(func(c *ipctest.Config) {
		c.Logger = logger
		c.ListenAddr = cmp.Or(s.listen, c.ListenAddr)
		c.Partitions = s.partitions
		if s.kept {
			c.Store, c.SnapshotBytes = s.openStore(), 1
		}
		if now != nil {
			c.Now = now
		}
		for _, f := range set {
			f(c)
		}
	}))}
}

// server is what a conversation needs of one.
type server interface {
	addr() string
	advanced(d time.Duration) // the clock of the script has advanced
	Sweep()
	Drain()
}

// inside is a server in this process.
type inside struct{ *ipctest.Server }

func (s inside) addr() string           { return s.Addr }
func (s inside) advanced(time.Duration) {}

// openStore makes a store as a server in mode always has it.
func (s *script) openStore() journal.Store {
	s.t.Helper()
	store, err := embedded.Open(embedded.Config{Dir: s.file.TempDir(), Mode: journal.Always})
	if err != nil {
		s.t.Fatal(err)
	}
	return store
}

func (s *script) setting(key, value string, d *datadriven.TestData) func(*ipctest.Config) {
	s.t.Helper()
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		d.Fatalf(s.t, "%s: %v", key, err)
	}
	n := int(number)
	within := time.Duration(number * float64(time.Second))
	settings := map[string]func(*ipctest.Config){
		"max_frame_bytes":            func(c *ipctest.Config) { c.MaxFrameBytes, s.limit = n, n },
		"max_connections":            func(c *ipctest.Config) { c.MaxConnections = n },
		"kernel_queue_capacity":      func(c *ipctest.Config) { c.KernelQueueCapacity = n },
		"read_timeout_secs":          func(c *ipctest.Config) { c.ReadTimeout = within },
		"write_timeout_secs":         func(c *ipctest.Config) { c.WriteTimeout = within },
		"stream_buffer_events":       func(c *ipctest.Config) { c.StreamBufferEvents = n },
		"stream_buffer_bytes":        func(c *ipctest.Config) { c.StreamBufferBytes = int64(n) },
		"subscription_name_bytes":    func(c *ipctest.Config) { c.SubscriptionNameBytes = int64(n) },
		"max_streams_per_connection": func(c *ipctest.Config) { c.MaxStreamsPerConnection = n },
		"max_event_types":            func(c *ipctest.Config) { c.MaxEventTypes = n },
		"max_event_patterns":         func(c *ipctest.Config) { c.MaxEventPatterns = n },
		"max_processes":              func(c *ipctest.Config) { c.MaxProcesses = n },
		"max_rate_limit_users":       func(c *ipctest.Config) { c.MaxRateLimitUsers = n },
		"dequeue_lease_secs":         func(c *ipctest.Config) { c.DequeueLease = within },
		"process_retention_secs":     func(c *ipctest.Config) { c.ProcessRetention = within },
		"max_envelopes":              func(c *ipctest.Config) { c.MaxEnvelopes = n },
		"envelope_retention_secs":    func(c *ipctest.Config) { c.EnvelopeRetention = within },
		"max_sessions":               func(c *ipctest.Config) { c.MaxSessions = n },
		"session_retention_secs":     func(c *ipctest.Config) { c.SessionRetention = within },
		"shutdown_grace_secs":        func(c *ipctest.Config) { c.ShutdownGrace = within },
	}
	f, ok := settings[key]
	if !ok {
		d.Fatalf(s.t, "unknown setting %q", key)
	}
	return f
}
