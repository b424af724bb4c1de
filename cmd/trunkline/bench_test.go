package main

import (
	"context"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/internal/loadgen"
)

func TestRates(t *testing.T) {
	f := func(text string, want loadgen.Schedule) {
		t.Helper()
		got, err := parseRate(text)
		if err != nil || got.Kind != want.Kind || got.To != want.To || want.Kind == loadgen.Ramp && got.From != want.From {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	f("1000", loadgen.Schedule{To: 1000})
	f("0.5", loadgen.Schedule{To: 0.5})
	f("100..5000", loadgen.Schedule{Kind: loadgen.Ramp, From: 100, To: 5000})
	f("0..1e4", loadgen.Schedule{Kind: loadgen.Ramp, To: 10_000})
	f("max", loadgen.Schedule{Kind: loadgen.Max})
	for _, bad := range []string{"", "x", "-1", "1..", "..2", "nan", "inf", "1..2..3", "MAX"} {
		if _, err := parseRate(bad); cli.Exit(err) != cli.CodeUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestMaxErrors(t *testing.T) {
	f := func(text string, failed, all int64, want bool) {
		t.Helper()
		limit, err := parseMaxErrors(text)
		if err != nil || limit.exceeded(failed, all) != want {
			t.Errorf("%s: %d of %d, %v", text, failed, all, err)
		}
	}
	f("0", 0, 10, false)
	f("0", 1, 10, true)
	f("5", 5, 10, false)
	f("5", 6, 10, true)
	f("0.1%", 1, 1000, false)
	f("0.1%", 2, 1000, true)
	f("100%", 10, 10, false)
	for _, bad := range []string{"", "%", "-1", "101%", "x", "-1%"} {
		if _, err := parseMaxErrors(bad); cli.Exit(err) != cli.CodeUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestBenchVerdicts(t *testing.T) {
	f := func(done, failed int64, limit string, want int) {
		t.Helper()
		allowed, err := parseMaxErrors(limit)
		if err != nil {
			t.Fatal(err)
		}
		r := &loadgen.Result{Total: loadgen.Sample{Done: done, Failed: failed}}
		if got := cli.Exit(verdict(context.Background(), r, allowed)); got != want {
			t.Errorf("%d done, %d failed, %s: %d", done, failed, limit, got)
		}
	}
	f(10, 0, "0", cli.CodeOK)
	f(10, 10, "100%", cli.CodeOK)
	f(10, 1, "0", cli.CodeFailed)
	f(0, 10, "100%", cli.CodeFailed)
	f(0, 0, "100%", cli.CodeFailed)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := verdict(ended, &loadgen.Result{}, tolerance{}); err != nil {
		t.Error(err)
	}
}

func TestBenchBodies(t *testing.T) {
	mix := []loadgen.Share{{Name: "kernel.GetProcess"}, {Name: "RecordUsage"}}
	for _, text := range []string{`GetProcess={"a":"b=c"}`, `kernel.RecordUsage={}`} {
		if err := addBody(mix, text); err != nil {
			t.Error(err)
		}
	}
	if string(mix[0].Body) != `{"a":"b=c"}` || string(mix[1].Body) != "{}" {
		t.Errorf("%s %s", mix[0].Body, mix[1].Body)
	}
	for _, bad := range []string{"x", "CheckQuota={}", "GetProcess=@/no/such/file"} {
		if cli.Exit(addBody(mix, bad)) != cli.CodeUsage {
			t.Errorf("%q is taken", bad)
		}
	}
}
