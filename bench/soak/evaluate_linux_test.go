package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"trunkline/bench/internal/fakekernel"
)

// failure returns the payload of an ERROR frame.
func failure(code string) []byte { return fakekernel.Failure("x", code, "m")[5:] }

func TestRefusals(t *testing.T) {
	var r refusals
	f := func(tag uint8, code string, errs, nothing uint64) {
		t.Helper()
		if err := r.evaluate(tag, failure(code)); err != nil {
			t.Fatal(err)
		}
		if e, n := r.errors.Load(), r.nothingRunnable.Load(); e != errs || n != nothing {
			t.Errorf("%d errors and %d nothing runnable, want %d and %d", e, n, errs, nothing)
		}
	}
	f(tagNextRunnable, "NOT_FOUND", 0, 1)
	f(tagOther, "NOT_FOUND", 1, 1)
	f(tagNextRunnable, "RESOURCE_EXHAUSTED", 2, 1)
	if err := r.evaluate(tagOther, []byte{0xc1}); err == nil {
		t.Error("takes a payload that is not MessagePack")
	}
	if got, want := r.String(), "map[NOT_FOUND:1 RESOURCE_EXHAUSTED:1], first: NOT_FOUND: m"; got != want {
		t.Errorf("refusals are counted as %q, want %q", got, want)
	}
}

func TestGrowth(t *testing.T) {
	f := func(want float64, ok bool, pairs ...int64) {
		t.Helper()
		var readings []reading
		for i := 0; i < len(pairs); i += 2 {
			readings = append(readings, reading{time.Duration(pairs[i]) * time.Second, pairs[i+1]})
		}
		if got, evaluated := growth(readings); got != want || evaluated != ok {
			t.Errorf("growth(%v) = %v, %v, want %v, %v", pairs, got, evaluated, want, ok)
		}
	}
	f(0, false)
	f(0, false, 5, 100)
	f(0, false, 5, 100, 10, 200)
	f(0, true, 5, 100, 10, 200, 15, 200)
	f(0.25, true, 5, 100, 10, 200, 15, 250, 20, 220)
	f(0, true, 10, 200, 15, 100)
}

func TestFaults(t *testing.T) {
	f := func(want string, change func(o *outcome)) {
		t.Helper()
		o := outcome{requests: 1, refused: &refusals{}, maxGrowth: 0.1, readings: []reading{{10 * time.Second, 100}, {15 * time.Second, 110}}}
		change(&o)
		if got := strings.Join(o.faults(), "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("faults %q, want %q", got, want)
		}
	}
	f("", func(*outcome) {})
	f("1 error replies", func(o *outcome) { o.refused.evaluate(tagOther, failure("INTERNAL")) })
	f("2 requests without a reply", func(o *outcome) { o.dropped = 2 })
	f("the load failed: boom", func(o *outcome) { o.loadErr = errors.New("boom") })
	f("no reply at all", func(o *outcome) { o.requests = 0 })
	f("memory grew by 11.0 %", func(o *outcome) { o.readings[1].rss = 111 })
}
