package config

import (
	"strings"
	"testing"
)

// TestNamesOfTheProtocol reads the environment names of threads §2.1, §3.1 and §6.
func TestNamesOfTheProtocol(t *testing.T) {
	key := []string{"AUTH_PUBLIC_KEY_FILE=/k.pem", "AUTH_ISSUER=https://i"}
	f := func(environ []string, setting string, want any, origin string) {
		t.Helper()
		v, o := row(t, mustLoad(t, nil, append(environ, key...), ""), setting)
		if v != want || o != origin {
			t.Errorf("%v: %s = %v (%s), want %v (%s)", environ, setting, v, o, want, origin)
		}
	}
	f(nil, "threads.public_key_file", "/k.pem", "env AUTH_PUBLIC_KEY_FILE")
	f([]string{"API_HOST=::1"}, "threads.listen_addr", "[::1]:3000", "env API_HOST")
	f([]string{"API_PORT=4000"}, "threads.listen_addr", "127.0.0.1:4000", "env API_PORT")
	f([]string{"API_HOST=localhost", "API_PORT=4000"}, "threads.listen_addr", "localhost:4000", "env API_HOST")
	f([]string{"API_PORT=4000", "TRUNKLINE_THREADS_LISTEN_ADDR=127.0.0.1:4000"}, "threads.listen_addr", "127.0.0.1:4000", "env TRUNKLINE_THREADS_LISTEN_ADDR")
	f([]string{"NDJSON_ADDR=127.0.0.1:0"}, "threads.lines_addr", "127.0.0.1:0", "env NDJSON_ADDR")
	f([]string{"SESSION_STALE_AFTER_HOURS=2"}, "threads.session_stale_after_secs", 7200, "env SESSION_STALE_AFTER_HOURS")
	f([]string{"TRIGGER_MAX_DEFER_MS=0"}, "threads.trigger_max_defer_ms", 0, "env TRIGGER_MAX_DEFER_MS")
	f([]string{"RETENTION_MODE=permanent", "ENABLE_AUTOMATED_REDACTION=false"}, "threads.retention_mode", "permanent", "env RETENTION_MODE")
}

// TestThreadsRefused has what keeps a server from starting (threads §2.1, §3.1, §6).
func TestThreadsRefused(t *testing.T) {
	key := "AUTH_PUBLIC_KEY_FILE=/k.pem"
	f := func(want string, environ ...string) {
		t.Helper()
		_, err := load(t, nil, environ, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", environ, err, want)
		}
	}
	f("cannot use 2 key sources", key, "AUTH_JWKS_FILE=/j", "AUTH_ISSUER=i")
	f("threads.issuer is not set", key)
	f("cannot open threads.listen_addr: there is no key source", "API_PORT=4000")
	f("cannot open threads.lines_addr: there is no key source", "NDJSON_ADDR=127.0.0.1:1")
	f("they are one setting", key, "AUTH_ISSUER=i", "API_PORT=4000", "TRUNKLINE_THREADS_LISTEN_ADDR=127.0.0.1:4001")
	f("they are one setting", "AUTH_ISSUER=i", "TRUNKLINE_THREADS_ISSUER=j")
	f("want a port", "API_PORT=http")
	f("threads.insecure_bind", key, "AUTH_ISSUER=i", "API_HOST=0.0.0.0")
	f("threads.lines_addr", key, "AUTH_ISSUER=i", "NDJSON_ADDR=0.0.0.0:1")
	f("want one of permanent", "RETENTION_MODE=30d")
	f("want one of false", "ENABLE_AUTOMATED_REDACTION=true")
	f("want an integer", "TRIGGER_MAX_RETRIES=many")
	f("want an integer", "SESSION_STALE_AFTER_HOURS=x")
}
