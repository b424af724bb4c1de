package kernel

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/engine/store"

	"pgregory.net/rapid"
)

// hands works off the lanes of a recovery, each on a goroutine of its own.
type hands struct {
	r    *Recovery
	in   []chan func(*Lane) error
	busy sync.WaitGroup
	errs []error
}

func newHands(r *Recovery) *hands {
	h := &hands{r: r, errs: make([]error, len(r.lanes))}
	for i := range h.errs {
		in := make(chan func(*Lane) error, 4)
		h.in = append(h.in, in)
		go func() {
			for do := range in {
				if err := do(r.lanes[i]); h.errs[i] == nil {
					h.errs[i] = err
				}
				h.busy.Done()
			}
		}()
	}
	return h
}

func (h *hands) give(to store.Route, do func(*Lane) error) {
	if to.Lane == store.NoLane {
		return
	}
	h.busy.Add(1)
	h.in[to.Lane] <- func(l *Lane) error { l.Warm([]uint64{to.Hash}); return do(l) }
}

func (h *hands) idle() error {
	h.busy.Wait()
	return errors.Join(h.errs...)
}

// recoveredAlong is recovered along so many lanes. A photo without records stands for none.
func (t *tape) recoveredAlong(lanes int, p photo, cfg Config) (*Kernel, error) {
	cfg.Journal = nil
	k := New(cfg)
	r := k.Recover(lanes)
	h := newHands(r)
	defer func() {
		for _, in := range h.in {
			close(in)
		}
	}()
	for _, rec := range p.records {
		to, err := r.Route(rec, 0)
		if err != nil {
			return nil, errors.Join(err, h.idle())
		}
		h.give(to, func(l *Lane) error { _, err := l.Take(rec, 0, to.Hash); return err })
	}
	if err := h.idle(); err != nil {
		return nil, err
	}
	r.Lenient(p.through)
	for i, rec := range t.records[p.index:] {
		index := p.index + uint64(i) + 1
		if index == max(p.through, p.index)+1 {
			if err := h.idle(); err != nil {
				return nil, err
			}
			r.Settle()
		}
		to, err := r.Route(rec, index)
		if err != nil {
			return nil, errors.Join(err, h.idle())
		}
		h.give(to, func(l *Lane) error { _, err := l.Take(rec, index, to.Hash); return err })
	}
	if err := h.idle(); err != nil {
		return nil, err
	}
	_, err := r.Finish()
	return k, err
}

// TestLanesOfARandomProgram: along lanes comes back what comes back in one goroutine, from a
// snapshot and from the log alone, and goes on like it.
func TestLanesOfARandomProgram(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		journal := &tape{}
		cfg := snapshotConfig(journal)
		k, p, now := lived(t, rt, journal, cfg)
		lanes := rapid.IntRange(1, 5).Draw(rt, "lanes")
		then := drawDeeds(rt, "then", 30)
		for _, from := range []photo{p, {}} {
			one, err := journal.recovered(from, cfg)
			if err != nil {
				rt.Fatal(err)
			}
			many, err := journal.recoveredAlong(lanes, from, cfg)
			if err != nil {
				rt.Fatal(err)
			}
			if many.stateDigest() != k.stateDigest() || one.stateDigest() != k.stateDigest() || len(from.records) > 0 && many.Latest() != one.Latest() {
				rt.Fatalf("another state along %d lanes from %d records", lanes, len(from.records))
			}
			if many.created != one.created || many.readied != one.readied || many.byState != one.byState || many.total != one.total {
				rt.Fatal("other counts")
			}
			goOnAlike(rt, one, many, now, then)
		}
	})
}

// TestLanesOfManyChunks: tables of many chunks, of which nodes are free when it ends, and with more
// lanes than a shard takes.
func TestLanesOfManyChunks(t *testing.T) {
	journal := &tape{}
	cfg := snapshotConfig(journal)
	cfg.Defaults, cfg.MaxProcesses, cfg.ProcessRetention = unlimited(), 0, time.Minute
	k, now := New(cfg), at(0)
	rnd := rand.New(rand.NewPCG(5, 5))
	for i := range 60000 {
		deed{rnd.IntN(deedKinds - 1), rnd.IntN(6000), rnd.IntN(35), 0}.do(k, &now)
		if i%20000 == 0 {
			deed{deedSweep, 0, 0, 61}.do(k, &now)
		}
	}
	p := journal.photograph(t, k, nil)
	for _, lanes := range []int{-1, 1, 2, 3, 8, 1000} {
		for _, from := range []photo{p, {}} {
			back, err := journal.recoveredAlong(lanes, from, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if back.stateDigest() != k.stateDigest() {
				t.Errorf("%d lanes: another state", lanes)
			}
			oneOwnerEach(t, back)
		}
	}
}

// oneOwnerEach checks that every node is of one row or free.
func oneOwnerEach(t *testing.T, k *Kernel) {
	t.Helper()
	seen := make([]int, k.sched.nodes.used)
	for i := k.sched.nodes.free; i != none; i = k.sched.nodes.at(i).next {
		seen[i]++
	}
	for i := range k.shards {
		for slot := range k.shards[i].used {
			if r := k.shards[i].row(slot); r.created != 0 {
				seen[r.node]++
				if ref := slot<<k.shardBits | uint32(i); k.sched.nodes.at(r.node).ref != ref {
					t.Fatalf("node %d is of %d, not of %d", r.node, k.sched.nodes.at(r.node).ref, ref)
				}
			}
		}
	}
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("node %d has %d owners", i, n)
		}
	}
}

// TestLanesOverALivingKernel: a recovery of nothing leaves a kernel as it is.
func TestLanesOverALivingKernel(t *testing.T) {
	journal := &tape{}
	k, now := New(snapshotConfig(journal)), at(0)
	for i := range 2000 {
		deed{i * 7 % deedKinds, i * 13 % 12, i * 5 % 35, i % 3 / 2}.do(k, &now)
		if i%100 == 0 {
			before := k.stateDigest()
			if _, err := k.Recover(3).Finish(); err != nil || k.stateDigest() != before {
				t.Fatalf("after %d: %v", i, err)
			}
			oneOwnerEach(t, k)
		}
	}
}

// TestLanesRefuse: what one goroutine refuses is refused along lanes.
func TestLanesRefuse(t *testing.T) {
	f := func(why string, target error, changes ...Change) {
		t.Helper()
		journal := &tape{}
		for _, c := range changes {
			journal.records = append(journal.records, AppendChange(nil, &c))
		}
		_, one := journal.recovered(photo{}, Config{})
		_, many := journal.recoveredAlong(2, photo{}, Config{})
		if !errors.Is(one, target) || !errors.Is(many, target) || !strings.Contains(many.Error(), why) {
			t.Errorf("%v along lanes, %v without, want %s", many, one, why)
		}
	}
	p, q := []byte("p"), []byte("q")
	create := func(pid []byte, seq, ready uint64) Change {
		return Change{Kind: ChangeCreate, PID: pid, Seq: seq, State: Ready, ReadySeq: ready}
	}
	f("process exists", errNotApplicable, create(p, 1, 1), create(p, 2, 2))
	f(createdOutOfOrder, errNotApplicable, create(p, 2, 1), create(q, 2, 2))
	f(readiedOutOfOrder, errNotApplicable, create(p, 1, 5), create(q, 2, 5))
	f("no such process", errNotApplicable, Change{Kind: ChangeTransition, PID: p, State: Running})
	f("no such log", errNotApplicable, Change{Kind: ChangeRateDrop, UserID: p})
	f(readiedOutOfOrder, errNotApplicable, create(p, 1, 7), create(q, 2, 8), Change{Kind: ChangeTransition, PID: q, State: Running},
		Change{Kind: ChangeTransition, PID: q, State: Ready, ReadySeq: 8})
	f("create record", ErrBadChange, Change{Kind: ChangeCreate, Seq: 1})
	f("unknown record", ErrBadChange, Change{Kind: 77, PID: p})
	f("create record", ErrBadChange, Change{Kind: ChangeCreate, PID: p, Seq: 1, Quota: Quota{-1}})
	f("transition record", ErrBadChange, Change{Kind: ChangeTransition, PID: p, State: NumStates})
	f("rate_stamp record", ErrBadChange, Change{Kind: ChangeRateStamp, UserID: make([]byte, maxIDLen+1)})
	r := New(Config{}).Recover(2)
	c := create(p, 1, 1)
	if _, err := r.Route(append(AppendChange(nil, &c), 0), 1); !errors.Is(err, ErrBadChange) {
		t.Errorf("a byte more: %v", err)
	}
	if _, err := r.Route(AppendChange(nil, &c)[:9], 1); !errors.Is(err, ErrShortChange) {
		t.Errorf("cut off: %v", err)
	}
}

// TestLanesRefuseDamagedSnapshots: the same for the records of a snapshot.
func TestLanesRefuseDamagedSnapshots(t *testing.T) {
	f := func(why string, records ...string) {
		t.Helper()
		var p photo
		for _, r := range records {
			p.records = append(p.records, unhex(t, r))
		}
		if _, err := (&tape{}).recoveredAlong(2, p, Config{}); !errors.Is(err, errBadSnapshot) || !strings.Contains(err.Error(), why) {
			t.Errorf("got %v, want %s", err, why)
		}
	}
	f("ends early", beginHex)
	f("ends early", beginHex, rowHex, logHex)
	f("outside", rowHex)
	f("outside", beginHex, rowHex, logHex, endHex, rowHex)
	f("not new", beginHex, beginHex)
	f("does not have", beginHex, rowHex, endHex)
	f("process \"p1\" is in it twice", beginHex, rowHex, rowHex)
	f("log of user \"u1\" is in it twice", beginHex, logHex, logHex)
	f("creation sequence", beginHex, rowHex, strings.Replace(rowHex, "027031", "027032", 1), "848000 01 04 02 00")
	f("kind 5", beginHex, "838000 01 05 00")
	f("process record", beginHex, strings.Replace(rowHex, "01 02 09 07", "02 02 09 07", 1))
	f("log record", beginHex, "8b8000 01 03 027531 06 8008 00 05 00")
}

// TestRank: whatever the range of the keys, they are sorted, and equal ones keep their order.
func TestRank(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, digitFrom - 1, digitFrom, 3 * digitFrom} {
		different := rnd.Perm(n)
		for _, bound := range []uint64{0, 1, 2, 2048, 2049, 1 << 22, 1 << 41, 1<<64 - 1} {
			r := make([]ranked, n)
			for i := range r {
				key := 7 + uint64(different[i])*(closeKeys-1) // for bound 0
				if bound > 0 {
					key = rnd.Uint64N(bound)
				}
				r[i] = ranked{key, uint32(i)}
			}
			want := slices.Clone(r)
			slices.SortStableFunc(want, func(a, b ranked) int { return cmp.Compare(a.key, b.key) })
			if !slices.Equal(rank(r, nil), want) {
				t.Errorf("%d keys below %d are not sorted", n, bound)
			}
		}
	}
}
