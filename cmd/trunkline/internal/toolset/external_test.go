package toolset

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/handlers/toolhost"
	"trunkline/handlers/toolhost/manifest"
)

// script is a worker: it reports what it sees, dies, or outlives the end of its input, as its
// request has it.
const script = `while read -r line; do
	case "$line" in
	*die*) exit 3;;
	*hang*) sleep 1000;;
	*stay*) stay=1;;
	esac
	printf '{"status":"OK","output_json":"{\\"pid\\":%s,\\"root\\":\\"%s\\",\\"token\\":\\"%s\\",\\"own\\":\\"%s\\",\\"dir\\":\\"%s\\",\\"files\\":\\"%s\\",\\"memory\\":\\"%s\\",\\"cpu\\":\\"%s\\"}"}\n' \
		$$ "$MACHINA_ROOT" "$MACHINA_API_TOKEN$MACHINA_OPERATOR_TOKEN" "$OWN" "$(pwd -P)" "$(ulimit -n)" "$(ulimit -v)" "$(ulimit -t)"
done
[ -z "$stay" ] || sleep 1000
`

// seen is what the script reports.
type seen struct {
	PID                                       int
	Root, Token, Own, Dir, Files, Memory, CPU string
}

func parse(t *testing.T, reply string) (v seen) {
	t.Helper()
	var r struct {
		Output string `json:"output_json"`
	}
	if err := json.Unmarshal([]byte(reply), &r); err != nil || json.Unmarshal([]byte(r.Output), &v) != nil || v.PID == 0 {
		t.Fatalf("%v: %s", err, reply)
	}
	return v
}

// scripted returns a manifest with tools of the script.
func scripted(t *testing.T, tools ...string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "w.sh", script)
	return write(t, dir, "m.json", manifestOf(tools...))
}

// alive reports whether a process is there; a zombie counts.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// TestWorkerEnvironment: a worker works below the root of the other tools, and is shown no token
// (toolhost §4.9).
func TestWorkerEnvironment(t *testing.T) {
	clean(t)
	t.Setenv("MACHINA_API_TOKEN", "a")
	t.Setenv("MACHINA_OPERATOR_TOKEN", "o")
	path := scripted(t, worker("AID.EXT.v1", "w.sh", `,"env":{"OWN":"mine","MACHINA_API_TOKEN":"x"}`))
	root := t.TempDir()
	t.Chdir(filepath.Dir(root))
	f := func(option, env, want string) {
		t.Helper()
		t.Setenv("MACHINA_ROOT", env)
		o := plain(path)
		o.Root = option
		s := open(t, o)
		if got := parse(t, s.run("AID.EXT.v1", "{}")); got.Root != want || got.Token != "" || got.Own != "mine" {
			t.Errorf("%q over %q: %+v, want %s", option, env, got, want)
		}
		s.Close()
	}
	f("", "", "")
	f("", root, root)
	f("", filepath.Base(root), root)
	f(root, "", root)
	f(filepath.Base(root), "elsewhere", root)
}

// TestExecReachesTheWorker: what a manifest holds for its process is what the process gets.
func TestExecReachesTheWorker(t *testing.T) {
	clean(t)
	path := scripted(t,
		worker("AID.PLAIN.v1", "w.sh", ``),
		worker("AID.SET.v1", "../w.sh", `,"cwd":"sub","limits":{"as_mb":512,"cpu_s":7,"nofile":32}`),
		strings.Replace(worker("AID.ONCE.v1", "w.sh", `,"limits":{"cpu_s":7}`), `"mode":"serve"`, `"mode":"oneshot"`, 1),
		worker("AID.HASH.v1", "w.sh", `,"sha256":"`+strings.Repeat("0", 64)+`"`),
		worker("AID.LATE.v1", "w.sh", `,"timeout_ms":200`),
		declare("AID.WASM.v1", `,"exec":{"kind":"wasm","module":"none.wasm"}`),
		declare("AID.WASM.HASH.v1", `,"exec":{"kind":"wasm","module":"w.sh","sha256":"`+strings.Repeat("0", 64)+`"}`))
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, plain(path))
	f := func(aid, wantDir, files, memory string) seen {
		t.Helper()
		v := parse(t, s.run(aid, "{}"))
		if v.Dir != wantDir || v.Files != files || v.Memory != memory {
			t.Errorf("%s: %+v", aid, v)
		}
		return v
	}
	a := f("AID.PLAIN.v1", dir, "64", strconv.Itoa(1<<20))
	f("AID.SET.v1", filepath.Join(dir, "sub"), "32", strconv.Itoa(512<<10))
	if b := f("AID.PLAIN.v1", dir, "64", strconv.Itoa(1<<20)); b.PID != a.PID {
		t.Error("a worker was not used again")
	}
	once := f("AID.ONCE.v1", dir, "64", strconv.Itoa(1<<20))
	if again := f("AID.ONCE.v1", dir, "64", strconv.Itoa(1<<20)); again.PID == once.PID || once.CPU != "7" {
		t.Errorf("%+v, then %+v", once, again)
	}
	fails := func(aid, request, kind, detail string) {
		t.Helper()
		if got := s.run(aid, request); !strings.Contains(got, `"type":"`+kind+`"`) || !strings.Contains(got, detail) {
			t.Errorf("%s: %s", aid, got)
		}
	}
	fails("AID.HASH.v1", "{}", "not_found", "hash mismatch")
	fails("AID.LATE.v1", `{"inputs":{"x":"hang"}}`, "timeout", "timed out")
	fails("AID.WASM.v1", "{}", "not_found", "none.wasm")
	fails("AID.WASM.HASH.v1", "{}", "not_found", "hash mismatch")
}

// TestEntries: what a server needs to know of a tool beside what its manifest holds.
func TestEntries(t *testing.T) {
	clean(t)
	path := scripted(t, worker("AID.EXT.v1", "w.sh", `,"timeout_ms":1234`), worker("AID.PLAIN.v1", "w.sh", ""), declare("AID.NOOP.v1", ""), declare("AID.FILE.READ.v1", ""),
		declare("AID.WASM.v1", `,"exec":{"kind":"wasm","module":"m.wasm","timeout_ms":600000}`))
	entries, _, err := manifest.LoadAll([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	s, o := open(t, plain()), plain()
	list, err := s.bind(&o, entries, false)
	if err != nil || len(list) != 5 {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	f := func(e *toolhost.Entry, aid string, external, fast bool, timeout time.Duration) {
		t.Helper()
		if e.AID != aid || e.External != external || e.Fast != fast || e.Timeout != timeout || (e.Breaker != nil) != external || e.Tool == nil {
			t.Errorf("%+v", e)
		}
	}
	f(&list[0], "AID.EXT.v1", true, false, 1234*time.Millisecond)
	f(&list[1], "AID.PLAIN.v1", true, false, 0)
	f(&list[2], "AID.NOOP.v1", false, true, 0)
	f(&list[3], "AID.FILE.READ.v1", false, false, 0)
	f(&list[4], "AID.WASM.v1", true, false, 600*time.Second)
}

// TestBreakerTrips: the breaker of a tool is the one that the options describe, and reports what it
// does.
func TestBreakerTrips(t *testing.T) {
	clean(t)
	t.Setenv("MACHINA_TOOL_FAIL_THRESHOLD", "2")
	t.Setenv("MACHINA_TOOL_COOLDOWN_MS", "3600000")
	path := scripted(t, worker("AID.EXT.v1", "w.sh", ""), worker("AID.OTHER.v1", "w.sh", ""))
	f := func(o Options, wantEvents string, wants ...string) {
		t.Helper()
		var h heard
		o.Plugins, o.Events = []string{path}, h.hear
		k := open(t, o).talk(t, nil)
		for i, want := range wants {
			input := "die"
			if want == "OK" {
				input = "live"
			}
			if got := status(t, k.ask(`{"aid":"AID.EXT.v1","inputs":{"x":"`+input+`"}}`)); got != want {
				t.Errorf("call %d: %s, want %s", i+1, got, want)
			}
		}
		if got := status(t, k.ask(`{"aid":"AID.OTHER.v1"}`)); got != "OK" {
			t.Errorf("the breaker of one tool trips another: %s", got)
		}
		if got := strings.Join(h.take(".breaker."), "; "); got != wantEvents {
			t.Errorf("events %s, want %s", got, wantEvents)
		}
	}
	event := func(what string, n int) string {
		return fmt.Sprintf(`toolhost.breaker.%s {"aid":"AID.EXT.v1","failures":%d}`, what, n)
	}
	const broken, trip = "TOOL_ERROR toolhost exit 3:", "BREAKER_TRIP circuit breaker open for AID.EXT.v1"
	f(plain(), event("opened", 2), broken, broken, trip, trip)
	f(plain(), "", broken, "OK", broken, "OK")
	f(Options{BreakerThreshold: 1, BreakerCooldown: -1}, event("opened", 1), broken, trip)
	f(Options{BreakerThreshold: 0, BreakerCooldown: 0}, strings.Join([]string{event("opened", 1), event("half_open", 1), event("opened", 2),
		event("half_open", 2), event("closed", 0)}, "; "), broken, broken, "OK")
	f(Options{BreakerThreshold: 3, BreakerCooldown: time.Hour}, event("opened", 3), broken, broken, broken, trip)
}

// TestCloseEndsWorkers: idle ones, busy ones, and those that do not end by themselves; what they
// started with them.
func TestCloseEndsWorkers(t *testing.T) {
	clean(t)
	var h heard
	o := plain(scripted(t, worker("AID.IDLE.v1", "w.sh", ""), worker("AID.BUSY.v1", "w.sh", ""), worker("AID.STAY.v1", "w.sh", "")))
	o.Events = h.hear
	s := open(t, o)
	idle := parse(t, s.run("AID.IDLE.v1", "{}")).PID
	stay := parse(t, s.run("AID.STAY.v1", `{"inputs":{"x":"stay"}}`)).PID
	reply := make(chan string, 1)
	go func() { reply <- s.run("AID.BUSY.v1", `{"inputs":{"x":"hang"}}`) }()
	for len(h.take("worker.started")) < 3 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	s.Close()
	if got := <-reply; !strings.Contains(got, `"type":"crash"`) && !strings.Contains(got, `"type":"exception"`) {
		t.Errorf("a call that ran: %s", got)
	}
	exits := h.take("worker.exited")
	if len(exits) != 3 {
		t.Fatalf("%d of 3 workers ended: %v", len(exits), exits)
	}
	for _, e := range exits {
		if !strings.HasSuffix(e, `"reason":"closed"}`) {
			t.Error(e)
		}
	}
	for _, e := range h.take("worker.started") {
		var w struct {
			AID string
			PID int
		}
		_, payload, _ := strings.Cut(e, " ")
		if err := json.Unmarshal([]byte(payload), &w); err != nil || w.AID == "" || w.PID == 0 || alive(w.PID) {
			t.Errorf("%s: %v, alive %v", e, err, alive(w.PID))
		}
	}
	if alive(idle) || alive(stay) {
		t.Error("a worker outlives its set")
	}
	if got := s.run("AID.IDLE.v1", "{}"); !strings.Contains(got, "the tool is closed") {
		t.Errorf("a call after Close: %s", got)
	}
}

// TestTwoSets share nothing, though they have the same plugins.
func TestTwoSets(t *testing.T) {
	clean(t)
	path := scripted(t, worker("AID.EXT.v1", "w.sh", ""))
	a, b := open(t, Options{Plugins: []string{path}, BreakerCooldown: time.Hour}), open(t, Options{Plugins: []string{path}})
	one, two := parse(t, a.run("AID.EXT.v1", "{}")), parse(t, b.run("AID.EXT.v1", "{}"))
	if one.PID == two.PID {
		t.Error("one worker for two sets")
	}
	if got := status(t, a.talk(t, nil).ask(`{"aid":"AID.EXT.v1","inputs":{"x":"die"}}`)); got != "TOOL_ERROR toolhost exit 3:" {
		t.Error(got)
	}
	a.Close()
	if again := parse(t, b.run("AID.EXT.v1", "{}")); again.PID != two.PID {
		t.Error("the end of one set cost the other a worker")
	}
	if got := status(t, b.talk(t, func(c *toolhost.Config) { c.ToolTimeout = time.Minute }).ask(`{"aid":"AID.EXT.v1"}`)); got != "OK" {
		t.Errorf("the breaker of the other set is open: %s", got)
	}
}
