package config

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"trunkline/codec/wire"
	"trunkline/engine/bus"
	"trunkline/engine/envelope"
	"trunkline/engine/idem"
	"trunkline/engine/kernel"
	"trunkline/engine/obs"
	"trunkline/engine/orchestration"
	"trunkline/engine/runtime"
	"trunkline/engine/store"
	"trunkline/engine/stream"
	"trunkline/handlers/ipc"
	"trunkline/handlers/toolhost"
)

// setting is one row of the table. Its field in Config has the name of the key. min and max bound
// integers; oneOf, when set, bounds strings; optional allows an empty list, written "".
type setting struct {
	key      string
	def      any
	min, max int
	oneOf    []string
	optional bool
	live     bool // a reload changes it; else it takes a restart
	help     string
	// alias is the environment name that a protocol gives the setting, in units of aliasUnit where
	// that is set.
	alias     string
	aliasUnit int
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
var table = whole(slices.Concat(
	accessSettings(setting{key: "kernel.listen_addr", def: "127.0.0.1:50051",
		help: "addresses, comma separated: host:port or unix:///path"}, "TCP listeners into", ""),
	kernelSettings,
	accessSettings(setting{key: "http.listen_addr", def: "127.0.0.1:50080", optional: true,
		help: "addresses of the envelope exchange over HTTP, comma separated: host:port or unix:///path; empty switches it off"},
		"HTTP over TCP into HTTPS,", ""),
	httpSettings,
	accessSettings(setting{key: "toolhost.listen_addr", def: "", optional: true,
		help: "addresses of the tool server, comma separated: host:port or unix:///path; empty switches it off"},
		"TCP listeners into", "; MACHINA_API_TOKEN must be set all the same"),
	toolhostSettings,
	accessSettings(setting{key: "threads.listen_addr", def: "127.0.0.1:3000", optional: true,
		help: "addresses of agent threads over HTTP and MCP, comma separated: host:port or unix:///path; empty switches them off"},
		"TCP listeners of HTTP, MCP and lines into", ""),
	threadsSettings,
	accessSettings(setting{key: "exacta.listen_addr", def: "", optional: true,
		help: "addresses of projects over lines, comma separated: host:port or unix:///path; empty switches them off"},
		"TCP listeners of lines and WebSocket into", "; exacta.auth_token_file must be set all the same"),
	exactaSettings,
	otherSettings,
	clusterSettings))

// whole gives the defaults that packages name the form in which settings are written: integers, and
// times in the unit of their key.
func whole(rows []setting) []setting {
	for i := range rows {
		switch v := reflect.ValueOf(rows[i].def); {
		case v.CanUint():
			rows[i].def = int(v.Uint())
		case v.Type() == reflect.TypeFor[time.Duration]():
			_, unit := rows[i].split()
			rows[i].def = int(v.Int() / unit)
		case v.CanInt():
			rows[i].def = int(v.Int())
		}
	}
	return rows
}

// accessSettings returns the rows of a section's Access. listen is the one of its listen_addr.
// What the key does to the listeners and what else insecure_bind needs differ between the sections.
func accessSettings(listen setting, tls, bind string) []setting {
	section := strings.TrimSuffix(listen.key, "listen_addr")
	return []setting{listen,
		{key: section + "tls_cert_file", def: "", live: true,
			help: "server certificate, PEM; with the key it turns " + tls + " TLS 1.3"},
		{key: section + "tls_key_file", def: "", live: true,
			help: "private key of the server certificate, PEM"},
		{key: section + "tls_client_ca_file", def: "", live: true,
			help: "certificate authorities of clients, PEM; clients must then show a certificate"},
		{key: section + "insecure_bind", def: false,
			help: "allow an address beyond loopback without TLS and client certificates" + bind},
	}
}

var kernelSettings = []setting{
	{key: "kernel.loops", def: 0, min: 0, max: 1024,
		help: "event loops; 0 chooses by the number of processors"},
	{key: "kernel.max_frame_bytes", def: wire.DefaultMaxFrame, min: minFrame, max: maxFrame,
		help: "largest frame in both directions, without its 4 length bytes; at least 4096, so that an error with the longest id fits"},
	{key: "kernel.max_connections", def: stream.DefaultMaxConnections, min: 1, max: maxCount, live: true,
		help: "open connections; one more gets an error and is closed"},
	{key: "kernel.kernel_queue_capacity", def: runtime.DefaultQueueCapacity, min: 1, max: maxCount,
		help: "admitted requests waiting to execute; pending queries have their own count of this plus one"},
	{key: "kernel.read_timeout_secs", def: ipc.DefaultReadTimeout, min: 0, max: maxSecs,
		help: "silence, or time for one frame, before a connection is closed; 0 = never"},
	{key: "kernel.write_timeout_secs", def: ipc.DefaultWriteTimeout, min: 0, max: maxSecs,
		help: "time a peer may take none of the output that waits before its connection is closed; 0 = never"},
	{key: "kernel.default_query_timeout_ms", def: ipc.DefaultQueryTimeout, min: 1, max: maxCount, live: true,
		help: "query timeout when the caller names none"},
	{key: "kernel.max_query_timeout_ms", def: ipc.DefaultMaxQueryTimeout, min: 1, max: maxCount, live: true,
		help: "longest query timeout; longer ones are cut to it"},
	{key: "kernel.stream_buffer_events", def: bus.DefaultStreamEvents, min: 1, max: maxCount,
		help: "events buffered for one stream"},
	{key: "kernel.stream_buffer_bytes", def: bus.DefaultStreamBytes, min: 1, max: maxCount,
		help: "bytes buffered for one stream"},
	{key: "kernel.stream_buffer_total_bytes", def: bus.DefaultTotalBytes, min: 1, max: math.MaxInt,
		help: "bytes buffered for all streams, a shared event counted once"},
	{key: "kernel.subscription_name_bytes", def: bus.DefaultNameBytes, min: 1, max: math.MaxInt,
		help: "bytes of the names that all streams list, and 128 for each name"},
	{key: "kernel.max_streams_per_connection", def: ipc.DefaultMaxStreams, min: 1, max: maxCount, live: true,
		help: "live streams of one connection"},
	{key: "kernel.max_event_types", def: ipc.DefaultMaxEventTypes, min: 1, max: maxCount, live: true,
		help: "types one stream may list, and as many patterns"},
	{key: "kernel.max_event_patterns", def: bus.DefaultPatterns, min: 1, max: 65536,
		help: "patterns of all streams together"},
	{key: "kernel.max_event_patterns_per_connection", def: bus.DefaultPortPatterns, min: 1, max: 65536,
		help: "patterns of the streams of one connection"},
	{key: "kernel.max_processes", def: kernel.DefaultMaxProcesses, min: 1, max: maxCount,
		help: "processes in all states"},
	{key: "kernel.huge_pages", def: true,
		help: "ask the system for huge pages under tables of more than some 65,000 processes"},
	{key: "kernel.max_rate_limit_users", def: kernel.DefaultMaxRateLimitUsers, min: 1, max: maxCount,
		help: "users with a rate log; beyond it the least recently active one is dropped"},
	{key: "kernel.dequeue_lease_secs", def: runtime.DefaultDequeueLease, min: 0, max: maxSecs,
		help: "how long a dequeued process may stay unclaimed before it is offered again; 0 = no lease"},
	{key: "kernel.cleanup_interval_secs", def: runtime.DefaultCleanupInterval, min: 1, max: maxSecs,
		help: "time between two garbage collections"},
	{key: "kernel.process_retention_secs", def: runtime.DefaultProcessRetention, min: 0, max: maxSecs,
		help: "how long an ended process stays readable"},
	{key: "kernel.shutdown_grace_secs", def: ipc.DefaultShutdownGrace, min: 0, max: maxSecs,
		help: "time a drain may take before connections are closed by force"},
	{key: "kernel.lame_duck_secs", def: 0, min: 0, max: maxSecs, live: true,
		help: "time between an order to stop, which turns readiness off, and the drain; connections are accepted meanwhile"},
	{key: "kernel.max_envelopes", def: orchestration.DefaultMaxEnvelopes, min: 1, max: maxCount,
		help: "envelopes in the store; beyond it ended ones are dropped, then ones untouched for an hour"},
	{key: "kernel.max_envelope_bytes", def: orchestration.DefaultMaxEnvelopeBytes, min: 1, max: math.MaxInt,
		help: "bytes held by all envelopes in the store"},
	{key: "kernel.envelope_retention_secs", def: orchestration.DefaultEnvelopeRetention, min: 0, max: maxSecs,
		help: "how long an untouched envelope stays in the store"},
	{key: "kernel.max_sessions", def: orchestration.DefaultMaxSessions, min: 1, max: maxCount,
		help: "orchestration sessions; beyond it the longest idle one that has ended is dropped"},
	{key: "kernel.max_session_bytes", def: orchestration.DefaultMaxSessionBytes, min: 1, max: math.MaxInt,
		help: "bytes held by all orchestration sessions"},
	{key: "kernel.session_retention_secs", def: orchestration.DefaultSessionRetention, min: 0, max: maxSecs,
		help: "how long an untouched orchestration session stays; a waiting one as long as its question, if that is longer"},
	{key: "kernel.idempotency_window_secs", def: runtime.DefaultIdempotencyWindow, min: 1, max: maxSecs,
		help: "how long the answer to a request with an idempotency_key is kept"},
	{key: "kernel.max_idempotency_keys", def: runtime.DefaultMaxIdempotencyKeys, min: 1, max: maxCount,
		help: "idempotency keys of requests; beyond it requests with a new one are refused"},
	{key: "kernel.max_idempotency_bytes", def: idem.DefaultMaxBytes, min: 1, max: math.MaxInt,
		help: "bytes held by the answers to requests with an idempotency_key"},
}

var otherSettings = []setting{
	{key: "admin.listen_addr", def: "127.0.0.1:50090",
		help: "host:port of health, readiness, metrics and version; empty switches it off"},
	{key: "admin.insecure_bind", def: false,
		help: "allow an admin address beyond loopback without tokens, where everyone may read it"},
	{key: keyAdminHosts, def: "", optional: true,
		help: "names under which a reverse proxy asks the admin address on loopback, comma separated, beside localhost"},
	{key: "admin.pprof", def: false,
		help: "serve profiles under /debug/pprof/ on the admin address"},
	{key: keyConsoleToken, def: "", live: true,
		help: "file with the token of viewers, at least 16 bytes; with tokens everything on the admin address but probes needs one; without, a loopback address needs none"},
	{key: keyConsoleOperator, def: "", live: true,
		help: "file with the token of operators, at least 16 bytes; they may also change what the web console changes"},
	{key: "admin.public_metrics", def: false,
		help: "answer /metrics without a token where there are tokens"},
	{key: "admin.slow_threshold_ms", def: 100, min: 0, max: maxToolMs, live: true,
		help: "a request that took as long or longer is in the slow log; 0: none is"},
	{key: "admin.slow_entries", def: 512, min: 1, max: maxSlowEntries,
		help: "requests that the slow log keeps, the newest ones"},
	{key: "admin.monitor_payloads", def: false,
		help: "show payloads of monitored connections to everyone who may read the admin address"},
	{key: keyStoreMode, def: StoreAlways, oneOf: []string{StoreMemory, StoreInterval, StoreAlways},
		help: "what survives a restart; memory: nothing, interval: all but two seconds of answers at a power loss, always: all that was answered"},
	{key: "store.dir", def: "trunkline-data",
		help: "directory of the store; one server uses it at a time, always in the mode it was made in"},
	{key: "store.snapshot_bytes", def: store.DefaultSnapshotBytes, min: 4096, max: math.MaxInt,
		help: "growth of the journal after which a snapshot is taken; if the last snapshot was larger, its size"},
	{key: "store.snapshot_interval_secs", def: store.DefaultSnapshotInterval, min: 1, max: maxSecs,
		help: "longest time between two snapshots while anything changes"},
	{key: "store.backup_dir", def: "",
		help: "directory of the checkpoints that 'store backup' copies; empty: backups in store.dir, where they cost no second copy"},
	{key: "log.level", def: "info", oneOf: obs.LogLevels(), live: true,
		help: "least important line to log: debug, info, warn, error"},
	{key: "log.format", def: obs.FormatAuto, oneOf: obs.LogFormats(),
		help: "auto (text on a terminal, JSON otherwise), text, json"},
}

// devDefaults is what --dev puts between the defaults and the file. Another store.mode above it is
// a problem: see checkStore.
func devDefaults() map[string]any {
	return map[string]any{keyStoreMode: StoreMemory, "log.format": obs.FormatText, "admin.pprof": true}
}

// maxSlowEntries is the largest admin.slow_entries: some 20 MB.
const maxSlowEntries = 100_000

const keyStoreMode = "store.mode"

// The values of store.mode.
const (
	StoreMemory   = "memory"
	StoreInterval = "interval"
	StoreAlways   = "always"
)

// at returns the address of the field: the one with the name of the key, a duration without its
// unit.
func (s setting) at(c *Config) any {
	v := reflect.ValueOf(c).Elem()
	bare, _ := s.split()
	for _, name := range strings.Split(bare, delim) {
		name = strings.ReplaceAll(name, "_", "")
		v = v.FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
	}
	return v.Addr().Interface()
}

// split returns the key without the unit of a duration, and what 1 stands for in the field.
func (s setting) split() (bare string, unit int64) {
	for _, seconds := range []string{"_secs", "_seconds"} {
		if bare, ok := strings.CutSuffix(s.key, seconds); ok {
			return bare, int64(time.Second)
		}
	}
	if bare, ok := strings.CutSuffix(s.key, "_ms"); ok {
		return bare, int64(time.Millisecond)
	}
	return s.key, 1
}

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
		help: "largest body of a request, and largest input of the commands process, create, can-continue, result, validate"},
	{key: "http.max_in_flight", def: 256, min: 1, max: maxCount, live: true,
		help: "requests answered at a time; one more gets 503"},
	{key: "http.max_connections", def: 1024, min: 1, max: maxCount, live: true,
		help: "open connections of one address; further ones wait until one closes"},
	{key: "http.read_header_timeout_secs", def: 10, min: 1, max: maxSecs,
		help: "time for a request's headers to arrive"},
	{key: "http.read_body_timeout_secs", def: 30, min: 1, max: maxSecs,
		help: "time for a request's body to arrive; then 408"},
	{key: "http.idle_timeout_secs", def: 120, min: 1, max: maxSecs,
		help: "silence between two requests before a connection is closed"},
	{key: "http.write_timeout_secs", def: 30, min: 1, max: maxSecs,
		help: "time for a reply to leave before a connection is closed"},
	{key: "http.max_header_bytes", def: 65536, min: minHeader, max: maxHeader,
		help: "size of a request's headers; more gets 431"},
	{key: keyStageOrder, def: envelope.DefaultStageOrder,
		help: "stages of an envelope that lists none, comma separated; the commands too"},
}

// Bounds of the toolhost section.
const (
	minLine    = 1024
	maxToolMs  = int(toolhost.MaxToolTimeout / time.Millisecond)
	maxWindow  = 24 * 3600 * 1000
	maxWorkers = 4096
)

var toolhostSettings = []setting{
	{key: "toolhost.max_connections", def: toolhost.DefaultConnections, min: 1, max: maxCount, live: true,
		help: "open connections; one more gets an error and is closed"},
	{key: "toolhost.loops", def: 0, min: 0, max: 1024,
		help: "event loops; 0 chooses by the number of processors"},
	{key: "toolhost.max_line_bytes", def: toolhost.MaxLine, min: minLine, max: toolhost.MaxLine,
		help: "longest request line of a connection, without its end"},
	{key: "toolhost.unfinished_lines_bytes", def: toolhost.DefaultUnfinished, min: 1, max: math.MaxInt,
		help: "bytes of unfinished lines that all connections hold together, without 128 KiB of each; beyond it the one that asks for more is refused"},
	{key: "toolhost.plugins", def: "builtin",
		help: "where the tools come from, comma separated: builtin, toolpack manifests (.json), directories of them"},
	{key: "toolhost.root", def: "",
		help: "directory that tools cannot leave; empty: MACHINA_ROOT, else the working directory"},
	{key: "toolhost.tool_timeout_ms", def: 0, min: 0, max: maxToolMs,
		help: "how long a tool may run; 0: MACHINA_TOOLHOST_TIMEOUT_MS, else MACHINA_TOOLHOST_TIMEOUT, else 30 s"},
	{key: "toolhost.idempotency_ttl_ms", def: idem.DefaultTTL, min: 1, max: maxWindow,
		help: "how long the reply to a request with an idempotency key is kept"},
	{key: "toolhost.queue", def: toolhost.DefaultQueue, min: 1, max: maxCount,
		help: "tools that run or wait at a time, fast ones left out; one more is refused as overloaded"},
	{key: "toolhost.executors", def: 0, min: 0, max: maxWorkers,
		help: "built-in tools that run at a time away from the event loops, and half as many more that work long; 0: two for each processor, at least four"},
}
