package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"trunkline/codec/mpack"
	"trunkline/codec/wire"
)

// load runs Load in an empty directory with these arguments, environment and, unless it is "", this
// ./trunkline.yaml.
func load(t *testing.T, args, environ []string, yaml string) (*Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if yaml != "" {
		if err := os.WriteFile(defaultFile, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(fs, environ)
}

func mustLoad(t *testing.T, args, environ []string, yaml string) *Config {
	t.Helper()
	c, err := load(t, args, environ, yaml)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// row returns value and origin of one setting as text.
func row(t *testing.T, c *Config, key string) (any, string) {
	t.Helper()
	for _, r := range c.Rows() {
		if r.Key == key {
			return r.Value, r.Origin
		}
	}
	t.Fatalf("no row %s", key)
	return nil, ""
}

func TestDefaults(t *testing.T) {
	c := mustLoad(t, nil, nil, "")
	checked := make(map[string]bool)
	f := func(key string, want any) {
		t.Helper()
		checked[key] = true
		if v, o := row(t, c, key); v != want || o != "default" {
			t.Errorf("%s = %v (%s), want %v (default)", key, v, o, want)
		}
	}
	f("kernel.listen_addr", "127.0.0.1:50051")
	f("kernel.tls_cert_file", "")
	f("kernel.tls_key_file", "")
	f("kernel.tls_client_ca_file", "")
	f("kernel.insecure_bind", false)
	f("kernel.loops", 0)
	f("kernel.max_frame_bytes", 5242880)
	f("kernel.max_connections", 1000)
	f("kernel.kernel_queue_capacity", 2048)
	f("kernel.read_timeout_secs", 30)
	f("kernel.write_timeout_secs", 10)
	f("kernel.default_query_timeout_ms", 5000)
	f("kernel.max_query_timeout_ms", 30000)
	f("kernel.stream_buffer_events", 16384)
	f("kernel.stream_buffer_bytes", 16777216)
	f("kernel.stream_buffer_total_bytes", 268435456)
	f("kernel.subscription_name_bytes", 67108864)
	f("kernel.max_streams_per_connection", 32)
	f("kernel.max_event_types", 256)
	f("kernel.max_event_patterns", 4096)
	f("kernel.max_event_patterns_per_connection", 1024)
	f("kernel.max_processes", 1000000)
	f("kernel.huge_pages", true)
	f("kernel.max_rate_limit_users", 100000)
	f("kernel.dequeue_lease_secs", 30)
	f("kernel.cleanup_interval_secs", 300)
	f("kernel.process_retention_secs", 86400)
	f("kernel.shutdown_grace_secs", 5)
	f("kernel.lame_duck_secs", 0)
	f("kernel.max_envelopes", 10000)
	f("kernel.max_envelope_bytes", 536870912)
	f("kernel.envelope_retention_secs", 86400)
	f("kernel.max_sessions", 10000)
	f("kernel.max_session_bytes", 1073741824)
	f("kernel.session_retention_secs", 3600)
	f("kernel.idempotency_window_secs", 86400)
	f("kernel.max_idempotency_keys", 100000)
	f("kernel.max_idempotency_bytes", 67108864)
	f("http.listen_addr", "127.0.0.1:50080")
	f("http.tls_cert_file", "")
	f("http.tls_key_file", "")
	f("http.tls_client_ca_file", "")
	f("http.insecure_bind", false)
	f("http.max_body_bytes", 5242880)
	f("http.max_in_flight", 256)
	f("http.max_connections", 1024)
	f("http.read_header_timeout_secs", 10)
	f("http.read_body_timeout_secs", 30)
	f("http.idle_timeout_secs", 120)
	f("http.write_timeout_secs", 30)
	f("http.max_header_bytes", 65536)
	f("http.default_stage_order", "perception,intent,plan,execution,critic,integration")
	f("toolhost.listen_addr", "")
	f("toolhost.tls_cert_file", "")
	f("toolhost.tls_key_file", "")
	f("toolhost.tls_client_ca_file", "")
	f("toolhost.insecure_bind", false)
	f("toolhost.max_connections", 4096)
	f("toolhost.loops", 0)
	f("toolhost.max_line_bytes", 10485760)
	f("toolhost.unfinished_lines_bytes", 268435456)
	f("toolhost.plugins", "builtin")
	f("toolhost.root", "")
	f("toolhost.tool_timeout_ms", 0)
	f("toolhost.idempotency_ttl_ms", 60000)
	f("toolhost.queue", 1024)
	f("toolhost.executors", 0)
	f("threads.listen_addr", "127.0.0.1:3000")
	f("threads.tls_cert_file", "")
	f("threads.tls_key_file", "")
	f("threads.tls_client_ca_file", "")
	f("threads.insecure_bind", false)
	f("threads.lines_addr", "127.0.0.1:3001")
	f("threads.max_connections", 10000)
	f("threads.loops", 0)
	f("threads.jwks_url", "")
	f("threads.jwks_file", "")
	f("threads.public_key_file", "")
	f("threads.hs256_secret_file", "")
	f("threads.issuer", "")
	f("threads.audience", "orkiva")
	f("threads.clock_skew_secs", 0)
	f("threads.max_token_ttl_secs", 0)
	f("threads.revocation_file", "")
	f("threads.workspace_id", "")
	f("threads.auth_servers", "")
	f("threads.public_url", "")
	f("threads.mcp_origins", "")
	f("threads.allowed_hosts", "")
	f("threads.failed_auth_per_10s", 30)
	f("threads.hot_bytes", 67108864)
	f("threads.max_threads", 1000000)
	f("threads.max_sessions", 100000)
	f("threads.max_waits", 4096)
	f("threads.max_schedules", 10000)
	f("threads.idempotency_window_secs", 86400)
	f("threads.rate_post_per_agent_per_minute", 0)
	f("threads.rate_post_per_thread_per_minute", 0)
	f("threads.rate_mcp_calls_per_agent_per_minute", 6000)
	f("threads.trigger_fallback", "on")
	f("threads.trigger_resume_argv", `["codex","exec","resume","{session_id}","{prompt}"]`)
	f("threads.trigger_spawn_argv", `["codex","exec","{prompt}"]`)
	f("threads.trigger_max_retries", 2)
	f("threads.trigger_resume_max_attempts", 2)
	f("threads.trigger_quiet_window_ms", 20000)
	f("threads.trigger_recheck_ms", 5000)
	f("threads.trigger_max_defer_ms", 60000)
	f("threads.trigger_rate_limit_per_minute", 10)
	f("threads.trigger_ack_timeout_ms", 8000)
	f("threads.session_stale_after_secs", 43200)
	f("threads.supervisor_mode", "auto")
	f("threads.supervisor_tmux_sessions", "agents_*")
	f("threads.supervisor_deny_commands", "sh,bash,dash,zsh,fish,ksh,tcsh,csh,pwsh,nu,sudo,su,ssh,login")
	f("threads.supervisor_runtimes", "")
	f("threads.supervisor_workdir", "")
	f("threads.worker_max_parallel_jobs", 10)
	f("threads.agent_grace_secs", 8)
	f("threads.worker_poll_interval_ms", 5000)
	f("threads.loop_max_turns", 20)
	f("threads.loop_max_repeated_findings", 3)
	f("threads.unread_auto_trigger", "off")
	f("threads.retention_mode", "permanent")
	f("threads.retention_days", 0)
	f("threads.enable_automated_redaction", "false")
	f("threads.webhooks", "[]")
	f("exacta.listen_addr", "")
	f("exacta.tls_cert_file", "")
	f("exacta.tls_key_file", "")
	f("exacta.tls_client_ca_file", "")
	f("exacta.insecure_bind", false)
	f("exacta.ws_addr", "")
	f("exacta.max_connections", 1024)
	f("exacta.loops", 0)
	f("exacta.max_message_bytes", 8388608)
	f("exacta.max_open_projects", 32)
	f("exacta.max_inflight_per_connection", 64)
	f("exacta.max_parked_per_project", 64)
	f("exacta.journal_events", 10000)
	f("exacta.journal_bytes", 16777216)
	f("exacta.replay_cache_entries", 4096)
	f("exacta.replay_cache_bytes", 33554432)
	f("exacta.debug_commands", "auto")
	f("exacta.allowed_roots", "")
	f("exacta.diagnostics_dirs", "")
	f("exacta.ws_origins", "")
	f("exacta.auth_token_file", "")
	f("exacta.key_file", "")
	f("exacta.plan_validity_seconds", 1800)
	f("exacta.log_event_level", "INFO")
	f("exacta.clock", "real")
	f("exacta.ids", "random")
	f("exacta.planner", "builtin")
	f("exacta.planner_command", "")
	f("exacta.planner_url", "")
	f("exacta.planner_model", "")
	f("exacta.planner_key_file", "")
	f("exacta.planner_cache", "read_write")
	f("admin.listen_addr", "127.0.0.1:50090")
	f("admin.insecure_bind", false)
	f("admin.allowed_hosts", "")
	f("admin.pprof", false)
	f("admin.console_token_file", "")
	f("admin.console_operator_token_file", "")
	f("admin.public_metrics", false)
	f("admin.slow_threshold_ms", 100)
	f("admin.slow_entries", 512)
	f("admin.monitor_payloads", false)
	f("store.mode", "always")
	f("store.dir", "trunkline-data")
	f("store.snapshot_bytes", 67108864)
	f("store.snapshot_interval_secs", 600)
	f("store.backup_dir", "")
	f("log.level", "info")
	f("log.format", "auto")
	f("cluster.mode", "off")
	f("cluster.name", "")
	f("cluster.node", "")
	f("cluster.listen_addr", "127.0.0.1:50070")
	f("cluster.peer_addr", "127.0.0.1:50071")
	f("cluster.advertise_addr", "")
	f("cluster.routes", "")
	f("cluster.secret_file", "")
	f("cluster.tls_cert_file", "")
	f("cluster.tls_key_file", "")
	f("cluster.tls_ca_file", "")
	f("cluster.dir", "")
	f("cluster.partitions", 1)
	f("cluster.replicas", 3)
	f("cluster.lease_ms", 1000)
	f("cluster.election_timeout_ms", 0)
	f("cluster.join_timeout_secs", 60)
	f("cluster.nats_url", "")
	f("cluster.nats_creds_file", "")
	f("cluster.nats_system_creds_file", "")
	f("cluster.nats_accept_lazy_sync", false)
	for _, r := range c.Rows() {
		if !checked[r.Key] {
			t.Errorf("the default of %s is not in this list", r.Key)
		}
	}
}

func TestEveryLayerOverTheOneBelow(t *testing.T) {
	const key, name = "kernel.max_connections", "TRUNKLINE_KERNEL_MAX_CONNECTIONS"
	f := func(args, environ []string, yaml string, want int, origin string) {
		t.Helper()
		v, o := row(t, mustLoad(t, args, environ, yaml), key)
		if v != want || o != origin {
			t.Errorf("%v %v %q: %v (%s), want %d (%s)", args, environ, yaml, v, o, want, origin)
		}
	}
	env := []string{name + "=30"}
	f(nil, nil, "", 1000, "default")
	f(nil, nil, "kernel: {max_connections: 20}", 20, "file trunkline.yaml")
	f(nil, nil, "kernel.max_connections: 20", 20, "file trunkline.yaml")
	f(nil, env, "kernel: {max_connections: 20}", 30, "env "+name)
	f([]string{"--set", key + "=40"}, env, "kernel: {max_connections: 20}", 40, "flag --set")
	f([]string{"--set", key + "=40", "--set", key + "=50"}, nil, "", 50, "flag --set")
}

func TestDedicatedFlagsAndDev(t *testing.T) {
	f := func(key string, want any, origin string, args ...string) {
		t.Helper()
		v, o := row(t, mustLoad(t, args, nil, ""), key)
		if v != want || o != origin {
			t.Errorf("%v: %s = %v (%s), want %v (%s)", args, key, v, o, want, origin)
		}
	}
	f("kernel.listen_addr", "127.0.0.1:0,unix:///tmp/x", "flag --listen", "--listen", "127.0.0.1:0, unix:///tmp/x")
	f("kernel.listen_addr", "127.0.0.1:2", "flag --listen", "--set", "kernel.listen_addr=127.0.0.1:1", "--listen", "127.0.0.1:2")
	f("admin.listen_addr", "", "flag --admin-listen", "--admin-listen", "")
	f("http.listen_addr", "", "flag --http-listen", "--http-listen", "")
	f("http.listen_addr", "127.0.0.1:1,127.0.0.1:2", "flag --http-listen", "--http-listen", "127.0.0.1:1,127.0.0.1:2")
	f("toolhost.listen_addr", "127.0.0.1:1,unix:///tmp/x", "flag --toolhost-listen", "--toolhost-listen", "127.0.0.1:1,unix:///tmp/x")
	f("log.format", "json", "flag --log-format", "--log-format", "json", "--dev")
	f("log.format", "text", "dev", "--dev")
	f("admin.pprof", true, "dev", "--dev")
	f("store.mode", "memory", "dev", "--dev")
	f("store.mode", "memory", "flag --set", "--dev", "--set", "store.mode=memory")
	f("kernel.max_frame_bytes", 8388609, "flag --set", "--dev", "--set", "kernel.max_frame_bytes=8388609")
	f("kernel.max_frame_bytes", 8388609, "flag --set", "--set", "store.mode=memory", "--set", "kernel.max_frame_bytes=8388609")
	f("kernel.max_frame_bytes", 8388608, "flag --set", "--set", "kernel.max_frame_bytes=8388608")
	f("log.format", "json", "flag --log-format", "--log-format=json")
}

func TestNamedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(path, []byte("kernel:\nadmin: {}\nlog:\n  level: error\nstore:\n  mode:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, []string{"--config", path}, nil, "log: {level: debug}")
	if v, o := row(t, c, "log.level"); v != "error" || o != "file "+path || c.File() != path {
		t.Errorf("log.level = %v (%s), file %q", v, o, c.File())
	}
	if s, want := c.Summary(), fmt.Sprintf("1 from file %s, %d from defaults", path, len(c.Rows())-1); s != want {
		t.Errorf("Summary = %q", s)
	}
}

func TestListsInYAML(t *testing.T) {
	c := mustLoad(t, nil, nil, "kernel:\n  listen_addr:\n    - 127.0.0.1:0\n    - unix:///tmp/t.sock\n")
	if v, _ := row(t, c, "kernel.listen_addr"); v != "127.0.0.1:0,unix:///tmp/t.sock" {
		t.Errorf("listen_addr = %v", v)
	}
	c = mustLoad(t, nil, nil, "http:\n  listen_addr: []\n")
	if v, o := row(t, c, "http.listen_addr"); v != "" || o != "file trunkline.yaml" || len(c.HTTP.ListenAddr) != 0 {
		t.Errorf("http.listen_addr = %v (%s)", v, o)
	}
}

func TestEnvironmentOfOrchestratorsIsNotOurs(t *testing.T) {
	mustLoad(t, nil, []string{
		"TRUNKLINE_SERVICE_HOST=10.0.0.1", "TRUNKLINE_SERVICE_PORT=1", "TRUNKLINE_SERVICE_PORT_KERNEL=1",
		"TRUNKLINE_PORT=tcp://10.0.0.1:1", "TRUNKLINE_PORT_50051_TCP=x", "TRUNKLINE_PORT_50051_TCP_ADDR=x",
		"TRUNKLINE_KERNEL_PORT=x", "TRUNKLINE_KERNEL_SERVICE_HOST=x", "HOME=/", "TRUNKLINEX=1",
	}, "")
}

// TestVariablesThatAreNoSettings: a first word that is a section, or up to two edits away from one,
// is a misspelt setting; any other belongs to another program.
func TestVariablesThatAreNoSettings(t *testing.T) {
	for _, name := range []string{"KERNEL_X", "KRNL_LOOPS", "HTPS_LISTEN_ADDR", "STOR_MODE", "TOOLHOTS_QUEUE", "LGO_LEVEL", "LOGS_LEVEL", "ADMIN"} {
		_, err := load(t, nil, []string{envPrefix + name + "=1"}, "")
		if err == nil || !strings.Contains(err.Error(), "(env "+envPrefix+name+"); the nearest known one is ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"BIN", "HOME", "KRN_LOOPS", "TEST_LONG", "RECOVER_TO_INDEX", "LEVEL", "LOOPS_X"} {
		c := mustLoad(t, nil, []string{envPrefix + name + "=1", "TRUNKLINE_KERNEL_LOOPS=1"}, "")
		if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], envPrefix+name+": ") || c.Kernel.Loops != 1 {
			t.Errorf("%s: %q, %d loops", name, w, c.Kernel.Loops)
		}
	}
	c := mustLoad(t, nil, []string{"TRUNKLINE_MAX_FRAME_BYTES=1"}, "")
	if want := "ignoring the environment variable TRUNKLINE_MAX_FRAME_BYTES: it is no setting; the nearest one is TRUNKLINE_KERNEL_MAX_FRAME_BYTES"; !slices.Equal(c.Warnings(), []string{want}) {
		t.Errorf("%q", c.Warnings())
	}
}

// TestEntriesWithoutAValue: execve takes them, and they are no variables.
func TestEntriesWithoutAValue(t *testing.T) {
	c := mustLoad(t, nil, []string{"TRUNKLINE_LOG_LEVEL", "TRUNKLINE_KERNEL_LOPS", "TRUNKLINE_X_Y"}, "")
	if v, o := row(t, c, "log.level"); v != "info" || o != "default" || c.Warnings() != nil {
		t.Errorf("%v (%s), warnings %v", v, o, c.Warnings())
	}
}

func TestProblems(t *testing.T) {
	f := func(want string, args, environ []string, yaml string) {
		t.Helper()
		_, err := load(t, args, environ, yaml)
		var p problems
		if !errors.As(err, &p) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v %v %q = %v, want %q", args, environ, yaml, err, want)
		}
	}
	set := func(s string) []string { return []string{"--set", s} }
	f("unknown setting kernel.max_conections (flag --set); the nearest known one is kernel.max_connections", set("kernel.max_conections=1"), nil, "")
	f("unknown setting max_frame_bytes (flag --set); the nearest known one is kernel.max_frame_bytes", set("max_frame_bytes=1"), nil, "")
	f("unknown setting kernal.loops (file trunkline.yaml); the nearest known one is kernel.loops", nil, nil, "kernal: {loops: 1}")
	f("unknown setting log.levle (env TRUNKLINE_LOG_LEVLE); the nearest known one is log.level", nil, []string{"TRUNKLINE_LOG_LEVLE=info"}, "")
	f("unknown setting kernel (file trunkline.yaml)", nil, nil, "kernel: 5")
	f("unknown setting kernel.loops.x", nil, nil, "kernel: {loops: {x: 1}}")
	f(`cannot use --set "x": want key=value`, set("x"), nil, "")
	f(`cannot use kernel.loops = "x" (env TRUNKLINE_KERNEL_LOOPS): want an integer from 0 to 1024`, nil, []string{"TRUNKLINE_KERNEL_LOOPS=x"}, "")
	f(`cannot use kernel.loops = 5.5 (file trunkline.yaml): want an integer`, nil, nil, "kernel: {loops: 5.5}")
	f(`cannot use kernel.insecure_bind = "yes" (flag --set): want true, false, 1 or 0`, set("kernel.insecure_bind=yes"), nil, "")
	f(`cannot use log.level = "loud" (flag --set): want one of debug, info, warn, error`, set("log.level=loud"), nil, "")
	f(`cannot use log.level = 5 (file trunkline.yaml): want text`, nil, nil, "log: {level: 5}")
	f(`cannot use kernel.listen_addr = "" (flag --set): it has an empty entry`, set("kernel.listen_addr="), nil, "")
	f(`want a list of text, not 5 in it`, nil, nil, "kernel: {listen_addr: [5]}")
	f(`cannot use http.listen_addr = "a," (flag --set): it has an empty entry`, set("http.listen_addr=a,"), nil, "")
	f(`cannot use http.default_stage_order = "" (flag --set): it has an empty entry`, set("http.default_stage_order="), nil, "")
	f(`cannot use http.default_stage_order: "a" is in it twice`, set("http.default_stage_order=a,b,a"), nil, "")
	f(`cannot use http.listen_addr = "0.0.0.0:1": an address beyond loopback needs TLS with client certificates: http.tls_cert_file, http.tls_key_file and http.tls_client_ca_file are not set (http.insecure_bind=true opens it to anybody)`,
		set("http.listen_addr=0.0.0.0:1"), nil, "")
	f("cannot use http.tls_cert_file: http.tls_key_file is not set", set("http.tls_cert_file=x"), nil, "")
	const lower = "where a change must fit a record; lower it to 8388608, or keep nothing with store.mode=memory"
	f("cannot use kernel.max_frame_bytes = 8388609: store.mode is always (default), "+lower, set("kernel.max_frame_bytes=8388609"), nil, "")
	f("store.mode is interval (file trunkline.yaml), "+lower, set("kernel.max_frame_bytes=8388609"), nil, "store: {mode: interval}")
	f(`cannot use store.dir = "": store.mode is always (default); name a directory, or keep nothing with store.mode=memory`, set("store.dir="), nil, "")
	f("cannot use --dev: store.mode is always (flag --set), and --dev keeps nothing; leave one of the two out", append(set("store.mode=always"), "--dev"), nil, "")
	f("cannot use --dev: store.mode is interval (env TRUNKLINE_STORE_MODE)", []string{"--dev"}, []string{"TRUNKLINE_STORE_MODE=interval"}, "")
	f("cannot use --dev: store.mode is always (file trunkline.yaml)", []string{"--dev"}, nil, "store: {mode: always}")
	f(`cannot use store.mode = "durable" (flag --set): want one of memory, interval, always`, set("store.mode=durable"), nil, "")
	f("kernel.default_query_timeout_ms = 5000: it is above kernel.max_query_timeout_ms = 10", set("kernel.max_query_timeout_ms=10"), nil, "")
	f("cannot use kernel.max_frame_bytes = \"4095\" (flag --set): want an integer from 4096 to 1073741824", set("kernel.max_frame_bytes=4095"), nil, "")
	f("cannot read settings file nope.yaml", []string{"--config", "nope.yaml"}, nil, "")
	f("cannot use --config: the path is empty", []string{"--config", ""}, nil, "")
	f("cannot read settings file trunkline.yaml: line 1: did not find expected node content", nil, nil, "kernel: [")
	broken := func(want, text string) {
		t.Helper()
		f("cannot read settings file trunkline.yaml: line "+want, nil, nil, text)
	}
	const fine = "log:\n  level: info\n"
	broken("3: mapping values are not allowed in this context", fine+"kernel: : x\n"+"http: {}\n")
	broken("1: mapping values are not allowed in this context", "kernel: : x\n"+fine)
	broken("3: control characters are not allowed", fine+"\x01\n"+"http: {}\n")
	broken("4: unknown anchor 'x' referenced", fine+"kernel:\n  loops: *x\n"+"http: {}\n")
	broken("3: invalid leading UTF-8 octet", fine+"store: \xff\n"+"http: {}\n")
	broken("5: did not find expected key", fine+"kernel:\n  loops: 1\n bad: 1\n"+"http: {}\n")
	broken("4: found character that cannot start any token", fine+"kernel:\n\tloops: 1\n"+"http: {}\n")
	broken("3: found unexpected end of stream", fine+"store: {dir: \"x}\n"+"http: {}\n")
	broken("1: want settings, name: value", "- a\n- b\n")
	broken("4: mapping key \"level\" already defined at line 2", "log:\n  level: info\n  format: text\n  level: warn\n")
	f("already defined", nil, nil, "log: {level: info}\nlog: {level: warn}\n")
	f("cannot read settings file trunkline.yaml: kernel.loops is set twice", nil, nil, "kernel.loops: 3\nkernel: {loops: 4}\n")
	f("kernel.loops is set twice", nil, nil, "kernel: {loops: 4}\nkernel.loops: 3\n")
}

func TestFrameBoundLeavesRoomForAnyError(t *testing.T) {
	if c := mustLoad(t, []string{"--set", "kernel.max_frame_bytes=4096"}, nil, ""); c.Kernel.MaxFrameBytes != 4096 {
		t.Errorf("max_frame_bytes = %d", c.Kernel.MaxFrameBytes)
	}
	id, text := bytes.Repeat([]byte("x"), wire.MaxIdentifier), "Response too large: 9223372036854775807 bytes (max 9223372036854775807)"
	extras := mpack.Extras{Retryable: true, QueueCapacity: math.MaxInt32, MaxConnections: math.MaxInt32, RetryAfter: 1}
	whole := mpack.AppendError(nil, id, wire.ResourceExhausted.String(), []byte(text), extras)
	if size := 1 + len(whole); size > minFrame {
		t.Errorf("an error with the longest id takes %d bytes, max_frame_bytes may be %d", size, minFrame)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, err := load(t, []string{"--set", "kernel.loops=-1", "--set", "log.level=x", "--set", "a.b=1"}, nil, "")
	var p problems
	if !errors.As(err, &p) || len(p) != 3 {
		t.Fatalf("problems = %q", p)
	}
	if s := err.Error(); !strings.HasPrefix(s, "cannot use these settings:\n  unknown setting a.b") {
		t.Errorf("error = %q", s)
	}
}

func TestRangesAtTheirEdges(t *testing.T) {
	f := func(s setting, n int, ok bool) {
		t.Helper()
		if err := s.assign(new(Config), n); (err == nil) != ok {
			t.Errorf("%s = %d: %v", s.key, n, err)
		}
	}
	for _, s := range table {
		if _, isInt := s.def.(int); !isInt {
			continue
		}
		f(s, s.min, true)
		f(s, s.min-1, false)
		f(s, s.max, true)
		if s.max+1 > s.max {
			f(s, s.max+1, false)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	seen := make(map[any]string)
	var c Config
	for _, s := range table {
		if s.help == "" || !strings.Contains(s.key, delim) {
			t.Errorf("%q has no help or no section", s.key)
		}
		if other, dup := seen[s.at(&c)]; dup {
			t.Errorf("%s and %s share a field", s.key, other)
		}
		seen[s.at(&c)] = s.key
		if keyOfEnv(envName(s.key)) != s.key {
			t.Errorf("%s does not survive the way to the environment and back", s.key)
		}
		if nearest(s.key) != s.key {
			t.Errorf("Nearest(%s) = %s", s.key, nearest(s.key))
		}
	}
}

func TestNearestOnLongInput(t *testing.T) {
	if got := nearest(strings.Repeat("x", 1<<20)); got == "" {
		t.Error("no answer")
	}
}

// TestBooleansOfTheEnvironment: one that is neither on nor off is a problem, never off.
func TestBooleansOfTheEnvironment(t *testing.T) {
	for _, s := range table {
		if _, ok := s.def.(bool); !ok {
			continue
		}
		for value, want := range map[string]any{"1": true, "true": true, "0": false, "false": false, "": nil, "TRUE": nil, "yes": nil, "on": nil, "1 ": nil, "t": nil} {
			c, err := load(t, nil, []string{envName(s.key) + "=" + value}, "")
			switch {
			case want == nil && (err == nil || !strings.Contains(err.Error(), "want true, false, 1 or 0")):
				t.Errorf("%s=%q: %v", envName(s.key), value, err)
			case want != nil && err == nil && s.value(c) != want:
				t.Errorf("%s=%q is %v", envName(s.key), value, s.value(c))
			}
		}
	}
}
