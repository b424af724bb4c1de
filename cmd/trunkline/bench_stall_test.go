package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// benchTotal is what bench --json-file reports of the whole run.
type benchTotal struct {
	Due, Done, Failed int64
	Latency           struct {
		P999 int64 `json:"p999_ns"`
		Max  int64 `json:"max_ns"`
	}
}

// TestBenchShowsAStall: a server over TCP stops for one second. Of a load that does not wait for
// it, the tail shows it, because what came due meanwhile waited too; a load that waits has one slow
// request among thousands, and its tail hides it. Only lower bounds are asked of the open loop and
// only the stall itself of the closed one, so a busy machine changes nothing.
func TestBenchShowsAStall(t *testing.T) {
	const stall = time.Second
	stalling := func() string {
		addr, _ := kernelServer(t, func(n int) bool {
			if n == 400 {
				time.Sleep(stall)
			}
			return true
		})
		return addr
	}
	f := func(args ...string) (total benchTotal) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "result.json")
		args = append(args, "--method", "GetProcessCounts", "--warmup", "0s", "--timeout", "1m", "--max-errors", "0", "--json-file", file)
		if code, out, talk := bench(args...); code != 0 {
			t.Fatalf("exit code %d\n%s%s", code, out, talk)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		result := struct{ Total *benchTotal }{&total}
		if err := json.Unmarshal(data, &result); err != nil {
			t.Fatal(err)
		}
		return total
	}
	const slow = int64(stall - stall/10)

	// Both have one request in flight: it alone would not reach into the p99.9 of 1500. But 50 are
	// due in the stall's first tenth.
	open := f(stalling(), "--rate", "500", "--duration", "3s", "--connections", "1", "--depth", "1")
	if open.Due != 1500 || open.Done != 1500 || open.Latency.P999 < slow || open.Latency.Max < int64(stall) {
		t.Errorf("the stall is hidden: %+v", open)
	}
	closed := f(stalling(), "--rate", "max", "--count", "3000", "--connections", "1", "--depth", "1")
	if closed.Done != 3000 || closed.Latency.P999 >= slow || closed.Latency.Max < int64(stall) {
		t.Errorf("a closed loop does not hide it, so this test shows nothing: %+v", closed)
	}
}
