package kernel

import (
	"math"
	"runtime"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for i, name := range strings.Fields("NEW READY RUNNING WAITING BLOCKED TERMINATED ZOMBIE UNKNOWN") {
		f(State(i).String(), name)
	}
	for i, name := range strings.Fields("REALTIME HIGH NORMAL LOW IDLE UNKNOWN") {
		f(Priority(i).String(), name)
	}
	for i, name := range strings.Fields("process.created process.state_changed process.terminated resource.exhausted unknown") {
		f(EventKind(i).String(), name)
	}
	f(MaxLLMCalls.String(), "max_llm_calls")
	f(MaxInferenceInputChars.String(), "max_inference_input_chars")
	f(QuotaField(NumQuotaFields).String(), "unknown")
	f(QuotaField(-1).String(), "unknown")
	f(NoRunnable.String(), "no runnable")
	f(Result(99).String(), "unknown")
	f(Window(9).String(), "")
	f(ChangeRateDrop.String(), "rate_drop")
	f(ChangeKind(0).String(), "unknown")
}

func TestParseNames(t *testing.T) {
	state := func(in string, want State, ok bool) {
		t.Helper()
		if got, gotOK := ParseState([]byte(in)); got != want || gotOK != ok {
			t.Errorf("state %q: got %v %v", in, got, gotOK)
		}
	}
	state("NEW", StateNew, true)
	state("running", Running, true)
	state("zOmBiE", Zombie, true)
	state("", 0, false)
	state("FOO", 0, false)
	state("READY ", 0, false)
	state("RE\x01DY", 0, false)
	priority := func(in string, want Priority, ok bool) {
		t.Helper()
		if got, gotOK := ParsePriority([]byte(in)); got != want || gotOK != ok {
			t.Errorf("priority %q: got %v %v", in, got, gotOK)
		}
	}
	priority("realtime", Realtime, true)
	priority("Idle", Idle, true)
	priority("urgent", 0, false)
	priority("", 0, false)
}

// TestTransitionTable spells out kernel-ipc §5.1: every pair not listed is refused.
func TestTransitionTable(t *testing.T) {
	table := map[State]string{
		StateNew: "READY TERMINATED", Ready: "RUNNING TERMINATED", Running: "READY WAITING BLOCKED TERMINATED",
		Waiting: "READY TERMINATED", Blocked: "READY TERMINATED", Terminated: "ZOMBIE", Zombie: "",
	}
	paths := map[State][]State{StateNew: nil, Ready: {Ready}, Running: {Ready, Running}, Waiting: {Ready, Running, Waiting},
		Blocked: {Ready, Running, Blocked}, Terminated: {Terminated}, Zombie: {Terminated, Zombie}}
	for from := range State(NumStates) {
		for to := range State(NumStates) {
			r := newRig(t, Config{})
			a := args("p", Normal)
			a.NoSchedule = true
			r.k.Create(r.now, a, nil)
			for _, s := range paths[from] {
				r.to("p", s, OK)
			}
			r.takeEvents()
			want := BadTransition
			if strings.Contains(table[from]+" ", to.String()+" ") {
				want = OK
			}
			var out PCB
			got := r.k.Transition(r.now, []byte("p"), nil, to, nil, &out)
			if got != want {
				t.Errorf("%v to %v: got %v, want %v", from, to, got, want)
			}
			if want == BadTransition && (out.State != from || r.state("p") != from.String() || r.takeEvents() != "") {
				t.Errorf("refused %v to %v: out %v, state %v", from, to, out.State, r.state("p"))
			}
			if want == OK && (out.State != to || r.state("p") != to.String()) {
				t.Errorf("%v to %v: out %v, state %v", from, to, out.State, r.state("p"))
			}
		}
	}
	if State(9).CanBecome(Ready) || Ready.CanBecome(State(9)) {
		t.Error("unknown states can become something")
	}
}

func TestUsageSaturates(t *testing.T) {
	f := func(a, b, want int64) {
		t.Helper()
		if got := saturate(a, b); got != want {
			t.Errorf("%d + %d: got %d, want %d", a, b, got, want)
		}
	}
	f(1, 2, 3)
	f(math.MaxInt64, 0, math.MaxInt64)
	f(math.MaxInt64-1, 1, math.MaxInt64)
	f(math.MaxInt64-1, 2, math.MaxInt64)
	f(math.MaxInt64, math.MaxInt64, math.MaxInt64)
	f(5, -1, 5)
}

func TestConfigDefaults(t *testing.T) {
	f := func(shards, processes, wantShards, wantProcesses int) {
		t.Helper()
		got := Config{Shards: shards, MaxProcesses: processes}.withDefaults()
		if got.Shards != wantShards || got.MaxProcesses != wantProcesses {
			t.Errorf("shards %d processes %d: got %d %d", shards, processes, got.Shards, got.MaxProcesses)
		}
	}
	auto := Config{Shards: shardsPerCPU * runtime.GOMAXPROCS(0)}.withDefaults().Shards
	f(0, 0, auto, 1000000)
	f(1, 5, 64, 5)
	f(65, -5, 128, 1000000)
	f(1<<20, 1<<30, 4096, 1<<20-1)
	f(64, 1<<30, 64, 1<<26-1)
	c := Config{DequeueLease: -1, ProcessRetention: -1, MaxRateLimitUsers: -1}.withDefaults()
	if c.DequeueLease != 0 || c.ProcessRetention != 0 || c.MaxRateLimitUsers != 100000 || c.Defaults != BuiltinQuota() {
		t.Errorf("got %+v", c)
	}
}
