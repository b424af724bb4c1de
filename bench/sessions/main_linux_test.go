package sessions

import (
	"strings"
	"testing"

	"trunkline/bench/internal/load"
)

func TestRefusalsAreEvaluated(t *testing.T) {
	f := func(code, message string, passes bool) {
		t.Helper()
		b := &bench{}
		// A request's frame has the shape of no answer; the payload of an ERROR frame is made by
		// hand.
		payload := "\x83\xa2id\xa1x\xa2ok\xc2\xa5error\x82\xa4code" + str(code) + "\xa7message" + str(message)
		if err := b.evaluate(0, []byte(payload)); (err == nil) != passes || b.refused.Load() == 1 != passes {
			t.Errorf("%s %s: %v, %d counted", code, message, err, b.refused.Load())
		}
	}
	f("RESOURCE_EXHAUSTED", "Session table is full", true)
	f("RESOURCE_EXHAUSTED", "Envelope too large", false)
	f("INVALID_ARGUMENT", "Session table is full", false)
}

func str(s string) string { return "\xd9" + string(rune(len(s))) + s }

func TestMemoryIsEvaluated(t *testing.T) {
	f := func(ok bool, rss ...int64) {
		t.Helper()
		if err := (&bench{rss: rss, size: 10}).bounded(4); (err == nil) != ok {
			t.Errorf("%v: %v", rss, err)
		}
	}
	f(true)
	f(true, 100)
	f(true, 100, 110)
	f(true, 300, 100, 200, 310)
	f(true, 50, 50, 50, 100)
	f(false, 50, 50, 50, 101)
	f(false, 100, 100, 100, 120)
}

func TestCountsAreEvaluated(t *testing.T) {
	f := func(ok, ended bool, count int, active, refused int64) {
		t.Helper()
		if err := (&bench{count: count, ended: ended}).counts(active, refused); (err == nil) != ok {
			t.Errorf("%d, %d held, %d refused: %v", count, active, refused, err)
		}
	}
	f(true, false, 12000, 10000, 2000)
	f(false, false, 12000, 9999, 2000)
	f(false, false, 12000, 10001, 1999)
	f(true, true, 12000, 10000, 0)
	f(false, true, 12000, 10000, 1)
	f(false, true, 12000, 10001, 0)
}

func TestBeginRequest(t *testing.T) {
	for _, size := range []int{1, 1000, 65536} {
		b := beginRequest(size, true)
		typ, _, n, ok, err := load.ParseFrame(b)
		if !ok || err != nil || typ != load.Request || n != len(b) || len(b) < size || strings.Count(string(b), load.Placeholder) != 1 {
			t.Errorf("size %d: type %d, %d of %d bytes, %v, %v", size, typ, n, len(b), ok, err)
		}
	}
}
