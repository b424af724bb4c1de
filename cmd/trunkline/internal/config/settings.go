package config

import (
	"math"
	"slices"
	"strings"

	"trunkline/engine/obs"
)

// setting is one row of the table. at returns the address of the field: *int, *bool, *string or
// *[]string. min and max bound integers; oneOf, when set, bounds strings; optional allows an empty
// list, written "".
type setting struct {
	key      string
	def      any
	min, max int
	oneOf    []string
	optional bool
	help     string
	at       func(*Config) any
}

// Bounds that several settings share.
const (
	maxSecs  = 10 * 365 * 24 * 3600 // ten years: far from any overflow once in nanoseconds
	maxCount = math.MaxInt32
	// maxStoredFrame is the largest frame of a server that keeps its state: what one request
	// brings, JSON text written as MessagePack included, is one record of at most 32 MiB.
	maxStoredFrame = 8 << 20
	maxFrame       = 1 << 30 // a frame length is an int in memory and an unsigned 32-bit number on the wire

	// minFrame leaves room for what must always fit: the error in place of a reply that does not,
	// with the request's id of up to wire.MaxIdentifier (1024) bytes in it, and a request that
	// fills its identifiers.
	minFrame = 4096
)

// table is the list of all settings in the order shown to people; it is never written.
var table = slices.Concat(
	accessSettings(func(c *Config) *Access { return &c.Kernel.Access }, setting{key: "kernel.listen_addr", def: "127.0.0.1:50051",
		help: "addresses, comma separated: host:port or unix:///path"}, "TCP listeners into", ""),
	kernelSettings,
	accessSettings(func(c *Config) *Access { return &c.HTTP.Access }, setting{key: "http.listen_addr", def: "127.0.0.1:50080", optional: true,
		help: "addresses of the envelope exchange over HTTP, comma separated: host:port or unix:///path; empty switches it off"},
		"HTTP over TCP into HTTPS,", ""),
	httpSettings,
	accessSettings(func(c *Config) *Access { return &c.Toolhost.Access }, setting{key: "toolhost.listen_addr", def: "", optional: true,
		help: "addresses of the tool server, comma separated: host:port or unix:///path; empty switches it off"},
		"TCP listeners into", "; MACHINA_API_TOKEN must be set all the same"),
	toolhostSettings,
	otherSettings)

// accessSettings returns the rows of a section's Access. listen is the one of its listen_addr,
// without the field. What the key does to the listeners and what else insecure_bind needs differ
// between the sections.
func accessSettings(of func(*Config) *Access, listen setting, tls, bind string) []setting {
	section := strings.TrimSuffix(listen.key, "listen_addr")
	listen.at = func(c *Config) any { return &of(c).ListenAddr }
	return []setting{listen,
		{key: section + "tls_cert_file", def: "",
			help: "server certificate, PEM; with the key it turns " + tls + " TLS 1.3",
			at:   func(c *Config) any { return &of(c).TLSCertFile }},
		{key: section + "tls_key_file", def: "",
			help: "private key of the server certificate, PEM",
			at:   func(c *Config) any { return &of(c).TLSKeyFile }},
		{key: section + "tls_client_ca_file", def: "",
			help: "certificate authorities of clients, PEM; clients must then show a certificate",
			at:   func(c *Config) any { return &of(c).TLSClientCAFile }},
		{key: section + "insecure_bind", def: false,
			help: "allow an address beyond loopback without TLS and client certificates" + bind,
			at:   func(c *Config) any { return &of(c).InsecureBind }},
	}
}

var kernelSettings = []setting{
	{key: "kernel.loops", def: 0, min: 0, max: 1024,
		help: "event loops; 0 chooses by the number of processors",
		at:   func(c *Config) any { return &c.Kernel.Loops }},
	{key: "kernel.max_frame_bytes", def: 5242880, min: minFrame, max: maxFrame,
		help: "largest frame in both directions, without its 4 length bytes; at least 4096, so that an error with the longest id fits",
		at:   func(c *Config) any { return &c.Kernel.MaxFrameBytes }},
	{key: "kernel.max_connections", def: 1000, min: 1, max: maxCount,
		help: "open connections; one more gets an error and is closed",
		at:   func(c *Config) any { return &c.Kernel.MaxConnections }},
	{key: "kernel.kernel_queue_capacity", def: 2048, min: 1, max: maxCount,
		help: "admitted requests waiting to execute; pending queries have their own count of this plus one",
		at:   func(c *Config) any { return &c.Kernel.QueueCapacity }},
	{key: "kernel.read_timeout_secs", def: 30, min: 0, max: maxSecs,
		help: "silence, or time for one frame, before a connection is closed; 0 = never",
		at:   func(c *Config) any { return &c.Kernel.ReadTimeoutSecs }},
	{key: "kernel.write_timeout_secs", def: 10, min: 0, max: maxSecs,
		help: "time a peer may take none of the output that waits before its connection is closed; 0 = never",
		at:   func(c *Config) any { return &c.Kernel.WriteTimeoutSecs }},
	{key: "kernel.default_query_timeout_ms", def: 5000, min: 1, max: maxCount,
		help: "query timeout when the caller names none",
		at:   func(c *Config) any { return &c.Kernel.DefaultQueryTimeoutMs }},
	{key: "kernel.max_query_timeout_ms", def: 30000, min: 1, max: maxCount,
		help: "longest query timeout; longer ones are cut to it",
		at:   func(c *Config) any { return &c.Kernel.MaxQueryTimeoutMs }},
	{key: "kernel.stream_buffer_events", def: 16384, min: 1, max: maxCount,
		help: "events buffered for one stream",
		at:   func(c *Config) any { return &c.Kernel.StreamBufferEvents }},
	{key: "kernel.stream_buffer_bytes", def: 16777216, min: 1, max: maxCount,
		help: "bytes buffered for one stream",
		at:   func(c *Config) any { return &c.Kernel.StreamBufferBytes }},
	{key: "kernel.stream_buffer_total_bytes", def: 268435456, min: 1, max: math.MaxInt,
		help: "bytes buffered for all streams, a shared event counted once",
		at:   func(c *Config) any { return &c.Kernel.StreamBufferTotalBytes }},
	{key: "kernel.subscription_name_bytes", def: 67108864, min: 1, max: math.MaxInt,
		help: "bytes of the names that all streams list, and 128 for each name",
		at:   func(c *Config) any { return &c.Kernel.SubscriptionNameBytes }},
	{key: "kernel.max_streams_per_connection", def: 32, min: 1, max: maxCount,
		help: "live streams of one connection",
		at:   func(c *Config) any { return &c.Kernel.MaxStreamsPerConnection }},
	{key: "kernel.max_event_types", def: 256, min: 1, max: maxCount,
		help: "types one stream may list",
		at:   func(c *Config) any { return &c.Kernel.MaxEventTypes }},
	{key: "kernel.max_processes", def: 1000000, min: 1, max: maxCount,
		help: "processes in all states",
		at:   func(c *Config) any { return &c.Kernel.MaxProcesses }},
	{key: "kernel.huge_pages", def: true,
		help: "ask the system for huge pages under tables of more than some 65,000 processes",
		at:   func(c *Config) any { return &c.Kernel.HugePages }},
	{key: "kernel.max_rate_limit_users", def: 100000, min: 1, max: maxCount,
		help: "users with a rate log; beyond it the least recently active one is dropped",
		at:   func(c *Config) any { return &c.Kernel.MaxRateLimitUsers }},
	{key: "kernel.dequeue_lease_secs", def: 30, min: 0, max: maxSecs,
		help: "how long a dequeued process may stay unclaimed before it is offered again; 0 = no lease",
		at:   func(c *Config) any { return &c.Kernel.DequeueLeaseSecs }},
	{key: "kernel.cleanup_interval_secs", def: 300, min: 1, max: maxSecs,
		help: "time between two garbage collections",
		at:   func(c *Config) any { return &c.Kernel.CleanupIntervalSecs }},
	{key: "kernel.process_retention_secs", def: 86400, min: 0, max: maxSecs,
		help: "how long an ended process stays readable",
		at:   func(c *Config) any { return &c.Kernel.ProcessRetentionSecs }},
	{key: "kernel.shutdown_grace_secs", def: 5, min: 0, max: maxSecs,
		help: "time a drain may take before connections are closed by force",
		at:   func(c *Config) any { return &c.Kernel.ShutdownGraceSecs }},
	{key: "kernel.max_envelopes", def: 10000, min: 1, max: maxCount,
		help: "envelopes in the store; beyond it ended ones are dropped, then ones untouched for an hour",
		at:   func(c *Config) any { return &c.Kernel.MaxEnvelopes }},
	{key: "kernel.max_envelope_bytes", def: 536870912, min: 1, max: math.MaxInt,
		help: "bytes held by all envelopes in the store",
		at:   func(c *Config) any { return &c.Kernel.MaxEnvelopeBytes }},
	{key: "kernel.envelope_retention_secs", def: 86400, min: 0, max: maxSecs,
		help: "how long an untouched envelope stays in the store",
		at:   func(c *Config) any { return &c.Kernel.EnvelopeRetentionSecs }},
	{key: "kernel.max_sessions", def: 10000, min: 1, max: maxCount,
		help: "orchestration sessions; beyond it the longest idle one that has ended is dropped",
		at:   func(c *Config) any { return &c.Kernel.MaxSessions }},
	{key: "kernel.max_session_bytes", def: 1073741824, min: 1, max: math.MaxInt,
		help: "bytes held by all orchestration sessions",
		at:   func(c *Config) any { return &c.Kernel.MaxSessionBytes }},
	{key: "kernel.session_retention_secs", def: 3600, min: 0, max: maxSecs,
		help: "how long an untouched orchestration session stays; a waiting one as long as its question, if that is longer",
		at:   func(c *Config) any { return &c.Kernel.SessionRetentionSecs }},
}

var otherSettings = []setting{
	{key: "admin.listen_addr", def: "127.0.0.1:50090",
		help: "host:port of health, readiness, metrics and version; empty switches it off",
		at:   func(c *Config) any { return &c.Admin.ListenAddr }},
	{key: "admin.insecure_bind", def: false,
		help: "allow an admin address beyond loopback, where everyone may read it",
		at:   func(c *Config) any { return &c.Admin.InsecureBind }},
	{key: "admin.pprof", def: false,
		help: "serve profiles under /debug/pprof/ on the admin address",
		at:   func(c *Config) any { return &c.Admin.Pprof }},
	{key: keyStoreMode, def: StoreAlways, oneOf: []string{StoreMemory, StoreInterval, StoreAlways},
		help: "what survives a restart; memory: nothing, interval: all but two seconds of answers at a power loss, always: all that was answered",
		at:   func(c *Config) any { return &c.Store.Mode }},
	{key: "store.dir", def: "trunkline-data",
		help: "directory of the store; one server uses it at a time, always in the mode it was made in",
		at:   func(c *Config) any { return &c.Store.Dir }},
	{key: "store.snapshot_bytes", def: 67108864, min: 4096, max: math.MaxInt,
		help: "growth of the journal after which a snapshot is taken; if the last snapshot was larger, its size",
		at:   func(c *Config) any { return &c.Store.SnapshotBytes }},
	{key: "store.snapshot_interval_secs", def: 600, min: 1, max: maxSecs,
		help: "longest time between two snapshots while anything changes",
		at:   func(c *Config) any { return &c.Store.SnapshotIntervalSecs }},
	{key: "log.level", def: "info", oneOf: obs.LogLevels(),
		help: "least important line to log: debug, info, warn, error",
		at:   func(c *Config) any { return &c.Log.Level }},
	{key: "log.format", def: obs.FormatAuto, oneOf: obs.LogFormats(),
		help: "auto (text on a terminal, JSON otherwise), text, json",
		at:   func(c *Config) any { return &c.Log.Format }},
}

// devDefaults is what --dev puts between the defaults and the file. Another store.mode above it is
// a problem: see checkStore.
func devDefaults() map[string]any {
	return map[string]any{keyStoreMode: StoreMemory, "log.format": obs.FormatText, "admin.pprof": true}
}

const keyStoreMode = "store.mode"

// The values of store.mode.
const (
	StoreMemory   = "memory"
	StoreInterval = "interval"
	StoreAlways   = "always"
)

func find(key string) (setting, bool) {
	for _, s := range table {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

// Bounds of the HTTP section.
const (
	maxHeader = 1 << 24
	minHeader = 4096 // net/http reads this much ahead before it counts
)

var httpSettings = []setting{
	{key: keyMaxBody, def: 5242880, min: 1, max: maxFrame,
		help: "largest body of a request, and largest input of the commands process, create, can-continue, result, validate",
		at:   func(c *Config) any { return &c.HTTP.MaxBodyBytes }},
	{key: "http.max_in_flight", def: 256, min: 1, max: maxCount,
		help: "requests answered at a time; one more gets 503",
		at:   func(c *Config) any { return &c.HTTP.MaxInFlight }},
	{key: "http.max_connections", def: 1024, min: 1, max: maxCount,
		help: "open connections of one address; further ones wait until one closes",
		at:   func(c *Config) any { return &c.HTTP.MaxConnections }},
	{key: "http.read_header_timeout_secs", def: 10, min: 1, max: maxSecs,
		help: "time for a request's headers to arrive",
		at:   func(c *Config) any { return &c.HTTP.ReadHeaderTimeoutSecs }},
	{key: "http.read_body_timeout_secs", def: 30, min: 1, max: maxSecs,
		help: "time for a request's body to arrive; then 408",
		at:   func(c *Config) any { return &c.HTTP.ReadBodyTimeoutSecs }},
	{key: "http.idle_timeout_secs", def: 120, min: 1, max: maxSecs,
		help: "silence between two requests before a connection is closed",
		at:   func(c *Config) any { return &c.HTTP.IdleTimeoutSecs }},
	{key: "http.write_timeout_secs", def: 30, min: 1, max: maxSecs,
		help: "time for a reply to leave before a connection is closed",
		at:   func(c *Config) any { return &c.HTTP.WriteTimeoutSecs }},
	{key: "http.max_header_bytes", def: 65536, min: minHeader, max: maxHeader,
		help: "size of a request's headers; more gets 431",
		at:   func(c *Config) any { return &c.HTTP.MaxHeaderBytes }},
	{key: keyStageOrder, def: "perception,intent,plan,execution,critic,integration",
		help: "stages of an envelope that lists none, comma separated; the commands too",
		at:   func(c *Config) any { return &c.HTTP.DefaultStageOrder }},
}

// Toolhost is the section of the tool server in serve (toolhost §2.3). An empty ListenAddr switches
// it off. Its tools take the environment names of the protocol (MACHINA_…) beside these settings.
type Toolhost struct {
	Access
	MaxConnections int
	Loops          int
	MaxLineBytes   int

	UnfinishedLinesBytes int
	Plugins              []string
	Root                 string
	ToolTimeoutMs        int
	IdempotencyTTLMs     int
	Queue                int
	Executors            int
}

// Bounds of the toolhost section.
const (
	maxLine    = 10 << 20
	minLine    = 1024
	maxToolMs  = 600_000
	maxWindow  = 24 * 3600 * 1000
	maxWorkers = 4096
)

var toolhostSettings = []setting{
	{key: "toolhost.max_connections", def: 4096, min: 1, max: maxCount,
		help: "open connections; one more gets an error and is closed",
		at:   func(c *Config) any { return &c.Toolhost.MaxConnections }},
	{key: "toolhost.loops", def: 0, min: 0, max: 1024,
		help: "event loops; 0 chooses by the number of processors",
		at:   func(c *Config) any { return &c.Toolhost.Loops }},
	{key: "toolhost.max_line_bytes", def: maxLine, min: minLine, max: maxLine,
		help: "longest request line of a connection, without its end",
		at:   func(c *Config) any { return &c.Toolhost.MaxLineBytes }},
	{key: "toolhost.unfinished_lines_bytes", def: 268435456, min: 1, max: math.MaxInt,
		help: "bytes of unfinished lines that all connections hold together, without 128 KiB of each; beyond it the one that asks for more is refused",
		at:   func(c *Config) any { return &c.Toolhost.UnfinishedLinesBytes }},
	{key: "toolhost.plugins", def: "builtin",
		help: "where the tools come from, comma separated: builtin, toolpack manifests (.json), directories of them",
		at:   func(c *Config) any { return &c.Toolhost.Plugins }},
	{key: "toolhost.root", def: "",
		help: "directory that tools cannot leave; empty: MACHINA_ROOT, else the working directory",
		at:   func(c *Config) any { return &c.Toolhost.Root }},
	{key: "toolhost.tool_timeout_ms", def: 0, min: 0, max: maxToolMs,
		help: "how long a tool may run; 0: MACHINA_TOOLHOST_TIMEOUT_MS, else MACHINA_TOOLHOST_TIMEOUT, else 30 s",
		at:   func(c *Config) any { return &c.Toolhost.ToolTimeoutMs }},
	{key: "toolhost.idempotency_ttl_ms", def: 60000, min: 1, max: maxWindow,
		help: "how long the reply to a request with an idempotency key is kept",
		at:   func(c *Config) any { return &c.Toolhost.IdempotencyTTLMs }},
	{key: "toolhost.queue", def: 1024, min: 1, max: maxCount,
		help: "tools that run or wait at a time, fast ones left out; one more is refused as overloaded",
		at:   func(c *Config) any { return &c.Toolhost.Queue }},
	{key: "toolhost.executors", def: 0, min: 0, max: maxWorkers,
		help: "built-in tools that run at a time away from the event loops, and half as many more that work long; 0: two for each processor, at least four",
		at:   func(c *Config) any { return &c.Toolhost.Executors }},
}
