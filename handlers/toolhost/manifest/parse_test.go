package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trunkline/handlers/toolhost/tool"
	"trunkline/handlers/toolhost/workerexec"
)

const (
	packHead = `{"toolpack_id":"toolpack.t-1_a.b","toolpack_version":"1.0","trust_tier":"tier0_builtin","tools":[`
	common   = `"name":"n","deterministic":false,"tags":["tag.t"],"estimate_model":{"mode":"InfinityBound"},"inputs_schema":{},"outputs_schema":{}`
	sum      = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
)

// declared is a manifest of one tool with further members.
func declared(more string) string { return packHead + `{"aid":"AID.T.v1",` + common + more + `}]}` }

// run is a manifest of one tool without side effects and with that exec.
func run(exec string) string { return declared(`,"side_effects":["none"],"exec":` + exec) }

func TestParse(t *testing.T) {
	f := func(text string, want Entry) {
		t.Helper()
		got, why := parse([]byte(text), "/packs")
		if why != "" {
			t.Errorf("%s: %s", text, why)
			return
		}
		if diff := cmp.Diff([]Entry{want}, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	d := tool.Descriptor{AID: "AID.T.v1", Name: "n", Tags: []string{"tag.t"}, SideEffects: []string{"none"}, ReplayInputs: []string{}}
	f(declared(``), Entry{Descriptor: d, Exec: Exec{Kind: Declared, Builtin: "AID.T.v1"}})
	f(declared(`,"x":1,"exec":{"kind":"builtin","name":"AID.NOOP.v1"}`), Entry{Descriptor: d, Exec: Exec{Kind: Builtin, Builtin: "AID.NOOP.v1"}})

	d.External = true
	p := Exec{Kind: Process, Command: []string{"python3", "-u", ""}, Oneshot: true, Dir: "/packs", Pool: tool.DefaultPool(), Limits: defaultLimits()}
	f(run(`{"kind":"process","command":["python3","-u",""]}`), Entry{Descriptor: d, Exec: p})
	f(run(`{"kind":"process","mode":"serve","command":["bin/../x","./a"],"cwd":"sub","state":"none","timeout_ms":600000,"env":{"A":"1","B":"x=y"},
		"pool":{"min":2,"max":64,"idle_ms":0,"max_requests":1},"limits":{"as_mb":1,"cpu_s":30,"fsize_mb":10,"nofile":63},"sha256":"`+sum+`"}`),
		Entry{Descriptor: d, Exec: Exec{Kind: Process, Command: []string{"/packs/x", "./a"}, Dir: "/packs/sub", Env: []string{"A=1", "B=x=y"},
			Pool: tool.Pool{Min: 2, Max: 64, MaxRequests: 1}, Stateless: true, Limits: workerexec.Limits{AddressSpace: mebibyte, CPU: 30, FileSize: 10 * mebibyte, OpenFiles: 63},
			Timeout: 10 * time.Minute, SHA256: strings.ToLower(sum)}})
	f(run(`{"kind":"process","command":["/bin/x"],"cwd":"/tmp","mode":"oneshot","state":"snapshot"}`),
		Entry{Descriptor: d, Exec: Exec{Kind: Process, Command: []string{"/bin/x"}, Dir: "/tmp", Oneshot: true, Pool: tool.DefaultPool(), Limits: defaultLimits()}})
	f(run(`{"kind":"wasm","module":"m.wasm","timeout_ms":1}`),
		Entry{Descriptor: d, Exec: Exec{Kind: Wasm, Module: "/packs/m.wasm", Timeout: time.Millisecond}})
}

func TestTier(t *testing.T) {
	f := func(trust, more string, want int) {
		t.Helper()
		text := strings.Replace(declared(more), "tier0_builtin", trust, 1)
		got, why := parse([]byte(text), "/")
		if why != "" || got[0].Tier != want {
			t.Errorf("%s: tier of %+v, want %d (%s)", text, got, want, why)
		}
	}
	f("tier0_builtin", ``, 0)
	f("tier0_builtin", `,"tier":3`, 3)
	f("tier0_builtin", `,"tier":0,"side_effects":["network"]`, 2)
	f("tier0_builtin", `,"tier":1,"side_effects":["none","filesystem_write"]`, 1)
	f("tier2_untrusted", ``, 2)
	f("tier2_untrusted", `,"tier":3`, 3)
	f("tier1_signed", `,"tier":1`, 1) // not external: nothing to be hashed
}

func TestParseRefuses(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got, why := parse([]byte(text), "/"); why != want || got != nil {
			t.Errorf("%s: %q, want %q", text, why, want)
		}
	}
	swap := func(old, to string) string {
		if !strings.Contains(declared(``), old) {
			t.Fatalf("nothing to replace: %s", old)
		}
		return strings.Replace(declared(``), old, to, 1)
	}
	f(``, "invalid JSON: unexpected end of input at offset 0")
	f(`{}x`, "invalid JSON: unexpected character 'x' after the value at offset 2")
	f(`{"a":"`+"\xff"+`"}`, "invalid JSON: invalid UTF-8 at offset 6")
	f(`[]`, "must be an object")
	f(`null`, "must be an object")
	f(`{"tools":[],"tools":[]}`, "duplicate key: tools")
	f(`{}`, "toolpack_id: must be a string")
	f(swap(`"toolpack.t`, `"toolpack.T`), `toolpack_id: must match ^toolpack\.[a-z0-9_\-\.]+$`)
	f(swap(`.b"`, `.b\n"`), `toolpack_id: must match ^toolpack\.[a-z0-9_\-\.]+$`)
	f(swap(`"1.0"`, `1`), "toolpack_version: must be a string")
	f(swap(`tier0_builtin`, `tier0`), "trust_tier: must be one of tier0_builtin, tier1_signed, tier2_untrusted")
	f(swap(`"tools":[`, `"tools":1,"x":[`), "tools: must be an array")
	f(packHead+`]}`, "tools: must not be empty")
	f(packHead+`7]}`, "tools[0]: must be an object")
	f(packHead+`null]}`, "tools[0]: must be an object")
	f(swap(`AID.T.v1`, `AID.t.v1`), `tools[0].aid: must match ^AID\.[A-Z0-9_\-\.]+\.v\d+$`)
	f(swap(`AID.T.v1`, `AID.T.v1 `), `tools[0].aid: must match ^AID\.[A-Z0-9_\-\.]+\.v\d+$`)
	f(swap(`AID.T.v1`, `AID.`+strings.Repeat("T", 250)+`.v1`), "tools[0].aid: longer than 256 bytes")
	f(swap(`"name"`, `"aid":"AID.T.v1","name"`), "duplicate key: tools[0].aid")
	f(swap(`"name":"n",`, ``), "tools[0].name: must be a string")
	f(swap(`false`, `0`), "tools[0].deterministic: must be a boolean")
	f(swap(`["tag.t"]`, `[]`), "tools[0].tags: must not be empty")
	f(swap(`["tag.t"]`, `["tag.t",1]`), "tools[0].tags: must be an array of strings")
	f(swap(`["tag.t"]`, `"tag.t"`), "tools[0].tags: must be an array of strings")
	f(swap(`{"mode":"InfinityBound"}`, `{"mode":"x"}`), "tools[0].estimate_model.mode: must be one of ConservativeBound, InfinityBound")
	f(swap(`{"mode":"InfinityBound"}`, `[]`), "tools[0].estimate_model: must be an object")
	f(swap(`"inputs_schema":{}`, `"inputs_schema":true`), "tools[0].inputs_schema: must be an object")
	f(swap(`,"outputs_schema":{}`, ``), "tools[0].outputs_schema: must be an object")
	f(declared(`,"side_effects":[]`), "tools[0].side_effects: must not be empty")
	f(declared(`,"replay_inputs":{}`), "tools[0].replay_inputs: must be an array of strings")
	for _, tier := range []string{"-1", "4", "1.0", `"1"`, "null", "99999999999999999999"} {
		f(declared(`,"tier":`+tier), "tools[0].tier: must be an integer from 0 to 3")
	}
	two := `{"aid":"AID.T.v1",` + common + `}`
	f(packHead+two+`,`+two+`]}`, "duplicate aid in registry: AID.T.v1")
	f(packHead+two+`,`+strings.Replace(two, `"n"`, `1`, 1)+`]}`, "tools[1].name: must be a string")
}

func TestParseRefusesExec(t *testing.T) {
	f := func(exec, want string) {
		t.Helper()
		if got, why := parse([]byte(run(exec)), "/"); why != "tools[0].exec"+want || got != nil {
			t.Errorf("%s: %q, want %q", exec, why, "tools[0].exec"+want)
		}
	}
	f(`null`, ": must be an object")
	f(`{}`, ".kind: must be a string")
	f(`{"kind":"native"}`, ".kind: must be one of builtin, process, wasm")
	f(`{"kind":"builtin"}`, ".name: must be a string")
	f(`{"kind":"builtin","name":"noop"}`, `.name: must match ^AID\.[A-Z0-9_\-\.]+\.v\d+$`)
	f(`{"kind":"builtin","name":"AID.NOOP.v1","timeout_ms":5}`, ".timeout_ms: unknown member")
	f(`{"kind":"wasm","module":"m","command":["x"]}`, ".command: unknown member")
	f(`{"kind":"process","command":["x"],"modes":"serve"}`, ".modes: unknown member")
	f(`{"kind":"process","command":["x"],"`+strings.Repeat("a", 99)+`":1}`, "."+strings.Repeat("a", 64)+"...: unknown member")
	f(`{"kind":"process"}`, ".command: must be an array of strings")
	f(`{"kind":"process","command":[]}`, ".command: must not be empty")
	f(`{"kind":"process","command":[""]}`, ".command: not a command line")
	f(`{"kind":"process","command":["x","a\u0000"]}`, ".command: not a command line")
	f(`{"kind":"process","command":["x"],"mode":"daemon"}`, ".mode: must be one of serve, oneshot")
	f(`{"kind":"process","command":["x"],"state":"all"}`, ".state: must be one of snapshot, none")
	f(`{"kind":"process","command":["x"],"cwd":""}`, ".cwd: not a path")
	f(`{"kind":"process","command":["x"],"env":[]}`, ".env: must be an object")
	f(`{"kind":"process","command":["x"],"env":{"A":1}}`, ".env: A: must be a string")
	f(`{"kind":"process","command":["x"],"env":{"A=B":"1"}}`, ".env: not a name: A=B")
	f(`{"kind":"process","command":["x"],"env":{"A":"\u0000"}}`, ".env: A: not a value")
	f(`{"kind":"process","command":["x"],"pool":{"max":0}}`, ".pool.max: must be an integer from 1 to 64")
	f(`{"kind":"process","command":["x"],"pool":{"max":65}}`, ".pool.max: must be an integer from 1 to 64")
	f(`{"kind":"process","command":["x"],"pool":{"min":5}}`, ".pool.min: must be an integer from 0 to 4")
	f(`{"kind":"process","command":["x"],"pool":{"idle_ms":-1}}`, ".pool.idle_ms: must be an integer from 0 to 86400000")
	f(`{"kind":"process","command":["x"],"pool":{"max_requests":0}}`, ".pool.max_requests: must be an integer from 1 to 1073741824")
	f(`{"kind":"process","command":["x"],"pool":{"maxx":1}}`, ".pool.maxx: unknown member")
	f(`{"kind":"process","command":["x"],"limits":{"as_mb":1025}}`, ".limits.as_mb: must be an integer from 1 to 1024")
	f(`{"kind":"process","command":["x"],"limits":{"nofile":0}}`, ".limits.nofile: must be an integer from 1 to 64")
	f(`{"kind":"process","command":["x"],"limits":{"nproc":1}}`, ".limits.nproc: unknown member")
	f(`{"kind":"process","command":["x"],"timeout_ms":0}`, ".timeout_ms: must be an integer from 1 to 600000")
	f(`{"kind":"process","command":["x"],"timeout_ms":600001}`, ".timeout_ms: must be an integer from 1 to 600000")
	f(`{"kind":"process","command":["x"],"sha256":"`+sum[1:]+`"}`, ".sha256: must be 64 hex digits")
	f(`{"kind":"process","command":["x"],"sha256":"g`+sum[1:]+`"}`, ".sha256: must be 64 hex digits")
	f(`{"kind":"wasm"}`, ".module: must be a string")
	f(`{"kind":"wasm","module":""}`, ".module: not a path")
}

func TestExternalToolsMustSayWhatTheyDo(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if _, why := parse([]byte(text), "/"); why != want {
			t.Errorf("%s: %q, want %q", text, why, want)
		}
	}
	sure := func(text string) string {
		return strings.Replace(text, `"deterministic":false`, `"deterministic":true`, 1)
	}
	process := `,"exec":{"kind":"process","command":["x"]}`
	f(declared(process), "tools[0].side_effects: required")
	f(declared(`,"exec":{"kind":"wasm","module":"m"}`), "tools[0].side_effects: required")
	f(sure(run(`{"kind":"process","command":["x"]}`)), "")
	need := "tools[0].replay_inputs: required for a deterministic tool with side effects"
	f(sure(declared(`,"side_effects":["read"]`+process)), need)
	f(sure(declared(`,"side_effects":["read"],"replay_inputs":[]`+process)), need)
	f(sure(declared(`,"side_effects":["none","none"]`+process)), need)
	f(sure(declared(`,"side_effects":["read"],"replay_inputs":["f"]`+process)), "")
	f(declared(`,"side_effects":["read"]`+process), "")
	f(sure(declared(`,"side_effects":["read"]`)), "")

	signedPack := func(text string) string { return strings.Replace(text, "tier0_builtin", "tier1_signed", 1) }
	f(signedPack(run(`{"kind":"process","command":["x"]}`)), "tools[0].exec.sha256: required for tier1_signed")
	f(signedPack(run(`{"kind":"wasm","module":"x"}`)), "tools[0].exec.sha256: required for tier1_signed")
	f(signedPack(run(`{"kind":"wasm","module":"x","sha256":"`+sum+`"}`)), "")
	f(signedPack(declared(`,"exec":{"kind":"builtin","name":"AID.NOOP.v1"}`)), "")
}
