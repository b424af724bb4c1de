package kernel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// brief shortens recorded events to what the model predicts.
func brief(t *rapid.T, events []string) (short []string) {
	for _, e := range events {
		name, payload, _ := strings.Cut(e, " ")
		var p struct {
			PID string `json:"pid"`
			Old string `json:"old_state"`
			New string `json:"new_state"`
		}
		if err := json.Unmarshal([]byte(payload), &p); err != nil {
			t.Fatalf("event %s: %v", e, err)
		}
		s := name + " " + p.PID
		if p.Old != "" {
			s += " " + p.Old + " " + p.New
		}
		short = append(short, s)
	}
	return short
}

// same compares an outcome with the model's; every value has a printable form.
func same(t *rapid.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("%s: got %s, want %s", what, g, w)
	}
}

func TestKernelAgainstModel(t *testing.T) {
	t.Run("lease", func(t *testing.T) { againstModel(t, 30*time.Second) })
	t.Run("noLease", func(t *testing.T) { againstModel(t, 0) })
}

func againstModel(t *testing.T, lease time.Duration) {
	cfg := Config{
		MaxProcesses:      6,
		MaxRateLimitUsers: 2,
		DequeueLease:      lease,
		ProcessRetention:  time.Minute,
		Defaults:          BuiltinQuota(),
	}
	cfg.Defaults[RateLimitRPH], cfg.Defaults[RateLimitRPM], cfg.Defaults[RateLimitBurst] = 14, 8, 5
	cfg.Defaults[TimeoutSeconds], cfg.Defaults[MaxLLMCalls] = 40, 3
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, cfg)
		m := newModel(cfg)
		m.nowMs = r.now.Mono / nsPerMs
		d := driver{r: r, m: m, cfg: cfg}
		rt.Repeat(map[string]func(*rapid.T){
			"create": d.create, "schedule": d.schedule, "next": d.next, "transition": d.transition, "start": d.next,
			"terminate": d.terminate, "usage": d.usage, "check": d.check, "rate": d.rate, "defaults": d.setDefaults,
			"wait": d.wait, "sweep": d.sweep, "list": d.list, "replay": d.replay, "": d.invariants,
		})
	})
}

type driver struct {
	r   *rig
	m   *model
	cfg Config
	out PCB
}

func pid(t *rapid.T) string {
	return rapid.SampledFrom(strings.Fields("a b c d e f g h")).Draw(t, "pid")
}
func user(t *rapid.T) string { return rapid.SampledFrom(strings.Fields("x y z")).Draw(t, "user") }

func (d *driver) create(t *rapid.T) {
	a := args(pid(t)+"/"+user(t), Priority(rapid.IntRange(0, NumPriorities-1).Draw(t, "priority")))
	a.NoSchedule = rapid.Bool().Draw(t, "noSchedule")
	if rapid.Bool().Draw(t, "quota") {
		a.Quota.Put(MaxToolCalls, rapid.Int32Range(0, 3).Draw(t, "tools"))
	}
	want, wantRate := d.m.create(string(a.PID), string(a.UserID), a.Priority, a.Quota, a.NoSchedule)
	got, gotRate := d.r.k.Create(d.r.now, a, &d.out)
	same(t, "create", got, want)
	same(t, "rate", gotRate, wantRate)
	if got == OK && (d.out.State != StateNew || d.out.Created != d.m.seq || string(d.out.RequestID) != "q"+string(a.PID)) {
		t.Fatalf("created %+v", d.out)
	}
}

func (d *driver) schedule(t *rapid.T) {
	p := pid(t)
	want := d.m.schedule(p)
	same(t, "schedule", d.r.k.Schedule(d.r.now, []byte(p), &d.out), want)
	d.sameOut(t, p, want)
}

func (d *driver) next(t *rapid.T) {
	start := rapid.Bool().Draw(t, "start")
	p, want := d.m.next(start)
	same(t, "next", d.r.k.Next(d.r.now, start, &d.out), want)
	if want == OK {
		d.sameOut(t, p, want)
	}
}

func (d *driver) transition(t *rapid.T) {
	p, to := pid(t), State(rapid.IntRange(0, NumStates-1).Draw(t, "to"))
	want := d.m.transition(p, to)
	same(t, "transition", d.r.k.Transition(d.r.now, []byte(p), nil, to, []byte("because"), &d.out), want)
	d.sameOut(t, p, want)
}

func (d *driver) terminate(t *rapid.T) {
	p := pid(t)
	want := d.m.terminate(p)
	same(t, "terminate", d.r.k.Terminate(d.r.now, []byte(p), nil, &d.out), want)
	d.sameOut(t, p, want)
}

// sameOut compares the snapshot of p with the model, if there is one.
func (d *driver) sameOut(t *rapid.T, p string, res Result) {
	t.Helper()
	if res == NotFound {
		return
	}
	w := d.m.procs[p]
	same(t, "snapshot", []any{string(d.out.PID), string(d.out.UserID), string(d.out.SessionID), d.out.State, d.out.Priority, d.out.Usage,
		d.out.Created}, []any{w.pid, w.user, "s" + w.pid, w.state, w.prio, w.usage, w.created})
}

func (d *driver) usage(t *rapid.T) {
	p := pid(t)
	delta := Usage{LLMCalls: rapid.Int64Range(0, 2).Draw(t, "llm"), ToolCalls: rapid.Int64Range(0, 1).Draw(t, "tool"), TokensIn: 7}
	var total Usage
	got := d.r.k.RecordUsage(d.r.now, []byte(p), nil, &delta, &total)
	w := d.m.procs[p]
	if w == nil {
		same(t, "usage", got, NotFound)
		return
	}
	w.usage[LLMCalls] += delta[LLMCalls]
	w.usage[ToolCalls] += delta[ToolCalls]
	w.usage[TokensIn] += delta[TokensIn]
	same(t, "usage", []any{got, total}, []any{OK, w.usage})
}

func (d *driver) check(t *rapid.T) {
	p := pid(t)
	want, wantRes := d.m.check(p)
	var c QuotaCheck
	same(t, "check", d.r.k.CheckQuota(d.r.now, []byte(p), nil, &c), wantRes)
	same(t, "reason", string(c.AppendReason(nil, []byte(p))), want)
	if wantRes == OK {
		same(t, "usage", c.Usage, d.m.procs[p].usage)
	}
}

func (d *driver) rate(t *rapid.T) {
	u, record := user(t), rapid.Bool().Draw(t, "record")
	want := d.m.rate(u, record)
	same(t, "rate", d.r.k.CheckRate(d.r.now, []byte(u), record), want)
}

func (d *driver) setDefaults(t *rapid.T) {
	var p QuotaPatch
	p.Put(RateLimitRPM, rapid.Int32Range(0, 9).Draw(t, "rpm"))
	p.Put(RateLimitRPH, rapid.Int32Range(10, 16).Draw(t, "rph"))
	p.Put(MaxLLMCalls, rapid.Int32Range(0, 3).Draw(t, "llm"))
	for i, v := range p.Values {
		if v > 0 {
			d.m.defaults[i] = v
		}
	}
	d.m.tick()
	same(t, "defaults", d.r.k.SetDefaults(d.r.now, &p), d.m.defaults)
	same(t, "defaults", d.r.k.Defaults(), d.m.defaults)
}

func (d *driver) wait(t *rapid.T) {
	ms := rapid.OneOf(rapid.Int64Range(1, 3000), rapid.SampledFrom([]int64{9999, 10000, 10001, 29999, 30000, 60000, 60001, 3600000, 3600001})).Draw(t, "ms")
	d.r.after(time.Duration(ms) * time.Millisecond)
	d.m.nowMs += ms
}

func (d *driver) sweep(t *rapid.T) {
	gz, gr, gl := d.r.k.Sweep(d.r.now)
	wz, wr, wl := d.m.sweep()
	same(t, "sweep", []int{gz, gr, gl}, []int{wz, wr, wl})
}

func (d *driver) list(t *rapid.T) {
	f := ListFilter{Cursor: rapid.Uint64Range(0, d.m.seq+1).Draw(t, "cursor")}
	if rapid.Bool().Draw(t, "byState") {
		f.HasState, f.State = true, State(rapid.IntRange(0, NumStates-1).Draw(t, "state"))
	}
	if rapid.Bool().Draw(t, "byUser") {
		f.UserID = []byte(user(t))
	}
	limit := rapid.IntRange(1, 8).Draw(t, "limit")
	var got, want []string
	d.r.k.List(&f, func(p *PCB) bool {
		got = append(got, string(p.PID)+" "+p.State.String())
		return len(got) < limit
	})
	for _, p := range d.m.all(func(p *mproc) bool {
		return p.created > f.Cursor && (!f.HasState || p.state == f.State) && (f.UserID == nil || p.user == string(f.UserID))
	}, func(p *mproc) uint64 { return p.created }) {
		if len(want) < limit {
			want = append(want, p.pid+" "+p.state.String())
		}
	}
	same(t, "list", got, want)
}

func (d *driver) replay(t *rapid.T) {
	cfg := d.cfg
	cfg.Shards = 128
	k := d.r.replayed(cfg)
	if k.stateDigest() != d.r.k.stateDigest() {
		t.Fatalf("replay gives another state")
	}
}

func (d *driver) invariants(t *rapid.T) {
	d.m.tick()
	c := d.r.k.Counts(d.r.now)
	var want Counts
	for _, p := range d.m.procs {
		want.ByState[p.state]++
		want.Total++
	}
	want.QueueDepth = int64(len(d.m.runnable()))
	same(t, "counts", c, want)
	same(t, "len", d.r.k.Len(), len(d.m.procs))
	same(t, "logs", d.r.k.rates.live.Load(), len(d.m.logs))
	if diff := cmp.Diff(d.m.events, brief(t, d.r.events)); diff != "" {
		t.Fatalf("events: %s", diff)
	}
	d.m.events, d.r.events = nil, nil
}
