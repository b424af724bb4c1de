package load

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"trunkline/fuzz/kit/fakekernel"
)

func TestDeal(t *testing.T) {
	f := func(from, to, conns, each int) {
		t.Helper()
		seen := map[int]bool{}
		for _, hand := range Deal(from, to, conns) {
			if len(hand) < each {
				t.Errorf("Deal(%d, %d, %d): a connection has %d rows, want at least %d", from, to, conns, len(hand), each)
			}
			for _, row := range hand {
				if seen[row] || row < from || row >= to {
					t.Fatalf("Deal(%d, %d, %d): row %d is out of range or dealt twice", from, to, conns, row)
				}
				seen[row] = true
			}
		}
		if all := to - from; all <= conns*MaxTape && len(seen) != all {
			t.Errorf("Deal(%d, %d, %d): %d rows dealt, want all", from, to, conns, len(seen))
		}
	}
	f(0, 10000, 64, 156)
	f(0, 1000, 1000, 1)
	f(100, 200, 7, 14)
	f(0, 1_000_000, 64, MaxTape)
	f(0, 2*MaxTape, 2, MaxTape)
	f(0, 2*MaxTape+2, 2, MaxTape)
}

func TestTapesGoThroughTheEncoders(t *testing.T) {
	var asked string
	say := func(what string) Encoder {
		return func(row int) []byte {
			asked += fmt.Sprint(what, row, " ")
			return []byte(what)
		}
	}
	got := Tapes([][]int{{7, 8}, {9}}, say("a"), say("b"))
	if len(got) != 2 || asked != "a7 a8 b7 b8 a9 b9 " || got[0].Len() != 4 || got[1].Len() != 2 {
		t.Errorf("%d tapes of %q", len(got), asked)
	}
}

func TestRowRequests(t *testing.T) {
	if len(PID(0)) != 36 || PID(1) == Identifier('u', 1) || PID(1) == PID(2) {
		t.Errorf("identifiers %s and %s", PID(1), PID(2))
	}
	f := func(method string, want ...string) {
		t.Helper()
		encoders := RowEncoders(method)
		if len(encoders) != len(want) {
			t.Fatalf("%s: %d encoders, want %d", method, len(encoders), len(want))
		}
		for i, encode := range encoders {
			b := encode(7)
			for _, part := range []string{method, PID(7), requestID, want[i]} {
				if !bytes.Contains(b, []byte(part)) {
					t.Errorf("%q lacks %q", b, part)
				}
			}
			if bytes.Contains(b, []byte("new_state")) != (len(want) == 2) {
				t.Errorf("new_state is not where it belongs: %q", b)
			}
		}
	}
	f("GetProcess", "")
	f("CheckQuota", "")
	f("RecordUsage", "tokens_out")
	f("TransitionState", "RUNNING", "READY")
}

func TestAskAndLift(t *testing.T) {
	srv := fakekernel.Start(t, 0, func(r fakekernel.Request) []byte {
		quota, _ := r.Body["quota"].(map[string]any)
		if r.Method == "SetQuotaDefaults" && (len(quota) != 2 || quota["b"] == nil) {
			return fakekernel.Failure(r.ID, "INVALID_ARGUMENT", "no such limit")
		}
		return fakekernel.OK(r.ID)
	})
	if reply, err := Ask(srv.Addr, "kernel", "GetProcess", "pid", "p"); err != nil || reply == nil {
		t.Errorf("%v, %v", reply, err)
	}
	if err := LiftLimits(srv.Addr, "a", "b"); err != nil {
		t.Error(err)
	}
	var refused *Failure
	if err := LiftLimits(srv.Addr, "a"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "cannot lift the limits") {
		t.Errorf("%v, want a refusal", err)
	}
	if _, err := Ask("127.0.0.1:1", "kernel", "GetProcess"); err == nil {
		t.Error("nobody answered")
	}
}
