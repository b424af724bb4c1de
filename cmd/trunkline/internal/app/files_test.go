package app

import (
	"bytes"
	"log/slog"
	"math"
	"strings"
	"testing"

	"trunkline/cmd/trunkline/internal/config"
)

func TestLowLimitOfOpenFilesIsSaid(t *testing.T) {
	var http config.HTTP
	f := func(limit uint64, maxConnections int, want string) {
		t.Helper()
		var log bytes.Buffer
		cfg := &config.Config{HTTP: http}
		cfg.Kernel.MaxConnections = maxConnections
		compareFiles(slog.New(slog.NewTextHandler(&log, nil)), limit, cfg)
		got := log.String()
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("a limit of %d for %d connections: %q, want %q", limit, maxConnections, got, want)
		}
	}
	f(2128, 1000, "")
	f(2127, 1000, "level=WARN")
	f(2127, 1000, "limit=2127 wanted=2128 kernel.max_connections=1000")
	f(130, 1, "")
	f(129, 1, "limit=129 wanted=130")
	f(math.MaxUint64, math.MaxInt32, "")
	f(1<<32, math.MaxInt32, "wanted=4294967422")
	http.MaxConnections = 7
	f(130, 1, "") // there is no listener
	http.ListenAddr = []string{"a", "b"}
	f(144, 1, "")
	f(143, 1, "limit=143 wanted=144 kernel.max_connections=1 http.max_connections=7")
}

func TestLimitOfOpenFilesIsReadAtStart(t *testing.T) {
	i := start(t, "kernel.max_connections=2147483647", "http.listen_addr=")
	if log := i.log.String(); !strings.Contains(log, "RLIMIT_NOFILE") || !strings.Contains(log, "wanted=4294967422") {
		t.Errorf("log:\n%s", log)
	}
}
