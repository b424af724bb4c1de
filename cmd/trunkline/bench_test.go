package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"trunkline/cmd/trunkline/internal/cli"
	"trunkline/cmd/trunkline/loadgen"
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
		if err != nil || (limit(failed, all) != nil) != want {
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
	if err := verdict(ended, &loadgen.Result{}, nil); err != nil {
		t.Error(err)
	}
}

func TestBenchErrors(t *testing.T) {
	f := func(err error, code int, hint string) {
		t.Helper()
		got := (&benchFlags{}).benchError(err)
		var e *cli.Error
		if !errors.As(got, &e) || !errors.Is(got, err) || e.Code != code || !strings.Contains(e.Hint, hint) {
			t.Errorf("%v: %+v", err, e)
		}
	}
	connect := func(err error) error { return fmt.Errorf("%w to h:1: %w", loadgen.ErrConnect, err) }
	f(connect(syscall.ECONNREFUSED), cli.CodeUnavailable, "is the server running")
	f(connect(fmt.Errorf("connection 3 of 4: %w", os.NewSyscallError("socket", syscall.EMFILE))), cli.CodeUnavailable, "ulimit -n")
	f(fmt.Errorf("%w: %w", loadgen.ErrPrepare, context.DeadlineExceeded), cli.CodeUnavailable, "--protocol")
	f(fmt.Errorf("%w: RESOURCE_EXHAUSTED", loadgen.ErrPrepare), cli.CodeFailed, "need no process")
	f(errors.New("cannot use it"), cli.CodeUsage, "")
}

// TestBenchMix: the weights and the bodies of the flags; what is wrong with a weight is in the
// plan's error.
func TestBenchMix(t *testing.T) {
	f := func(want string, methods, bodies []string) {
		t.Helper()
		flags := benchFlags{methods: methods, bodies: bodies}
		mix, err := flags.mix(&loadgen.Plan{Target: loadgen.Target{Protocol: loadgen.ProtocolToolhost}})
		got := ""
		for _, s := range mix {
			got += fmt.Sprintf("%s=%d%s ", s.Name, s.Weight, s.Body)
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%v %v: %q, want %q", methods, bodies, got, want)
		}
	}
	f("AID.NOOP.v1=1 ", nil, nil)
	f("AID.NOOP.v1=1{} ", nil, []string{"AID.NOOP.v1={}"})
	f("a=1 b=7{} ", []string{"a", "b=7"}, []string{"b={}"})
	f("a=0 b=-1 ", []string{"a=0", "b=-1"}, nil)
	f("cannot use --method", []string{"a="}, nil)
	f("cannot use --method", []string{"a=1.5"}, nil)
	f("cannot use --method", []string{"a=99999999999999999999"}, nil)
	f("cannot use --body c: no --method has that name", []string{"a"}, []string{"c={}"})
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
