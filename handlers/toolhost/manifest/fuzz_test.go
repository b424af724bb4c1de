package manifest

import (
	"path/filepath"
	"strings"
	"testing"

	"trunkline/codec/jsonx"
	"trunkline/handlers/toolhost/tool"
)

// FuzzParse: whatever a manifest states, what is accepted keeps to the bounds that the rest of the
// server relies on.
func FuzzParse(f *testing.F) {
	f.Add([]byte(declared(``)))
	f.Add([]byte(declared(`,"tier":2,"side_effects":["network"],"exec":{"kind":"builtin","name":"AID.NOOP.v1"}`)))
	f.Add([]byte(run(`{"kind":"process","mode":"serve","command":["./x"],"cwd":"sub","env":{"A":"1"},"pool":{"min":1,"max":2,"idle_ms":5,"max_requests":9}}`)))
	f.Add([]byte(run(`{"kind":"process","command":["x"],"state":"none","timeout_ms":1,"limits":{"as_mb":1,"cpu_s":1,"fsize_mb":1,"nofile":1}}`)))
	f.Add([]byte(run(`{"kind":"wasm","module":"m.wasm","sha256":"` + sum + `"}`)))
	f.Add([]byte(`{"tools":[[[]]]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, why := parse(text, "/packs")
		if (why == "") == (len(entries) == 0) {
			t.Fatalf("%d entries and %q", len(entries), why)
		}
		if why == "" && !jsonx.Check(text, maxDepth).OK() {
			t.Fatal("accepted what is no JSON")
		}
		for _, e := range entries {
			checkEntry(t, e)
		}
	})
}

func checkEntry(t *testing.T, e Entry) {
	t.Helper()
	if !strings.HasPrefix(e.AID, "AID.") || len(e.AID) > maxAID || len(e.Tags) == 0 || len(e.SideEffects) == 0 || e.ReplayInputs == nil {
		t.Errorf("descriptor %+v", e.Descriptor)
	}
	if e.Tier < tool.TierOf(e.AID, e.SideEffects) || e.Tier > tool.MaxTier || e.External != e.Exec.Kind.External() {
		t.Errorf("tier of %+v", e.Descriptor)
	}
	x := e.Exec
	if x.Timeout < 0 || x.Timeout > maxTimeout || len(x.SHA256)%64 != 0 || x.SHA256 != strings.ToLower(x.SHA256) {
		t.Errorf("exec %+v", x)
	}
	switch x.Kind {
	case Process:
		p, l, most := x.Pool, x.Limits, defaultLimits()
		if p.Min < 0 || p.Min > p.Max || p.Max < 1 || p.Max > maxPool || p.Idle < 0 || p.Idle > maxIdle || p.MaxRequests < 1 {
			t.Errorf("pool %+v", p)
		}
		if min(l.AddressSpace, l.CPU, l.FileSize, l.OpenFiles) < 1 || l.AddressSpace > most.AddressSpace || l.CPU > most.CPU || l.FileSize > most.FileSize || l.OpenFiles > most.OpenFiles {
			t.Errorf("limits %+v", l)
		}
		if x.Command[0] == "" || strings.Contains(x.Command[0], "/") != filepath.IsAbs(x.Command[0]) || !filepath.IsAbs(x.Dir) {
			t.Errorf("command %q in %q", x.Command, x.Dir)
		}
	case Wasm:
		if !filepath.IsAbs(x.Module) {
			t.Errorf("module %q", x.Module)
		}
	default:
		if !strings.HasPrefix(x.Builtin, "AID.") {
			t.Errorf("built-in %q", x.Builtin)
		}
	}
}
