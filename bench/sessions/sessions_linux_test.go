package sessions

import (
	"strings"
	"testing"

	"trunkline/bench/internal/load"
	"trunkline/bench/internal/part"
	"trunkline/codec/frame"
)

func TestRefusalsAreEvaluated(t *testing.T) {
	f := func(code, message string, passes bool) {
		t.Helper()
		b := &bench{}
		if err := b.evaluate(&load.Failure{Code: code, Message: message}); (err == nil) != passes || b.refused.Load() == 1 != passes {
			t.Errorf("%s %s: %v, %d counted", code, message, err, b.refused.Load())
		}
	}
	f("RESOURCE_EXHAUSTED", "Session table is full", true)
	f("RESOURCE_EXHAUSTED", "Envelope too large", false)
	f("INVALID_ARGUMENT", "Session table is full", false)
}

// TestFaults: memory that grows while the table is full, and counts that cannot be.
func TestFaults(t *testing.T) {
	f := func(ok bool, kind string, count, active, refused int64, rss ...int64) {
		t.Helper()
		b, r := &bench{kind: kind, count: count, active: active}, new(part.Report)
		b.refused.Store(refused)
		for _, n := range rss {
			b.rss = append(b.rss, n*size)
		}
		if b.check(r); (len(r.Faults) == 0) != ok {
			t.Errorf("%s, %d, %d held, %d refused, %v: %q", kind, count, active, refused, rss, r.Faults)
		}
	}
	f(true, running, 12000, 10000, 2000)
	f(false, running, 12000, 9999, 2000)
	f(false, running, 12000, 10001, 1999)
	f(true, ended, 12000, 10000, 0)
	f(false, ended, 12000, 10000, 1)
	f(false, ended, 12000, 10001, 0)
	f(true, ended, 4, 4, 0, 10)
	f(true, ended, 4, 4, 0, 10, 11)
	f(true, ended, 4, 4, 0, 30, 10, 20, 31)
	f(true, ended, 4, 4, 0, 5, 5, 5, 10)
	f(false, ended, 4, 4, 0, 5, 5, 5, 11)
	f(false, ended, 4, 4, 0, 10, 10, 10, 12)
}

func TestBeginRequest(t *testing.T) {
	b := beginRequest(true)
	typ, _, n := frame.Split(b, 5<<20)
	if typ != frame.Request || n != len(b) || n < size || n > size+1000 ||
		strings.Count(string(b), load.Placeholder) != 1 {
		t.Errorf("type %d, %d of %d bytes", typ, n, len(b))
	}
}
