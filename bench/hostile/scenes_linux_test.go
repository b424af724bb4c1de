package hostile

import (
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"trunkline/bench/internal/load"
	"trunkline/fuzz/kit/fakekernel"
)

const short = 100 * time.Millisecond

// polite answers as the protocol asks, as far as the scenes ask.
func polite(r fakekernel.Request) []byte {
	switch {
	case r.Method == "Subscribe":
		return fakekernel.Frame(load.Chunk, []byte{0x80})
	case r.Method == "GetProcess" && r.Str("pid") == "":
		return fakekernel.Failure(r.ID, "INVALID_ARGUMENT", "Invalid msgpack: nested too deep")
	}
	return fakekernel.OK(r.ID)
}

// careless answers everything with a response.
func careless(r fakekernel.Request) []byte { return fakekernel.OK(r.ID) }

func TestScenesAgainstAPoliteServer(t *testing.T) {
	f := func(want string, attack func(addr string, lasting time.Duration) (string, error)) {
		t.Helper()
		srv := fakekernel.Start(t, 0, polite)
		if note, err := attack(srv.Addr, short); err != nil || !strings.Contains(note, want) {
			t.Errorf("%q, %v, want a note with %q", note, err, want)
		}
	}
	f("1000 connections", halfOpen)
	f("pushed back", neverReads)
	f("800 events", deafSubscriber(800))
	f("requests in bursts of 1024", bursts)
}

func TestScenesNoticeABadServer(t *testing.T) {
	f := func(want string, answer func(fakekernel.Request) []byte, attack func(addr string, lasting time.Duration) (string, error)) {
		t.Helper()
		srv := fakekernel.Start(t, 0, answer)
		if _, err := attack(srv.Addr, short); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	gone := func(fakekernel.Request) []byte { return nil }
	f("cannot subscribe", careless, deafSubscriber(8))
	f("cannot", gone, bursts)
	f("where 0x02 is due", func(r fakekernel.Request) []byte { return fakekernel.Failure(r.ID, "INTERNAL", "m") }, bursts)
	f("must be refused", careless, func(addr string, lasting time.Duration) (string, error) {
		_, err := flood(addr, 2, lasting, func(int) ([]byte, int) { return nested(513), 1 }, refused)
		return "", err
	})
	if _, err := flood("127.0.0.1:1", 1, short, nil, nil); err == nil || !strings.Contains(err.Error(), "cannot dial") {
		t.Errorf("flooded no server: %v", err)
	}
}

func TestFloodCounts(t *testing.T) {
	srv := fakekernel.Start(t, 0, polite)
	n, err := flood(srv.Addr, 3, short, func(int) ([]byte, int) { return append(nested(513), nested(20)...), 2 }, refused)
	if seen := srv.Count("GetProcess"); err != nil || n == 0 || int(n) != seen-3 {
		t.Errorf("%d refused of %d requests, the last three of which are none: %v", n, seen, err)
	}
}

func TestNestedCountsItsLevels(t *testing.T) {
	f := func(levels int) {
		t.Helper()
		v, rest, err := msgp.ReadIntfBytes(nested(levels)[5:])
		if err != nil || len(rest) > 0 {
			t.Fatalf("%v, %d bytes left", err, len(rest))
		}
		if got := depth(v); got != levels {
			t.Errorf("nested(%d) has %d levels", levels, got)
		}
	}
	f(3)
	f(512)
	f(513)
	if n := len(nested(maxPayload - 100)); n <= 5<<20-100 || n > 4+5<<20 {
		t.Errorf("the largest frame is %d bytes", n)
	}
}

func depth(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			deepest = max(deepest, depth(m))
		}
	case []any:
		for _, m := range v {
			deepest = max(deepest, depth(m))
		}
	default:
		return 0
	}
	return deepest + 1
}
