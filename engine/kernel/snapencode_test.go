package kernel

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// load gives records to a new kernel and ends the load.
func load(records ...[]byte) (*Kernel, error) {
	k := New(Config{Shards: minShards})
	for _, rec := range records {
		if err := k.loadSnapshotRecord(rec); err != nil {
			return k, err
		}
	}
	return k, k.finishLoad()
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const (
	quotaHex = " 0100000000000000000000000000 "
	beginHex = "988000 01 01 09 08 80a8d6b907 07" + quotaHex
	rowHex   = "ab8000 01 02 027031 0171 027531 0173 01 02 09 07 0a 01 08 00 00 0102030405060708" + quotaHex
	logHex   = "8b8000 01 03 027531 06 8008 03 05 00"
	endHex   = "848000 01 04 01 01"
)

// TestSnapshotFormat pins the bytes: snapshots outlive programs.
func TestSnapshotFormat(t *testing.T) {
	records := [][]byte{unhex(t, beginHex), unhex(t, rowHex), unhex(t, logHex), unhex(t, endHex)}
	k, err := load(records...)
	if err != nil {
		t.Fatal(err)
	}
	var out PCB
	var got []string
	k.Get([]byte("p1"), nil, &out)
	if out.Created != 9 || out.State != Ready || out.Priority != Normal || out.Usage != (Usage{1, 2, 3, 4, 5, 6, 7, 8}) || string(out.UserID) != "u1" {
		t.Errorf("%+v", out)
	}
	if err := k.WriteSnapshot(func(rec []byte) error { got = append(got, hex.EncodeToString(rec)); return nil }); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{beginHex, rowHex, logHex, endHex} {
		want = strings.ReplaceAll(want, " ", "")
		if len(got) != 4 || got[i] != want {
			t.Errorf("record %d: got %s, want %s", i, got, want)
		}
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	f := func(why string, records ...string) {
		t.Helper()
		var raw [][]byte
		for _, r := range records {
			raw = append(raw, unhex(t, r))
		}
		if _, err := load(raw...); !errors.Is(err, errBadSnapshot) || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %s", err, why)
		}
	}
	row := func(old, changed string) string { return strings.Replace(rowHex, old, changed, 1) }
	f("ends early", beginHex)
	f("ends early", beginHex, rowHex, logHex)
	f("outside", rowHex)
	f("outside", endHex)
	f("outside", beginHex, rowHex, logHex, endHex, rowHex)
	f("not new", beginHex, beginHex)
	f("not new", beginHex, rowHex, logHex, endHex, beginHex)
	f("does not have", beginHex, rowHex, endHex)
	f("does not have", beginHex, rowHex, logHex, "848000 01 04 00 01")
	f("does not have", beginHex, rowHex, logHex, "858000 01 04 01 01 00")
	f("process \"p1\" is in it twice", beginHex, rowHex, rowHex)
	f("log of user \"u1\" is in it twice", beginHex, logHex, logHex)
	f("creation sequence", beginHex, rowHex, row("027031", "027032"), "848000 01 04 02 00")
	f("first record", "838000 01 01 09")
	f("kind 5", beginHex, "838000 01 05 00")
	f("version 2", "948000 02 01 09 08 02 07"+quotaHex)
	f("length", "")
	f("length", "ff")
	f("length 21", "958000 01 01 09 08 02 07"+quotaHex)
	f("length", beginHex+"00")
	f("length 1", "01 01")
	f("length 262145", "818010 01 01")
	for _, bad := range []string{
		row("01 02 09 07", "02 02 09 07"), // RUNNING and queued
		row("01 02 09 07", "07 02 09 07"), // no such state
		row("01 02 09 07", "01 05 09 07"), // no such priority
		row("01 02 09 07", "01 02 00 07"), // no creation sequence
		row("0a 01 08", "0a 06 08"),       // no such place
		row("0a 01 08", "0a 00 08"),       // READY and nowhere
		row("0a 01 08", "0a 05 08"),       // READY and completed
		row("0a 01 08", "0a 81 08"),       // place
		row("027031", "000270"),           // no pid
		row("ab80", "ac80") + "00",        // a byte more
		strings.Replace(row("00 0102030405060708", "01 78 0102030405060708"), "ab80", "ac80", 1), // a reason of a READY process
	} {
		f("process record", beginHex, bad)
	}
	for _, bad := range []string{
		"8b8000 01 03 027531 06 8008 00 05 00",                 // no stamp
		"8b8000 01 03 027531 06 8008 04 05 00",                 // one too few
		"8b8000 01 03 027531 06 8008 02 05 00",                 // one too many
		"8e8000 01 03 027531 06 8008 03 80dddb01 01",           // older than an hour in sum
		"8b8000 01 03 027531 06 8008 a18d06",                   // 100,001 stamps
		"938000 01 03 027531 06 feffffffffffffffff01 03 05 00", // a time beyond nanoseconds
	} {
		f("log record", beginHex, bad)
	}
}

// TestDamageNeverCrashes flips every bit and cuts at every byte.
func TestDamageNeverCrashes(t *testing.T) {
	good := [][]byte{unhex(t, beginHex), unhex(t, rowHex), unhex(t, logHex), unhex(t, endHex)}
	for n, rec := range good {
		try := func(damaged []byte) error {
			records := append([][]byte(nil), good...)
			records[n] = damaged
			_, err := load(records...)
			if err != nil && !errors.Is(err, errBadSnapshot) {
				t.Errorf("%x: %v", damaged, err)
			}
			return err
		}
		for cut := range rec {
			if try(rec[:cut]) == nil {
				t.Errorf("record %d cut at %d is taken", n, cut)
			}
		}
		for bit := range 8 * len(rec) {
			damaged := bytes.Clone(rec)
			damaged[bit/8] ^= 1 << (bit % 8)
			_ = try(damaged)
		}
	}
}

// TestSnapshotLimits: the longest identifiers and the fullest log fit.
func TestSnapshotLimits(t *testing.T) {
	q := unlimited()
	q[RateLimitRPH], q[RateLimitRPM], q[RateLimitBurst] = maxStamps, math.MaxInt32, math.MaxInt32
	journal := &tape{}
	cfg := Config{Shards: minShards, Defaults: q, Journal: journal.journal}
	k, now := New(cfg), at(0)
	long := bytes.Repeat([]byte("x"), maxIDLen)
	k.Create(now, &CreateArgs{PID: long, RequestID: long, UserID: long, SessionID: long, Priority: Idle}, nil)
	k.Transition(now, long, nil, Running, nil, nil)
	k.Transition(now, long, nil, Blocked, append(long, 'x'), nil)
	k.RecordUsage(now, long, nil, &Usage{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}, nil)
	for i := range maxStamps { // gaps of 0 and of two bytes
		if i%4 == 0 {
			now.Mono += int64(140 * time.Millisecond)
		}
		if d := k.CheckRate(now, []byte("u"), true); !d.Allowed {
			t.Fatal(i, d)
		}
	}
	longest := 0
	p := journal.photograph(t, k, func(rec []byte) { longest = max(longest, len(rec)) })
	if longest < maxStamps || longest > maxSnapshotRecordLen/2 {
		t.Errorf("longest record: %d bytes", longest)
	}
	back, err := journal.recovered(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if back.stateDigest() != k.stateDigest() {
		t.Error("another state")
	}
	if a, b := back.CheckRate(now, []byte("u"), true), k.CheckRate(now, []byte("u"), true); a.Allowed || a != b {
		t.Errorf("then %+v, want %+v", a, b)
	}
}

func TestWriteSnapshotStopsAtAnError(t *testing.T) {
	r := newRig(t, Config{Defaults: unlimited()})
	for i := range 5 {
		r.mk(fmt.Sprint(i))
	}
	whole := 0
	if err := r.k.WriteSnapshot(func([]byte) error { whole++; return nil }); err != nil || whole != 1+5+5+1 {
		t.Fatal(whole, err)
	}
	for stop := range whole {
		calls, full := 0, errors.New("disk full")
		err := r.k.WriteSnapshot(func([]byte) error {
			if calls++; calls > stop {
				return full
			}
			return nil
		})
		if err != full || calls != stop+1 {
			t.Errorf("%d calls, %v", calls, err)
		}
	}
}

func FuzzLoadSnapshotRecord(f *testing.F) {
	for _, s := range []string{beginHex, rowHex, logHex, endHex} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		k := New(Config{Shards: minShards})
		begin := appendSnapshotBegin(nil, &snapshotGlobals{defaults: BuiltinQuota()})
		kind, _, _ := parseSnapshotRecord(in)
		if kind != snapshotBegin {
			_ = k.loadSnapshotRecord(begin)
		}
		if k.loadSnapshotRecord(in) != nil {
			return
		}
		if kind == snapshotEnd {
			return
		}
		if err := k.loadSnapshotRecord(appendSnapshotEnd(nil, k.recovery.processes, k.recovery.logs)); err != nil {
			t.Fatal(err)
		}
		if err := k.finishLoad(); err != nil {
			t.Fatal(err)
		}
		var records [][]byte
		if err := k.WriteSnapshot(func(rec []byte) error { records = append(records, bytes.Clone(rec)); return nil }); err != nil {
			t.Fatal(err)
		}
		again, err := load(records...)
		if err != nil || again.stateDigest() != k.stateDigest() {
			t.Fatalf("its own snapshot: %v", err)
		}
		now := Instant{}
		for kind := range deedKinds { // none crashes
			deed{kind: kind, pid: 1, arg: 1}.do(k, &now)
		}
	})
}
