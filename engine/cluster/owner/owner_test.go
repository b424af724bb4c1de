package owner

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBeatLimits(t *testing.T) {
	long := strings.Repeat("n", maxText)
	b := Beat{Node: long, Addr: long, To: long, Released: true, Term: math.MaxUint32 * time.Millisecond}
	rec, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(rec); err != nil || got != b {
		t.Errorf("%+v, %v", got, err)
	}
	for _, longer := range []Beat{{Addr: long + "n"}, {Node: long + "n"}, {To: long + "n"}} {
		if _, err := longer.Encode(); err == nil {
			t.Error("256 bytes are taken")
		}
	}
	for _, term := range []time.Duration{(math.MaxUint32 + 1) * time.Millisecond, -time.Millisecond} {
		if _, err := (&Beat{Term: term}).Encode(); err == nil {
			t.Errorf("a term of %v is taken", term)
		}
	}
}

// TestNewerBeat: a record of a later version is refused, whatever follows in it, and named.
func TestNewerBeat(t *testing.T) {
	for _, rec := range []string{"\x02", "\x02\x00\x00\x00\x03\xe8\x02n1\x00"} {
		if b, err := Decode([]byte(rec)); !errors.Is(err, errBeat) || !strings.Contains(err.Error(), "version 2") {
			t.Errorf("%q is %+v, %v", rec, b, err)
		}
	}
}

func TestNow(t *testing.T) {
	a := Now()
	if b := Now(); a <= 0 || b < a {
		t.Errorf("%d after %d", b, a)
	}
	if n := testing.AllocsPerRun(100, func() { Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	rec, _ := (&Beat{Node: "n1", Addr: "127.0.0.1:1"}).Encode()
	f.Add(rec)
	f.Add([]byte{beatVersion, released, 0, 0, 4, 0, 0, 0})
	f.Add([]byte{beatVersion, released | handed, 0, 0, 4, 0, 1, 'a', 0, 1, 'b'})
	f.Add([]byte{beatVersion, handed, 0, 0, 4, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, rec []byte) {
		b, err := Decode(rec)
		if err != nil {
			return
		}
		if back, err := b.Encode(); err != nil || !bytes.Equal(back, rec) {
			t.Errorf("%q is %+v, which is %q, %v", rec, b, back, err)
		}
	})
}

func TestView(t *testing.T) {
	const term = time.Second
	v := NewView(100)
	if _, ok := v.Owner(); ok || v.Due(100+int64(term)-1, term, 0) || !v.Due(100+int64(term), term, 0) {
		t.Error("a node that starts waits a term")
	}
	if v.Due(100+int64(term), term, 1) || !v.Due(100+int64(term)*3/2, term, 1) {
		t.Error("the second standby waits half a term longer")
	}
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := v.Await(short); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	found := make(chan Beat, 1)
	go func() {
		b, _, _ := v.Await(t.Context())
		found <- b
	}()
	one := Beat{Node: "n1", Addr: "a"}
	v.Saw(one)
	if b := <-found; b != one {
		t.Errorf("%+v", b)
	}
	v.Heard(500, 0, 0)
	v.Saw(one)
	_, owns, _ := v.Await(t.Context())
	if owns.Err() != nil {
		t.Error("an owner ends that beats again")
	}
	v.Saw(Beat{Node: "n1", Released: true})
	if owns.Err() == nil {
		t.Error("an owner goes on that has stopped")
	}
	if _, ok := v.Owner(); ok || !v.Due(500, term, 0) || v.Due(500, term, 1) {
		t.Error("one that has stopped is replaced at once")
	}
	if v.Silent(700) != 200 {
		t.Errorf("silent for %v", v.Silent(700))
	}
	v.Saw(Beat{Node: "n2", Addr: "b"})
	v.Saw(Beat{Node: "n2", Addr: "b"})
	if v.Changes() != 2 {
		t.Errorf("%d changes", v.Changes())
	}
	_, owns, _ = v.Await(t.Context())
	if v.Forget(); owns.Err() == nil {
		t.Error("an owner goes on of which nothing is read")
	}
	if _, ok := v.Owner(); ok {
		t.Error("an owner is known of which nothing is read")
	}
}

// TestReplay: no owner is known while a log is read that was there before: those of its beats may
// have been replaced since.
func TestReplay(t *testing.T) {
	v := NewView(0)
	v.Replay(true)
	v.Saw(Beat{Node: "n1"})
	v.Saw(Beat{Node: "n2", Addr: "b"})
	if _, ok := v.Owner(); ok {
		t.Error("an owner is known before the log is read to its end")
	}
	time.AfterFunc(time.Millisecond, func() { v.Replay(false) })
	b, owns, err := v.Await(t.Context())
	if v.Replay(false); err != nil || b.Node != "n2" || owns.Err() != nil {
		t.Errorf("%+v, %v", b, err)
	}
	if v.Replay(true); owns.Err() == nil {
		t.Error("an owner goes on while the log is read again")
	}
}

// TestRank: the partitions begin with one node each. Of a partition that is handed over, its new
// owner is first, and the others come a term later.
func TestRank(t *testing.T) {
	f := func(partition int, last Beat, want ...int) {
		t.Helper()
		ids, v := []string{"a", "b", "c"}, NewView(0)
		if last.Node != "" {
			v.Saw(last)
		}
		for i, id := range ids {
			if got := v.Rank(ids, id, partition, partition+1); got != want[i] {
				t.Errorf("partition %d after %+v: %s has rank %d, want %d", partition, last, id, got, want[i])
			}
		}
	}
	f(0, Beat{}, 0, 1, 2)
	f(1, Beat{}, 2*firstRanks, 0, firstRanks)
	f(2, Beat{}, firstRanks, 2*firstRanks, 0)
	f(3, Beat{}, 0, firstRanks, 2*firstRanks)
	f(0, Beat{Node: "a"}, 0, 0, 1)
	f(1, Beat{Node: "c"}, 1, 0, 1)
	f(0, Beat{Node: "a", Released: true}, 0, 0, 1)
	f(0, Beat{Node: "a", Released: true, To: "c"}, handedRanks, handedRanks, 0)
	f(2, Beat{Node: "c", Released: true, To: "a"}, 0, handedRanks+1, handedRanks)
	if r := NewView(0).Rank(nil, "a", 0, 1); r < 0 || r >= unknownRanks {
		t.Errorf("a node that knows no other has rank %d", r)
	}
}

// TestNextOwnerHasATermBeforeItsBeat: a node that takes over from an owner that has stopped is left
// alone from its first block on, though its first Beat may come late.
func TestNextOwnerHasATermBeforeItsBeat(t *testing.T) {
	const term = time.Second
	v := NewView(0)
	v.Heard(100, 0, 0)
	v.Saw(Beat{Node: "n1", Addr: "a", Released: true})
	v.Heard(200, 0, 0) // the claim of n2
	if _, ok := v.Owner(); ok {
		t.Error("the owner that has stopped is still one")
	}
	if end := int64(200) + int64(term); v.Due(end-1, term, 0) || !v.Due(end, term, 0) || v.Due(end, term, 1) {
		t.Error("the next owner has no term")
	}
}

// TestTheLongerLeaseCounts where the settings of two nodes differ, as while an operator changes
// them.
func TestTheLongerLeaseCounts(t *testing.T) {
	v := NewView(0)
	v.Saw(Beat{Node: "n1", Term: 5 * time.Second})
	if v.Due(int64(5*time.Second)-1, time.Second, 0) || !v.Due(int64(5*time.Second), time.Second, 0) {
		t.Error("a standby takes over within the lease of the owner")
	}
	if v.Due(int64(6*time.Second)-1, 6*time.Second, 0) {
		t.Error("a standby takes over within its own")
	}
}

// TestLeasesDoNotOverlap: whatever time a message takes, and however clocks run against each other
// within the margin, a standby is due only after the lease of the owner has lapsed.
func TestLeasesDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		term := time.Duration(rapid.Int64Range(int64(100*time.Millisecond), int64(time.Minute)).Draw(t, "term"))
		sent := rapid.Int64Range(0, int64(time.Hour)).Draw(t, "sent")                // by real time
		heard := sent + rapid.Int64Range(0, int64(time.Minute)).Draw(t, "under way") // by real time
		after := rapid.Int64Range(0, int64(time.Hour)).Draw(t, "after")
		fast := rapid.Int64Range(0, 99).Draw(t, "thousandths that the standby's clock is faster")
		// The clock of the owner shows real time; that of the standby shows more.
		shows := func(real int64) int64 { return real + real/1000*fast }
		v := NewView(shows(heard))
		if v.Due(shows(heard+after), term, 0) && !Lapsed(heard+after, sent, term) {
			t.Fatalf("due %v after the message, while the lease of %v goes on", time.Duration(heard+after-sent), term)
		}
	})
}

// TestLateBlocks count from when they were sent: those that the log shows after an election of its
// own do not give a dead owner another term.
func TestLateBlocks(t *testing.T) {
	const ms = int64(time.Millisecond)
	const apart = 5_000 * ms // the clock of the owner shows so much less
	const fence = 7
	v := NewView(apart)
	block := func(sent, came int64) { v.Heard(came*ms+apart, fence, sent*ms) }
	silent := func(what string, now, least, most int64) {
		t.Helper()
		if got := int64(v.Silent(now*ms + apart)); got < least*ms || got > most*ms {
			t.Errorf("%s: silent for %v, want %d to %d ms", what, time.Duration(got), least, most)
		}
	}
	for at := int64(0); at < 2000; at += 100 {
		block(at, at+10)
	}
	silent("a block that came after 10 ms", 2000, 90, 100)
	block(1990, 2800)
	silent("one that came 800 ms later", 2800, 680, 810)
	v.Heard(2900*ms+apart, 0, 0)
	silent("one of an unknown time", 2900, 0, 0)
	v.Heard(3000*ms+apart, fence+1, 0)
	silent("the first one of another owner", 3000, 0, 0)
	if got := v.Fence(); got != fence+1 {
		t.Errorf("the fence is %d", got)
	}
}

// TestBlocksNeverCountTooEarly: however long blocks take and however clocks run against each other
// within the margin, none counts from before it was sent.
func TestBlocksNeverCountTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fast := rapid.Int64Range(-90, 90).Draw(t, "thousandths that the standby's clock is faster")
		apart := rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "apart")
		shows := func(real int64) int64 { return real + real/1000*fast + apart }
		v, sent, came := NewView(0), int64(0), int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "blocks") {
			sent += rapid.Int64Range(0, int64(time.Second)).Draw(t, "after")
			came = max(came, sent+rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "under way"))
			v.Heard(shows(came), 1, sent)
			if since := shows(came) - int64(v.Silent(shows(came))); since < shows(sent)-1000 {
				t.Fatalf("a block sent at %d counts from %d", shows(sent), since)
			}
		}
	})
}
