// Package exacta serves projects (exacta): commands, answers and live events over lines. What a
// project decides is in engine/projects, what it touches on the disk in workspace.
//
//	line ─► session.Feed ─► checks 1 to 17 ─► queue of the project ─► projects.Project
//	     ◄─ session.Pump ◄─ outbox, journal ◄──────── answers, events ──┘     │
//	                                             worker: planner, diffs, files, builds
//
// Each project has one goroutine, its queue, which waits for the disk where a transition is saved.
// Longer work runs beside it and comes back through the queue. A session never waits: a long line
// is read on a goroutine of its own, and what follows it is not fed before it is back. What holds
// for one carrier only, such as the first line over TCP, is in guard.go and feed.go.
package exacta

import (
	"cmp"
	"log/slog"

	"trunkline/engine/obs"
	"trunkline/engine/projects"
	"trunkline/engine/projects/codec"
	"trunkline/handlers/exacta/external"
)

// Config is how a server is set up (exacta §6.1). A zero field has its default.
type Config struct {
	projects.Limits
	MaxMessageBytes int // without the end of its line
	MaxConnections  int // over lines, and as many WebSockets
	MaxOpenProjects int
	// MaxInflightPerConnection bounds the unanswered requests of a connection.
	MaxInflightPerConnection int
	Debug                    Debug    // whether ApplyDiffSet is enabled
	AllowedRoots             []string // directories that must contain the root of a project; empty: any may
	DiagnosticsDirs          []string // where bundles may be written, beside the usual places (exacta §4.15)
	WSOrigins                []string // of web pages that may connect, beside those of this machine (exacta §2.2)
	AuthToken                string   // what clients over TCP and WebSocket must show; empty: nothing
	KeyFile                  string   // of the key that proves what the server writes into projects; it is made if it is missing
	Clock                    codec.Clock
	Seed                     string          // of ids; empty: they are random
	Planner                  external.Config // its Logger is that of the server
	Version                  string          // of the program, for bundles
	Recorder                 *obs.Recorder   // of latencies; nil: they are not kept
	Logger                   *slog.Logger
}

// The defaults of Config.
const (
	DefaultMaxMessage     = 8 << 20
	DefaultMaxConnections = 1024
	DefaultMaxInFlight    = 64
	DefaultMaxProjects    = 32
)

// Live is what a running server can change; its fields are those of Config.
type Live struct {
	MaxConnections, MaxOpenProjects int
	AuthToken                       string
}

// SetLive changes what peers are asked for that come from now on, and how many may come: another
// owner counts connections. What is there stays.
func (s *Server) SetLive(l Live) { s.live.Store(&l) }

// Live returns what is in force.
func (s *Server) Live() Live { return *s.live.Load() }

// Bounds of an AuthToken, in bytes (exacta §6.1).
const (
	MinToken = 16
	MaxToken = 4096
)

func (c Config) withDefaults() Config {
	c.Limits = c.Limits.WithDefaults()
	c.MaxMessageBytes = cmp.Or(c.MaxMessageBytes, DefaultMaxMessage)
	c.MaxConnections = cmp.Or(c.MaxConnections, DefaultMaxConnections)
	c.MaxInflightPerConnection = cmp.Or(c.MaxInflightPerConnection, DefaultMaxInFlight)
	c.MaxOpenProjects = cmp.Or(c.MaxOpenProjects, DefaultMaxProjects)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.Planner.Logger = c.Logger
	return c
}

// Carrier is what a connection comes over (exacta §2). It decides what a peer has to show, and when
// its connection is closed.
type Carrier uint8

// The carriers. Peers over TCP show the AuthToken in their first line; those of a WebSocket have
// shown it before there is a session. A Viewer need not: it changes nothing.
const (
	Stdio Carrier = iota
	Unix
	TCP
	WebSocket
	Viewer // a WebSocket that admits subscribe and ack only
)

// String returns the name of the carrier.
func (c Carrier) String() string {
	return [...]string{"stdio", "unix", "tcp", "websocket", "viewer"}[c]
}

// Debug is the option debug_commands.
type Debug uint8

// The values of debug_commands.
const (
	DebugLocal Debug = iota // on for stdio and unix sockets, off for TCP and WebSocket (exacta §4.12)
	DebugOn
	DebugOff
)

// on reports whether the commands are enabled on a carrier.
func (d Debug) on(c Carrier) bool {
	return d == DebugOn || d == DebugLocal && (c == Stdio || c == Unix)
}
