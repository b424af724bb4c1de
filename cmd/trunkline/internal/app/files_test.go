package app

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"
)

func TestLowLimitOfOpenFilesIsSaid(t *testing.T) {
	f := func(limit uint64, want string, set ...string) {
		t.Helper()
		var log bytes.Buffer
		compareFiles(slog.New(slog.NewTextHandler(&log, nil)), limit, settings(t, append([]string{"http.listen_addr="}, set...)...))
		got := log.String()
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("a limit of %d with %v: %q, want %q", limit, set, got, want)
		}
	}
	f(2512, "")
	f(2511, "level=WARN")
	f(2511, "limit=2511 wanted=2512")
	f(math.MaxUint64, "", "kernel.max_connections=2147483647")
	f(1<<32, "wanted=4294967806", "kernel.max_connections=2147483647")
	web := []string{"kernel.max_connections=1", "http.listen_addr=127.0.0.1:0,127.0.0.1:0", "http.max_connections=7"}
	f(528, "", web...)
	f(527, "limit=527 wanted=528", web...)
	f(521, "wanted=522", "kernel.max_connections=1", "toolhost.listen_addr=127.0.0.1:0", "toolhost.max_connections=4")
}

// TestLimitOfOpenFilesIsRead at the start, and when a reload raises what is wanted.
func TestLimitOfOpenFilesIsRead(t *testing.T) {
	r := startReloadable(t, "http.listen_addr=", "kernel.max_connections=2147483646")
	f := func(wanted string) {
		t.Helper()
		if log := r.log.String(); !strings.Contains(log, "RLIMIT_NOFILE") || !strings.Contains(log, wanted) {
			t.Errorf("log:\n%s", log)
		}
	}
	f("wanted=4294967804")
	r.must("kernel.max_connections=2147483647")
	f("wanted=4294967806")
}
