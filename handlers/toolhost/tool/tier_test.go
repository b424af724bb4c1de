package tool

import (
	"testing"

	"pgregory.net/rapid"
)

func TestTierOf(t *testing.T) {
	f := func(want int, aid string, effects ...string) {
		t.Helper()
		if got := TierOf(aid, effects); got != want {
			t.Errorf("%s %q is of tier %d, want %d", aid, effects, got, want)
		}
	}
	// By name.
	f(0, "AID.NOOP.v1")
	f(3, "AID.GENESIS.WRITE_FILE.v1", "none")
	f(2, "AID.SHELL.EXEC.v1", "none")
	f(2, "AID.NET.HTTP_GET.v1", "none")
	f(0, "AID.NET.PING.v1", "none")
	f(1, "AID.FILE.WRITE.v1", "none")
	f(1, "AID.MEMORY.APPEND.v1", "none")
	f(1, "AID.VECDB.UPSERT.v1", "none")
	f(0, "AID.FILE.READ.v1", "none")
	f(0, "aid.shell.genesis.v1", "none")
	f(3, "AID.SHELL.GENESIS.FILE.WRITE.v1", "none")

	// By side effect.
	f(0, "A", "none")
	f(0, "A", "read")
	f(0, "A", "filesystem_read")
	f(0, "A", "gpu_probe")
	f(0, "A", "none", "read", "filesystem_read", "gpu_probe")
	f(1, "A", "filesystem_write")
	f(1, "A", "log_append")
	f(1, "A", "delete_row")
	f(1, "A", "create")
	f(2, "A", "proc_exec")
	f(2, "A", "network")
	f(2, "A", "process_introspection")
	f(2, "A", "spawn_thread")
	f(3, "A", "dynamic_library_load")

	// The highest counts, wherever it stands.
	f(2, "A", "filesystem_write", "proc_exec")
	f(2, "A", "proc_exec", "filesystem_write")
	f(2, "A", "write_exec")
	f(3, "A", "write", "library_load", "read")
	f(2, "AID.FILE.WRITE.v1", "network")
	f(3, "AID.GENESIS.v1", "none", "write")
	f(1, "AID.FILE.WRITE.v1", "read")

	// What no one knows.
	f(2, "A", "")
	f(2, "A", "mystery")
	f(2, "A", "network_read")
	f(2, "A", "thread")
	f(2, "A", "reads")
	f(2, "A", "None")
	f(2, "A", "FILESYSTEM_WRITE")
	f(2, "A", "filesystem_write", "mystery")
	f(3, "A", "mystery", "library_load")
}

// TestTierOfBuiltIns: the column of toolhost §4.7.
func TestTierOfBuiltIns(t *testing.T) {
	for _, d := range []Descriptor{
		{AID: "AID.ASK_SUP.v1", SideEffects: []string{"none"}, Tier: 0},
		{AID: "AID.ERROR_SCAN.v1", SideEffects: []string{"filesystem_read"}, Tier: 0},
		{AID: "AID.FILE.WRITE.v1", SideEffects: []string{"filesystem_write"}, Tier: 1},
		{AID: "AID.MEMORY.APPEND.v1", SideEffects: []string{"filesystem_write"}, Tier: 1},
		{AID: "AID.MEMORY.QUERY.v1", SideEffects: []string{"filesystem_read"}, Tier: 0},
		{AID: "AID.VECDB.UPSERT.v1", SideEffects: []string{"filesystem_write"}, Tier: 1},
		{AID: "AID.VECDB.QUERY.v1", SideEffects: []string{"filesystem_read"}, Tier: 0},
		{AID: "AID.PROC.SELF_METRICS.v1", SideEffects: []string{"process_introspection"}, Tier: 2},
		{AID: "AID.HASH.DIGEST.v1", SideEffects: []string{"filesystem_read"}, Tier: 0},
	} {
		if got := TierOf(d.AID, d.SideEffects); got != d.Tier {
			t.Errorf("%s is of tier %d, want %d", d.AID, got, d.Tier)
		}
	}
}

// TestMoreEffectsNeverLowerTheTier: the order does not matter, and the tier of all is the highest
// of each.
func TestMoreEffectsNeverLowerTheTier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		aid := rapid.SampledFrom([]string{"AID.X.v1", "AID.SHELL.v1", "AID.FILE.WRITE.v1", "AID.GENESIS.v1"}).Draw(t, "aid")
		effects := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]string{"none", "read", "filesystem_write", "proc_exec", "library_load", "gpu_probe", "x"}),
			rapid.StringMatching("[a-z_]{0,12}"),
		)).Draw(t, "effects")
		want := TierOf(aid, nil)
		for _, e := range effects {
			want = max(want, TierOf("A", []string{e}))
		}
		got := TierOf(aid, rapid.Permutation(effects).Draw(t, "order"))
		if got != want || got < 0 || got > MaxTier {
			t.Fatalf("tier %d, want %d", got, want)
		}
	})
}
