package kernel

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleChanges has one of each kind, with extreme fields.
func sampleChanges() []Change {
	long := bytes.Repeat([]byte("x"), maxIDLen)
	max := Quota{}
	for i := range max {
		max[i] = math.MaxInt32
	}
	p := []byte("p")
	return []Change{
		{Kind: ChangeCreate, PID: p, RequestID: []byte("q"), UserID: []byte{}, SessionID: []byte("s"), Priority: Idle, Seq: 1, Quota: BuiltinQuota()},
		{Kind: ChangeCreate, PID: long, RequestID: long, UserID: long, SessionID: long, State: Ready, Seq: math.MaxUint64 - 1,
			ReadySeq: math.MaxUint64, Quota: max},
		{Kind: ChangeTransition, PID: p, State: Blocked, At: -1, Reason: long},
		{Kind: ChangeTransition, PID: p, State: Ready, At: math.MaxInt64, ReadySeq: 300, Reason: []byte{}},
		{Kind: ChangeLease, PID: p, Expiry: math.MaxInt64},
		{Kind: ChangeLeaseEnd, PID: p},
		{Kind: ChangeRequeue, PID: p},
		{Kind: ChangeRemove, PID: p},
		{Kind: ChangeUsage, PID: p, Usage: Usage{1, 2, 3, 4, 5, 6, 7, math.MaxInt64}},
		{Kind: ChangeQuotaDefaults, Quota: max},
		{Kind: ChangeRateStamp, UserID: []byte("u"), At: math.MinInt64},
		{Kind: ChangeRateDrop, UserID: []byte{}},
	}
}

func TestChangeRoundTrip(t *testing.T) {
	var all []byte
	for kind := ChangeCreate; int(kind) < len(changeNames); kind++ {
		if !slices.ContainsFunc(sampleChanges(), func(c Change) bool { return c.Kind == kind }) {
			t.Errorf("no %s among sampleChanges", kind)
		}
	}
	for _, c := range sampleChanges() {
		all = AppendChange(all, &c)
	}
	for _, want := range sampleChanges() {
		got, rest, err := ParseChange(all)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: %s", want.Kind, diff)
		}
		all = rest
	}
	if len(all) != 0 {
		t.Errorf("%d bytes left", len(all))
	}
}

// TestChangeFormat pins the bytes: journals outlive programs.
func TestChangeFormat(t *testing.T) {
	f := func(c Change, want string) {
		t.Helper()
		if got := hex.EncodeToString(AppendChange(nil, &c)); got != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%v: got %s, want %s", c.Kind, got, want)
		}
	}
	p, u := []byte("p1"), []byte("u1")
	f(Change{Kind: ChangeTransition, PID: p, State: Ready, At: 1, ReadySeq: 5}, "8900 01 02 027031 01 02 05 00")
	f(Change{Kind: ChangeLease, PID: p, Expiry: -1}, "8600 01 03 027031 01")
	f(Change{Kind: ChangeLeaseEnd, PID: p}, "8500 01 04 027031")
	f(Change{Kind: ChangeRequeue, PID: p}, "8500 01 05 027031")
	f(Change{Kind: ChangeRemove, PID: p}, "8500 01 06 027031")
	f(Change{Kind: ChangeUsage, PID: p, Usage: Usage{1, 2, 3, 4, 5, 6, 7, 300}}, "8e00 01 07 027031 01020304050607ac02")
	f(Change{Kind: ChangeQuotaDefaults, Quota: Quota{0: 1, 13: 128}}, "9100 01 08 01000000000000000000000000 8001")
	f(Change{Kind: ChangeRateStamp, UserID: u, At: 64}, "8700 01 09 027531 8001")
	f(Change{Kind: ChangeRateDrop, UserID: u}, "8500 01 0a 027531")
	f(Change{Kind: ChangeCreate, PID: p, RequestID: []byte("q"), UserID: u, SessionID: []byte("s"), State: Ready, Priority: Normal, Seq: 9, ReadySeq: 8},
		"9e00 01 01 027031 0171 027531 0173 01 02 09 08 0000000000000000000000000000")
}

func TestParseChangeErrors(t *testing.T) {
	f := func(in string, want error) {
		t.Helper()
		b, err := hex.DecodeString(strings.ReplaceAll(in, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		c, rest, err := ParseChange(b)
		if !errors.Is(err, want) || !bytes.Equal(rest, b) {
			t.Errorf("%s: got %v %v, want %v", in, c.Kind, err, want)
		}
	}
	f("", ErrShortChange)
	f("85", ErrShortChange)
	f("8500 01 04 0270", ErrShortChange)
	f("00", ErrBadChange)
	f("01 01", ErrBadChange)
	f("8140", ErrBadChange)                                                                        // 8193 bytes
	f("8040", ErrShortChange)                                                                      // 8192 bytes
	f("ffffffffffffffffffff01", ErrBadChange)                                                      // overflows
	f("8500 02 04 027031", ErrBadChange)                                                           // version
	f("8500 01 00 027031", ErrBadChange)                                                           // kind
	f("8500 01 0b 027031", ErrBadChange)                                                           // kind
	f("8600 01 04 027031 00", ErrBadChange)                                                        // trailing byte
	f("8500 01 04 037031", ErrBadChange)                                                           // string beyond the end
	f("8300 01 04 00", ErrBadChange)                                                               // empty pid
	f("8900 01 02 027031 07 02 05 00", ErrBadChange)                                               // state
	f("8600 01 04 8108 7031", ErrBadChange)                                                        // 1025 bytes
	f("9400 01 08 01000000000000000000000000 8080808008", ErrBadChange)                            // 2^31
	f("9e00 01 01 027031 0171 027531 0173 02 02 09 08 0000000000000000000000000000", ErrBadChange) // created RUNNING
	f("9e00 01 01 027031 0171 027531 0173 01 05 09 08 0000000000000000000000000000", ErrBadChange) // priority
	f("9e00 01 01 027031 0171 027531 0173 01 02 00 08 0000000000000000000000000000", ErrBadChange) // sequence
}

func FuzzParseChange(f *testing.F) {
	for _, c := range sampleChanges() {
		b := AppendChange(nil, &c)
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		c, rest, err := ParseChange(in)
		if err != nil {
			if !bytes.Equal(rest, in) {
				t.Fatal("an error took bytes")
			}
			return
		}
		again, left, err := ParseChange(AppendChange(nil, &c))
		if err != nil || len(left) != 0 {
			t.Fatalf("cannot parse own encoding: %v", err)
		}
		if diff := cmp.Diff(c, again); diff != "" {
			t.Fatal(diff)
		}
		k := New(Config{Shards: minShards})
		for range 2 { // whether it fits or not, applying never crashes
			_, _ = k.Apply(&c, 1)
		}
		k.Counts(Instant{})
	})
}
