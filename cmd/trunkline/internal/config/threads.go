package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"trunkline/engine/threadstore"
	"trunkline/handlers/threads/follow"
	"trunkline/handlers/threads/token"
)

// Threads is the section of agent threads (threads §6). Its settings have the environment names of
// the protocol too (alias). Without a key source it is closed.
type Threads struct {
	Access
	token.Config   // the key source and what tokens must be
	LinesAddr      []string
	MaxConnections int
	Loops          int

	AuthServers      []string
	PublicURL        string
	MCPOrigins       []string
	AllowedHosts     []string
	FailedAuthPer10s int

	HotBytes          int
	MaxThreads        int
	MaxSessions       int
	MaxWaits          int
	MaxSchedules      int
	IdempotencyWindow time.Duration

	RatePostPerAgentPerMinute     int
	RatePostPerThreadPerMinute    int
	RateMCPCallsPerAgentPerMinute int

	TriggerFallback           string
	TriggerResumeArgv         string
	TriggerSpawnArgv          string
	AgentGrace                time.Duration
	TriggerMaxRetries         int
	TriggerResumeMaxAttempts  int
	TriggerQuietWindow        time.Duration
	TriggerRecheck            time.Duration
	TriggerMaxDefer           time.Duration
	TriggerRateLimitPerMinute int
	TriggerAckTimeout         time.Duration
	SessionStaleAfter         time.Duration
	SupervisorMode            string
	SupervisorTmuxSessions    []string
	SupervisorDenyCommands    []string
	SupervisorRuntimes        []string
	SupervisorWorkdir         string
	WorkerMaxParallelJobs     int
	WorkerPollInterval        time.Duration
	LoopMaxTurns              int
	LoopMaxRepeatedFindings   int
	UnreadAutoTrigger         string
	RetentionMode             string
	RetentionDays             int
	EnableAutomatedRedaction  string
	Webhooks                  []Webhook
}

// The values of the modes of threads.
const (
	FallbackOff    = "off"
	supervisorAuto = "auto"
	SupervisorTmux = "tmux"
	SupervisorOff  = "off"
	unreadOff      = "off"
	UnreadManaged  = "managed"
	UnreadAll      = "all"
)

// triggers are the defaults of how agents are woken.
var triggers = threadstore.DefaultTriggers

var threadsSettings = []setting{
	{key: keyLinesAddr, def: "127.0.0.1:3001", optional: true, alias: "NDJSON_ADDR",
		help: "addresses of agent threads over lines, comma separated: host:port or unix:///path; empty switches them off"},
	{key: "threads.max_connections", def: 10000, min: 1, max: maxCount, live: true,
		help: "open connections of lines, and as many of HTTP"},
	{key: "threads.loops", def: 0, min: 0, max: 1024,
		help: "event loops of lines; 0 chooses by the number of processors"},
	{key: "threads.jwks_url", def: "", alias: "AUTH_JWKS_URL", live: true,
		help: "key set of the issuer of tokens: an https URL, or http on loopback; one of the four key sources opens agent threads"},
	{key: "threads.jwks_file", def: "", alias: "AUTH_JWKS_FILE", live: true, help: "key set of the issuer of tokens: a file"},
	{key: "threads.public_key_file", def: "", alias: "AUTH_PUBLIC_KEY_FILE", live: true, help: "public key of the issuer of tokens, PEM"},
	{key: "threads.hs256_secret_file", def: "", alias: "AUTH_HS256_SECRET_FILE", live: true, help: "secret shared with the issuer of tokens, at least 32 bytes"},
	{key: "threads.issuer", def: "", alias: "AUTH_ISSUER", help: "what iss of a token has to be"},
	{key: "threads.audience", def: token.DefaultAudience, alias: "AUTH_AUDIENCE", live: true, help: "what aud of a token has to be, or to contain"},
	{key: "threads.clock_skew_secs", def: 0, min: 0, max: 300, alias: "AUTH_CLOCK_SKEW_SECONDS", help: "by how much the clock of the issuer may differ"},
	{key: "threads.max_token_ttl_secs", def: 0, min: 0, max: maxSecs, alias: "AUTH_MAX_TOKEN_TTL_SECONDS", live: true, help: "longest life of a token; 0 = not bounded"},
	{key: "threads.revocation_file", def: "", alias: "AUTH_REVOCATION_FILE", live: true, help: "file with revoked tokens, one JSON object per line"},
	{key: "threads.workspace_id", def: "", alias: "WORKSPACE_ID", live: true, help: "the only workspace that is served; empty: all of them"},
	{key: "threads.auth_servers", def: "", optional: true, alias: "AUTH_SERVERS",
		help: "issuers shown to MCP clients, comma separated; empty: threads.issuer, if it is an https URL"},
	{key: "threads.public_url", def: "", alias: "PUBLIC_URL", help: "URL under which clients reach the server, shown to MCP clients"},
	{key: "threads.mcp_origins", def: "", optional: true, alias: "MCP_ALLOWED_ORIGINS",
		help: "origins of web pages that may use MCP, comma separated, beside those on loopback and that of threads.public_url"},
	{key: keyThreadsHosts, def: "", optional: true, alias: "MCP_ALLOWED_HOSTS",
		help: "names under which a reverse proxy asks MCP on a loopback address, comma separated, beside localhost and the hosts of threads.public_url and threads.mcp_origins"},
	{key: "threads.failed_auth_per_10s", def: token.DefaultFailures, min: 1, max: maxCount, live: true, help: "refused tokens of one address in 10 s; one more is answered with 429"},
	{key: "threads.hot_bytes", def: threadstore.DefaultHotBytes, min: 1 << 20, max: 1 << 40, help: "memory of the latest messages of all threads"},
	{key: "threads.max_threads", def: threadstore.DefaultMaxThreads, min: 1, max: maxCount, help: "threads in all states"},
	{key: "threads.max_sessions", def: threadstore.DefaultMaxSessions, min: 1, max: maxCount, help: "agents with a registered runtime"},
	{key: "threads.max_waits", def: follow.DefaultMaxWaits, min: 1, max: maxCount, help: "calls of read_messages that wait for a message at a time"},
	{key: "threads.max_schedules", def: threadstore.DefaultMaxTimers, min: 1, max: 100_000,
		help: "schedules and deferred messages, of which an agent may have a tenth; 8 KiB of text count as one more"},
	{key: "threads.idempotency_window_secs", def: 86400, min: 0, max: maxSecs, alias: "IDEMPOTENCY_WINDOW", help: "how long an idempotency key is known; 0 = for ever"},
	{key: "threads.rate_post_per_agent_per_minute", def: 0, min: 0, max: 1_000_000, alias: "RATE_POST_PER_AGENT_PER_MINUTE", live: true, help: "posts of one agent; 0 = not bounded"},
	{key: "threads.rate_post_per_thread_per_minute", def: 0, min: 0, max: 1_000_000, alias: "RATE_POST_PER_THREAD_PER_MINUTE", live: true, help: "posts to one thread; 0 = not bounded"},
	{key: "threads.rate_mcp_calls_per_agent_per_minute", def: 6000, min: 1, max: 1_000_000, alias: "RATE_MCP_CALLS_PER_AGENT_PER_MINUTE", live: true, help: "tool calls of one agent over MCP"},
	{key: "threads.trigger_fallback", def: "on", oneOf: []string{"on", FallbackOff}, alias: "TRIGGER_FALLBACK", help: "whether commands may be run for agents without a live runtime: on, off"},
	{key: "threads.trigger_resume_argv", def: `["codex","exec","resume","{session_id}","{prompt}"]`, alias: "TRIGGER_RESUME_ARGV", help: "command that resumes a session, a JSON array"},
	{key: "threads.trigger_spawn_argv", def: `["codex","exec","{prompt}"]`, alias: "TRIGGER_SPAWN_ARGV", help: "command that begins a session, a JSON array"},
	{key: "threads.agent_grace_secs", def: 8, min: 0, max: maxSecs,
		help: "time that commands for agents have when the server stops, which serves meanwhile; then they get SIGTERM, and SIGKILL a second later"},
	{key: "threads.trigger_max_retries", def: triggers.MaxRetries, min: 0, max: 1000, alias: "TRIGGER_MAX_RETRIES", help: "deliveries that are tried again before a fallback"},
	{key: "threads.trigger_resume_max_attempts", def: triggers.MaxResumes, min: 0, max: 1000, alias: "TRIGGER_RESUME_MAX_ATTEMPTS", help: "runs of the resume command for one job"},
	{key: "threads.trigger_quiet_window_ms", def: 20000, min: 0, max: maxCount, alias: "TRIGGER_QUIET_WINDOW_MS", help: "how long after a key press a terminal counts as used by a person"},
	{key: "threads.trigger_recheck_ms", def: triggers.Recheck, min: 1, max: maxCount, alias: "TRIGGER_RECHECK_MS", help: "time between two looks at a terminal that a person uses"},
	{key: "threads.trigger_max_defer_ms", def: triggers.MaxDefer, min: 0, max: maxCount, alias: "TRIGGER_MAX_DEFER_MS", help: "how long a person at the terminal is waited for; 0 = not at all"},
	{key: "threads.trigger_rate_limit_per_minute", def: triggers.PerMinute, min: 0, max: 1_000_000, alias: "TRIGGER_RATE_LIMIT_PER_MINUTE", help: "deliveries to one agent in one thread; 0 = not bounded"},
	{key: "threads.trigger_ack_timeout_ms", def: triggers.AckTimeout, min: 1, max: maxCount, alias: "TRIGGER_ACK_TIMEOUT_MS", help: "time after which a delivery without a sign of the agent is counted as unacknowledged"},
	{key: "threads.session_stale_after_secs", def: triggers.StaleAfter / 1000, min: 1, max: maxSecs, alias: "SESSION_STALE_AFTER_HOURS", aliasUnit: 3600, help: "silence after which a registered runtime counts as gone"},
	{key: "threads.supervisor_mode", def: supervisorAuto, oneOf: []string{supervisorAuto, SupervisorTmux, SupervisorOff}, alias: "SUPERVISOR_MODE", help: "how agents are woken: auto (tmux where it is installed), tmux, off (jobs stay queued)"},
	{key: "threads.supervisor_tmux_sessions", def: "agents_*", alias: "SUPERVISOR_TMUX_SESSIONS", help: "names of tmux sessions that may be written to, comma separated, with * and ?"},
	{key: "threads.supervisor_deny_commands", def: "sh,bash,dash,zsh,fish,ksh,tcsh,csh,pwsh,nu,sudo,su,ssh,login", optional: true, alias: "SUPERVISOR_DENY_COMMANDS", help: "programs in a terminal that are never written to, comma separated"},
	{key: "threads.supervisor_runtimes", def: "", optional: true,
		help: "programs in a terminal that may be written to, comma separated; empty: all but shells, prompts and those that are denied"},
	{key: "threads.supervisor_workdir", def: "", alias: "SUPERVISOR_WORKDIR", help: "working directory of commands; empty: that of the server"},
	{key: "threads.worker_max_parallel_jobs", def: 10, min: 1, max: 1000, alias: "WORKER_MAX_PARALLEL_JOBS", help: "attempts to wake an agent at a time"},
	{key: "threads.worker_poll_interval_ms", def: 5000, min: 10, max: maxCount, alias: "WORKER_POLL_INTERVAL_MS", help: "time between two looks for jobs that are due"},
	{key: "threads.loop_max_turns", def: triggers.LoopFailures, min: 1, max: maxCount, alias: "LOOP_MAX_TURNS", help: "failed jobs in a row that block a thread"},
	{key: "threads.loop_max_repeated_findings", def: triggers.LoopSame, min: 1, max: maxCount, alias: "LOOP_MAX_REPEATED_FINDINGS", help: "failed jobs in a row with one cause that block a thread"},
	{key: "threads.unread_auto_trigger", def: unreadOff, oneOf: []string{unreadOff, UnreadManaged, UnreadAll}, alias: "UNREAD_AUTO_TRIGGER", help: "who is woken for unread messages: off, managed (live runtimes), all"},
	{key: "threads.retention_mode", def: "permanent", oneOf: []string{"permanent"}, alias: "RETENTION_MODE", help: "permanent: messages are kept for ever"},
	{key: "threads.retention_days", def: 0, min: 0, max: 36500, help: "age in days at which messages of threads are removed; 0 = never"},
	{key: "threads.enable_automated_redaction", def: "false", oneOf: []string{"false"}, alias: "ENABLE_AUTOMATED_REDACTION", help: "false: nothing is redacted"},
	{key: "threads.webhooks", def: []any{}, live: true,
		help: "URLs that messages are sent to, in the file only, a list: name, url, secret_file, and optional workspace, thread_types, event_types (message and unread_dormant among them), allow_private (hosts that may have private addresses)"},
}

// Settings that are named in errors.
const (
	keyLinesAddr    = "threads.lines_addr"
	keyThreadsHosts = "threads.allowed_hosts"
	keyAdminHosts   = "admin.allowed_hosts"
)

// KeySources returns how many key sources are set.
func (t *Threads) KeySources() (n int) {
	for _, s := range t.keySources() {
		if s.value != "" {
			n++
		}
	}
	return n
}

// KeySource returns the setting of the key source and its value, empty where there is none.
func (t *Threads) KeySource() (key, value string) {
	for _, s := range t.keySources() {
		if s.value != "" {
			return s.key, s.value
		}
	}
	return "", ""
}

func (t *Threads) keySources() [4]struct{ key, value string } {
	return [...]struct{ key, value string }{
		{"threads.jwks_url", t.JWKSURL}, {"threads.jwks_file", t.JWKSFile},
		{"threads.public_key_file", t.PublicKeyFile}, {"threads.hs256_secret_file", t.HS256SecretFile},
	}
}

// Lines is the Access of lines_addr.
func (t *Threads) Lines() *Access {
	a := t.Access
	a.ListenAddr, a.addr = t.LinesAddr, "lines_addr"
	return &a
}

// checkThreads refuses what a server cannot do with its agent threads.
func (c *Config) checkThreads() problems {
	t := &c.Threads
	p := t.Access.check()
	if _, err := t.Lines().Listeners(); err != nil {
		p = append(p, err.Error())
	}
	p = append(p, checkHosts(keyThreadsHosts, t.AllowedHosts)...)
	switch n := t.KeySources(); {
	case n > 1:
		p.add("cannot use %d key sources: set one of threads.jwks_url, threads.jwks_file, threads.public_key_file and threads.hs256_secret_file", n)
	case n == 1 && t.Issuer == "":
		p = append(p, "cannot use a key source of agent threads: threads.issuer is not set")
	case n == 0 && !c.dev:
		for _, key := range []string{"threads.listen_addr", keyLinesAddr} {
			if c.origins[key].Layer != layerDefault && c.set(key) {
				p.add("cannot open %s: there is no key source; set one of threads.jwks_url, threads.jwks_file, threads.public_key_file and threads.hs256_secret_file", key)
			}
		}
	}
	return p
}

// checkHosts refuses what no Host is.
func checkHosts(key string, hosts []string) (p problems) {
	for _, h := range hosts {
		if strings.ContainsAny(h, "/*@ \t") {
			p.add("cannot use %s = %q: want the name of a host, without scheme and path", key, h)
		}
	}
	return p
}

// set reports whether a list has entries.
func (c *Config) set(key string) bool {
	s, _ := find(key)
	return s.value(c) != ""
}

// Environment names of the protocol that make threads.listen_addr together.
const (
	envAPIHost = "API_HOST"
	envAPIPort = "API_PORT"
)

// addressOfAPI returns the address that API_HOST and API_PORT name, "" without them.
func addressOfAPI(lookup map[string]string) (addr, name string, err error) {
	host, hasHost := lookup[envAPIHost]
	port, hasPort := lookup[envAPIPort]
	if !hasHost && !hasPort {
		return "", "", nil
	}
	if name = envAPIHost; !hasHost {
		host, name = "127.0.0.1", envAPIPort
	}
	if !hasPort {
		port = "3000"
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("cannot use %s = %q: want a port", envAPIPort, port)
	}
	return net.JoinHostPort(host, port), name, nil
}

// aliases adds the settings that the environment names as the protocol does. Both names of a
// setting must agree.
func aliases(environ map[string]string, values map[string]any, names map[string]string) error {
	add := func(key, name, value string) error {
		if old, ok := values[key]; ok && old != value {
			return fmt.Errorf("cannot use %s = %q and %s = %q: they are one setting", names[key], old, name, value)
		} else if !ok {
			values[key], names[key] = value, name
		}
		return nil
	}
	addr, name, err := addressOfAPI(environ)
	if err == nil && addr != "" {
		err = add("threads.listen_addr", name, addr)
	}
	for _, s := range table {
		value, ok := environ[s.alias]
		if err != nil || s.alias == "" || !ok {
			continue
		}
		if s.aliasUnit > 1 {
			if n, bad := strconv.Atoi(value); bad == nil {
				value = strconv.Itoa(n * s.aliasUnit)
			}
		}
		err = add(s.key, s.alias, value)
	}
	return err
}
