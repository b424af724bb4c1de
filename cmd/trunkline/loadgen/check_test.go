package loadgen

import (
	"math"
	"strings"
	"testing"
	"time"
)

// goodPlan is a plan that passes.
func goodPlan() Plan {
	return Plan{
		Target: Target{Protocol: ProtocolKernel, Addr: "127.0.0.1:1"}, Schedule: Schedule{To: 1000},
		Conns: 1, Depth: 1, Duration: time.Second, Timeout: time.Second, Interval: time.Second,
	}
}

func TestLimitsOfAPlan(t *testing.T) {
	f := func(want string, change func(p *Plan)) {
		t.Helper()
		p := goodPlan()
		change(&p)
		err := p.Check()
		switch {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), want)):
			t.Errorf("%v, want one with %q", err, want)
		}
	}
	f("", func(*Plan) {})
	f("", func(p *Plan) { p.Conns = maxConns })
	f("10001 connections", func(p *Plan) { p.Conns = maxConns + 1 })
	f("0 connections", func(p *Plan) { p.Conns = 0 })
	f("", func(p *Plan) { p.Depth = maxDepth })
	f("depth 1025", func(p *Plan) { p.Depth = maxDepth + 1 })
	f("depth 0", func(p *Plan) { p.Depth = 0 })
	f("", func(p *Plan) { p.Conns, p.Depth = maxInFlight/maxDepth, maxDepth })
	f("in flight", func(p *Plan) { p.Conns, p.Depth = maxInFlight/maxDepth+1, maxDepth })
	f("", func(p *Plan) { p.Schedule.To = MaxRate })
	f("rate 1.0000001e+07", func(p *Plan) { p.Schedule.To = MaxRate + 1 })
	f("rate 0", func(p *Plan) { p.Schedule.To = 0 })
	f("", func(p *Plan) { p.Schedule = Schedule{Kind: Ramp, To: 5} })
	f("from 0 to 0", func(p *Plan) { p.Schedule = Schedule{Kind: Ramp} })
	f("ramp from 1.0000001e+07 to 1", func(p *Plan) { p.Schedule = Schedule{Kind: Ramp, From: MaxRate + 1, To: 1} })
	f("schedule 3", func(p *Plan) { p.Schedule.Kind = 3 })
	f("", func(p *Plan) { p.Schedule = Schedule{Kind: Max} })
	f("", func(p *Plan) { p.Duration = MaxDuration })
	f("together at most", func(p *Plan) { p.Duration, p.Warmup = MaxDuration, 1 })
	f("duration 0s", func(p *Plan) { p.Duration = 0 })
	f("warm-up -1ns", func(p *Plan) { p.Warmup = -1 })
	f("", func(p *Plan) { p.Duration, p.Interval = MaxDuration, time.Millisecond })
	f("interval 0s", func(p *Plan) { p.Interval = 0 })
	f("", func(p *Plan) { p.Timeout = time.Duration(HighestLatency) })
	f("timeout 1h0m0.000000001s", func(p *Plan) { p.Timeout = time.Duration(HighestLatency) + 1 })
	f("timeout 0s", func(p *Plan) { p.Timeout = 0 })
	f("rate NaN", func(p *Plan) { p.Schedule.To = math.NaN() })
	f("rate +Inf", func(p *Plan) { p.Schedule.To = math.Inf(1) })
	f("rate -1", func(p *Plan) { p.Schedule.To = -1 })
	f("", func(p *Plan) { p.Schedule = Schedule{Kind: Ramp, From: MaxRate, To: MaxRate} })
	f("", func(p *Plan) { p.Schedule = Schedule{Kind: Ramp, From: 5} })
	f("ramp from 5 to -1", func(p *Plan) { p.Schedule = Schedule{Kind: Ramp, From: 5, To: -1} })
	f("", func(p *Plan) { p.Duration = 1 })
	f("duration -1ns", func(p *Plan) { p.Duration = -1 })
	f("", func(p *Plan) { p.Duration, p.Warmup = 1, MaxDuration-1 })
	f("together at most", func(p *Plan) { p.Duration, p.Warmup = 1, MaxDuration })
	f("", func(p *Plan) { p.Interval, p.Duration = time.Millisecond, time.Second })
	f("interval 999.999µs", func(p *Plan) { p.Interval = time.Millisecond - 1 })
	f("", func(p *Plan) { p.Timeout = time.Millisecond })
	f("timeout 999.999µs", func(p *Plan) { p.Timeout = time.Millisecond - 1 })
	f("", func(p *Plan) { p.Count = math.MaxInt64 })
	f("count -1", func(p *Plan) { p.Count = -1 })
	f("token", func(p *Plan) { p.Target.Token = "x" })
	f("", func(p *Plan) { p.Target.Protocol, p.Target.Token = ProtocolToolhost, "x" })
	f("without a token", func(p *Plan) { p.Target.Protocol = ProtocolThreads })
	threads := func(n int) func(p *Plan) {
		return func(p *Plan) { p.Target.Protocol, p.Target.Token, p.Conns, p.Threads = ProtocolThreads, "x", 4, n }
	}
	f("", threads(0))
	f("", threads(4))
	f("5 threads", threads(5))
	f("-1 threads", threads(-1))
	f("threads with protocol kernel", func(p *Plan) { p.Threads = 1 })
	f(`protocol "redis"`, func(p *Plan) { p.Target.Protocol = "redis" })
}

// TestOnlyCount: a plan without a bound of time has the longest one that passes, and shows that it
// has none.
func TestOnlyCount(t *testing.T) {
	f := func(warm, interval, want time.Duration) {
		t.Helper()
		p := goodPlan()
		p.Count, p.Warmup, p.Interval = 1, warm, interval
		if !p.Timed() {
			t.Errorf("%s is a bound", p.Duration)
		}
		p.OnlyCount()
		if err := p.Check(); err != nil || p.Duration != want || p.Timed() {
			t.Errorf("%s, timed %v, %v, want %s", p.Duration, p.Timed(), err, want)
		}
		if p.Duration++; p.Check() == nil {
			t.Errorf("%s passes", p.Duration)
		}
		p.Count, p.Duration = 0, want
		if !p.Timed() {
			t.Error("there is no other bound")
		}
	}
	f(0, time.Second, MaxDuration)
	f(2*time.Second, time.Second, MaxDuration-2*time.Second)
	f(2*time.Second, MaxDuration, MaxDuration-2*time.Second)
	p := goodPlan()
	p.Warmup = MaxDuration + 1
	if p.OnlyCount(); p.Duration != 1 || p.Check() == nil {
		t.Errorf("%s after a warm-up that is too long", p.Duration)
	}
}

func TestLimitsOfAMix(t *testing.T) {
	f := func(want, protocol string, mix ...Share) {
		t.Helper()
		p := goodPlan()
		p.Target.Protocol, p.Mix = protocol, mix
		switch protocol {
		case ProtocolHTTP:
			p.Target.Addr = "http://127.0.0.1:1"
		case ProtocolThreads:
			p.Target.Token = "x"
		}
		err := p.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	many := make([]Share, maxShares+1)
	for i := range many {
		many[i] = Share{Name: strings.Repeat("x", i+1), Weight: 1}
	}
	f("", ProtocolToolhost, many[:maxShares]...)
	f("65 methods", ProtocolToolhost, many...)
	f("", ProtocolToolhost, Share{Name: "a", Weight: maxWeight})
	f("weight 1000001", ProtocolToolhost, Share{Name: "a", Weight: maxWeight + 1})
	f("weight 0", ProtocolToolhost, Share{Name: "a"})
	f("twice", ProtocolKernel, Share{Name: "GetProcess", Weight: 1}, Share{Name: "kernel.GetProcess", Weight: 1})
	f("opens a stream", ProtocolKernel, Share{Name: "commbus.Subscribe", Weight: 1, Body: []byte("{}")})
	f("without a body", ProtocolKernel, Share{Name: "orchestration.ReportAgentResult", Weight: 1})
	f("JSON object", ProtocolKernel, Share{Name: "x", Weight: 1, Body: []byte("[]")})
	f("JSON", ProtocolToolhost, Share{Name: "x", Weight: 1, Body: []byte("{")})
	f("JSON", ProtocolHTTP, Share{Name: "x", Weight: 1, Body: []byte("{")})
	f("{{pid}}", ProtocolHTTP, Share{Name: "x", Weight: 1, Body: []byte(`{"a":"{{pid}}"}`)})
	f("{{thread}}", ProtocolKernel, Share{Name: "x", Weight: 1, Body: []byte(`{"a":"{{thread}}"}`)})
	f("{{pid}}", ProtocolThreads, Share{Name: "x", Weight: 1, Body: []byte(`{"a":"{{pid}}"}`)})
	f("JSON object", ProtocolExacta, Share{Name: "x", Weight: 1, Body: []byte("[]")})
	f("{{project}}", ProtocolThreads, Share{Name: "x", Weight: 1, Body: []byte(`{"a":"{{project}}"}`)})
	f("{{root}}", ProtocolToolhost, Share{Name: "x", Weight: 1, Body: []byte(`{"a":"{{root}}"}`)})
	f("JSON object", ProtocolThreads, Share{Name: "x", Weight: 1, Body: []byte("[]")})
	f("without a body", ProtocolThreads, Share{Name: "create_thread", Weight: 1})
	f("method", ProtocolHTTP, Share{Weight: 1})
	f("", ProtocolHTTP, Share{Name: strings.Repeat("n", maxName), Weight: 1})
	f("1 to 256 bytes", ProtocolHTTP, Share{Name: strings.Repeat("n", maxName+1), Weight: 1})
	body := func(n int) []byte { return []byte(`"` + strings.Repeat("b", n-2) + `"`) }
	f("", ProtocolHTTP, Share{Name: "x", Weight: 1, Body: body(maxBodyBytes)})
	f("more than 4194304 bytes", ProtocolHTTP, Share{Name: "x", Weight: 1, Body: body(maxBodyBytes + 1)})
}

func TestAddresses(t *testing.T) {
	type place struct {
		network, addr string
		tls           bool
	}
	f := func(protocol, addr string, want place) {
		t.Helper()
		target := Target{Protocol: protocol, Addr: addr}
		var got place
		var err error
		got.network, got.addr, got.tls, err = target.Place()
		if got != want || (err == nil) == (want == place{}) {
			t.Errorf("%s %s: %+v %v", protocol, addr, got, err)
		}
	}
	f(ProtocolKernel, "h:1", place{"tcp", "h:1", false})
	f(ProtocolKernel, "tcp://[::1]:1", place{"tcp", "[::1]:1", false})
	f(ProtocolToolhost, "tls://h:1", place{"tcp", "h:1", true})
	f(ProtocolToolhost, "unix:///s", place{"unix", "/s", false})
	f(ProtocolHTTP, "http://h", place{"tcp", "h:80", false})
	f(ProtocolHTTP, "https://h/x", place{"tcp", "h:443", true})
	f(ProtocolHTTP, "http://[::1]:8080", place{"tcp", "[::1]:8080", false})
	for _, bad := range []string{"", "h", "h:", "unix://s", "http://h:1"} {
		f(ProtocolKernel, bad, place{})
	}
	for _, bad := range []string{"", "h:1", "ftp://h", "http://", "http://u@h"} {
		f(ProtocolHTTP, bad, place{})
	}
}

// TestEveryBuiltinBodyIsGood: the defaults and all methods that need no body pass.
func TestEveryBuiltinBodyIsGood(t *testing.T) {
	for _, protocol := range []string{ProtocolKernel, ProtocolToolhost, ProtocolThreads, ProtocolExacta, ProtocolHTTP} {
		p := goodPlan()
		if p.Target.Protocol = protocol; protocol == ProtocolThreads {
			p.Target.Token = "x"
		}
		if protocol == ProtocolHTTP {
			p.Target.Addr = "http://h"
		}
		if err := p.Check(); err != nil || len(p.Mix) == 0 || p.Mix[0].Body == nil {
			t.Errorf("%s: %v %v", protocol, err, p.Mix)
		}
	}
	p := goodPlan()
	for name := range kernelBodies {
		p.Mix = append(p.Mix, Share{Name: name, Weight: 1})
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for protocol, bodies := range map[string]map[string]string{ProtocolToolhost: toolhostBodies, ProtocolThreads: threadsBodies, ProtocolExacta: exactaBodies} {
		for name := range bodies {
			p = goodPlan()
			p.Target.Protocol, p.Target.Token = protocol, "x"
			p.Mix = []Share{{Name: name, Weight: 1}}
			if err := p.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
