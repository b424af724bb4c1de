package kernel

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// tape is a journal in memory: record i has index i+1.
type tape struct {
	mu      sync.Mutex
	records [][]byte
}

func (t *tape) journal(c *Change) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records = append(t.records, AppendChange(nil, c))
	return uint64(len(t.records))
}

func (t *tape) last() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(len(t.records))
}

// photo is a snapshot with the indexes at which it began and ended.
type photo struct {
	index, through uint64
	records        [][]byte
}

// photograph takes a snapshot of k; between is called with each record, when no lock is held.
func (t *tape) photograph(tb testing.TB, k *Kernel, between func(rec []byte)) photo {
	p := photo{index: t.last()}
	err := k.WriteSnapshot(func(rec []byte) error {
		p.records = append(p.records, append([]byte(nil), rec...))
		if between != nil {
			between(rec)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	p.through = t.last()
	return p
}

// recovered loads p into a new kernel and replays the tape behind it.
func (t *tape) recovered(p photo, cfg Config) (*Kernel, error) {
	cfg.Journal = nil
	k := New(cfg)
	for i, rec := range p.records {
		if err := k.loadSnapshotRecord(rec); err != nil {
			return nil, fmt.Errorf("record %d: %w", i, err)
		}
	}
	k.Lenient(p.through)
	for i, rec := range t.records[p.index:] {
		c, _, err := ParseChange(rec)
		if err == nil {
			_, err = k.Apply(&c, p.index+uint64(i)+1)
		}
		if err != nil {
			return nil, err
		}
	}
	return k, k.finishLoad()
}

// deed is one operation of a random program.
type deed struct{ kind, pid, arg, wait int }

// do carries out d and prints what came of it.
func (d deed) do(k *Kernel, now *Instant) string {
	now.Mono += int64(d.wait) * int64(time.Second)
	var out PCB
	pid := fmt.Appendf(nil, "p%d", d.pid)
	switch d.kind {
	case deedCreate, deedCreateToo:
		a := args(fmt.Sprintf("%s/u%d", pid, d.arg%7), Priority(d.arg%NumPriorities))
		a.NoSchedule = d.arg%3 == 0
		res, rate := k.Create(*now, a, &out)
		return fmt.Sprint(res, rate, out.Created)
	case deedNext:
		res := k.Next(*now, d.arg%4 == 0, &out)
		return fmt.Sprintf("%v %s", res, out.PID)
	case deedTransition, deedTransitionToo:
		return k.Transition(*now, pid, nil, State(d.arg%NumStates), []byte("why"), &out).String() + out.State.String()
	case deedTerminate:
		return k.Terminate(*now, pid, nil, &out).String()
	case deedUsage:
		return fmt.Sprint(k.RecordUsage(*now, pid, nil, &Usage{TokensIn: int64(d.arg)}, &out.Usage), out.Usage)
	case deedRate:
		return fmt.Sprint(k.CheckRate(*now, fmt.Appendf(nil, "u%d", d.arg), true))
	case deedSchedule:
		return fmt.Sprint(k.Schedule(*now, pid, &out), out.State)
	case deedDefaults:
		return fmt.Sprint(k.SetDefaults(*now, &QuotaPatch{Set: 1, Values: Quota{int32(d.arg)}}))
	default:
		return fmt.Sprint(k.Sweep(*now))
	}
}

// The kinds of deeds; some are there twice, to be done more often.
const (
	deedCreate = iota
	deedCreateToo
	deedNext
	deedTransition
	deedTransitionToo
	deedTerminate
	deedUsage
	deedRate
	deedSchedule
	deedDefaults
	deedSweep // the last: some programs go without
	deedKinds
)

// TestDeedsMakeEveryKindOfChange: the deeds that the tests of snapshots and recoveries draw from
// produce every kind of change, so one that a snapshot or a recovery forgets is found.
func TestDeedsMakeEveryKindOfChange(t *testing.T) {
	journal := &tape{}
	k, now := New(snapshotConfig(journal)), at(0)
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 5000 {
		deed{rnd.IntN(deedKinds), rnd.IntN(12), rnd.IntN(35), rnd.IntN(40)}.do(k, &now)
	}
	seen := make(map[ChangeKind]bool)
	for _, rec := range journal.records {
		c, _, err := ParseChange(rec)
		if err != nil {
			t.Fatal(err)
		}
		seen[c.Kind] = true
	}
	for kind := ChangeCreate; int(kind) < len(changeNames); kind++ {
		if !seen[kind] {
			t.Errorf("no deed makes a %s: add one to deed.do", kind)
		}
	}
}

func drawDeeds(t *rapid.T, what string, most int) []deed {
	one := rapid.Custom(func(t *rapid.T) deed {
		return deed{rapid.IntRange(0, deedKinds-1).Draw(t, "kind"), rapid.IntRange(0, 11).Draw(t, "pid"),
			rapid.IntRange(0, 34).Draw(t, "arg"), rapid.SampledFrom([]int{0, 0, 0, 1, 20, 61}).Draw(t, "wait")}
	})
	return rapid.SliceOfN(one, 0, most).Draw(t, what)
}

func snapshotConfig(t *tape) Config {
	q := unlimited()
	q[RateLimitBurst] = 6
	return Config{
		Shards:           minShards,
		MaxProcesses:     8,
		DequeueLease:     30 * time.Second,
		ProcessRetention: time.Minute,
		Defaults:         q,
		Journal:          t.journal,
	}
}

// lived returns a kernel after a random program, and a snapshot that was taken meanwhile.
func lived(t *testing.T, rt *rapid.T, journal *tape, cfg Config) (k *Kernel, p photo, now Instant) {
	k, now = New(cfg), at(0)
	run := func(deeds []deed) {
		for _, d := range deeds {
			d.do(k, &now)
		}
	}
	run(drawDeeds(rt, "before", 40))
	during := drawDeeds(rt, "during", 30)
	p = journal.photograph(t, k, func([]byte) {
		n := min(len(during), 1+len(during)%4)
		run(during[:n])
		during = during[n:]
	})
	run(drawDeeds(rt, "after", 20))
	return k, p, now
}

// TestSnapshotOfARandomProgram: whatever happened before, while and after a snapshot was taken, it
// and the records behind it give the kernel back, and that goes on like the first.
func TestSnapshotOfARandomProgram(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		journal := &tape{}
		cfg := snapshotConfig(journal)
		k, p, now := lived(t, rt, journal, cfg)
		back, err := journal.recovered(p, cfg)
		if err != nil {
			rt.Fatal(err)
		}
		if back.stateDigest() != k.stateDigest() {
			rt.Fatal("another state")
		}
		goOnAlike(rt, k, back, now, drawDeeds(rt, "then", 40))
	})
}

// goOnAlike does the same with both kernels.
func goOnAlike(t interface{ Fatalf(string, ...any) }, a, b *Kernel, now Instant, deeds []deed) {
	deeds = append(deeds, deed{kind: deedSweep, wait: 29}, deed{kind: deedNext, arg: 1},
		deed{kind: deedNext, arg: 1, wait: 31}, deed{kind: deedSweep, wait: 100})
	for range 12 {
		deeds = append(deeds, deed{kind: deedNext, arg: 4})
	}
	for i, d := range deeds {
		nowB := now
		got, want := d.do(b, &nowB), d.do(a, &now)
		if got != want || a.stateDigest() != b.stateDigest() {
			t.Fatalf("%d: %+v gives %s, want %s", i, d, got, want)
		}
	}
}

// TestSnapshotAtRest: without records behind it a snapshot alone gives the state, under other
// settings too, and a snapshot of that has the same records.
func TestSnapshotAtRest(t *testing.T) {
	journal := &tape{}
	cfg := snapshotConfig(journal)
	k, now := New(cfg), at(0)
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 3000 {
		deed{rnd.IntN(deedKinds - 1), rnd.IntN(12), rnd.IntN(35), rnd.IntN(2)}.do(k, &now)
	}
	p := journal.photograph(t, k, nil)
	cfg.Shards, cfg.MaxProcesses = 512, 3
	back, err := journal.recovered(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if back.stateDigest() != k.stateDigest() || back.Latest() != k.Latest() || back.Defaults() != k.Defaults() {
		t.Error("another state")
	}
	again := map[string]int{}
	for _, rec := range p.records {
		again[string(rec)]++
	}
	for _, rec := range journal.photograph(t, back, nil).records {
		again[string(rec)]--
	}
	for rec, n := range again {
		if n != 0 {
			t.Errorf("%+d of %x", n, rec)
		}
	}
}

// TestSnapshotBetweenBatches: shards of several batches, of which processes go and come again in
// slots that were passed or are yet to come.
func TestSnapshotBetweenBatches(t *testing.T) {
	journal := &tape{}
	cfg := snapshotConfig(journal)
	cfg.Defaults, cfg.MaxProcesses, cfg.ProcessRetention = unlimited(), 0, time.Millisecond
	k, now := New(cfg), at(0)
	const n = minShards * snapshotBatch * 5 / 2
	rnd := rand.New(rand.NewPCG(7, 7))
	make1 := func(pid int) { k.Create(now, args(fmt.Sprintf("p%d/u%d", pid, rnd.IntN(3)), Normal), nil) }
	for pid := range n {
		make1(pid)
		now.Mono += int64(10 * time.Millisecond)
	}
	gone := map[int]bool{}
	calls := 0
	p := journal.photograph(t, k, func([]byte) {
		if calls++; calls%2 > 0 {
			return
		}
		for range 4 {
			pid := rnd.IntN(n)
			if gone[pid] = !gone[pid]; gone[pid] {
				k.Terminate(now, fmt.Appendf(nil, "p%d", pid), nil, nil)
			} else {
				make1(pid)
			}
			deed{deedNext + rnd.IntN(deedDefaults-deedNext), rnd.IntN(n), rnd.IntN(35), 0}.do(k, &now)
		}
		if calls%64 == 0 {
			now.Mono += int64(10 * time.Millisecond)
			k.Sweep(now)
		}
	})
	back, err := journal.recovered(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if back.stateDigest() != k.stateDigest() {
		t.Error("another state")
	}
}

// TestSnapshotMeetsThemTwiceOrNever: a process that went and came again moves from a slot that was
// copied to one that is yet to be, so that the snapshot has it twice; another the other way, so
// that the snapshot misses it. So with the logs of users.
func TestSnapshotMeetsThemTwiceOrNever(t *testing.T) {
	journal := &tape{}
	cfg := snapshotConfig(journal)
	cfg.Defaults, cfg.MaxProcesses = unlimited(), 0
	k, now := New(cfg), at(0)
	var pids, users [][]byte // of one shard each
	create := func(pid []byte) { k.Create(now, args(string(pid)+"/u", High), nil) }
	for i := 0; len(pids) < 300 || len(users) < 300; i++ {
		id := fmt.Appendf(nil, "i%d", i)
		if sh, _ := k.home(id); sh == &k.shards[5] && len(pids) < 300 {
			pids = append(pids, id)
			create(id)
		}
		if s, _ := k.rates.home(id); s == &k.rates.shards[5] && len(users) < 300 {
			users = append(users, id)
			k.CheckRate(now, id, true)
		}
	}
	const early, late = 5, 250 // slots in different batches
	now.Mono += int64(time.Hour + time.Second)
	for i, u := range users {
		if i != early && i != late {
			k.CheckRate(now, u, true)
		}
	}
	met := map[string]int{}
	p := journal.photograph(t, k, func(rec []byte) {
		kind, fields, _ := parseSnapshotRecord(rec)
		d := changeReader{b: fields}
		id := string(d.str())
		met[fmt.Sprint(kind, id)]++
		switch {
		case kind == snapshotProcess && id == string(pids[0]):
			k.Terminate(now, pids[early], nil, nil)
			k.Terminate(now, pids[late], nil, nil)
			k.sweepSome(Instant{Mono: now.Mono + int64(2*time.Minute)}) // not the logs
			create(pids[early])
			create(pids[late])
		case kind == snapshotLog && id == string(users[0]):
			k.Sweep(now)
			k.CheckRate(now, users[early], true)
			k.CheckRate(now, users[late], true)
		}
	})
	for slot, want := range map[int]int{0: 1, early: 2, late: 0} {
		if n := met[fmt.Sprint(snapshotProcess, string(pids[slot]))]; n != want {
			t.Errorf("the process of slot %d is met %d times, want %d", slot, n, want)
		}
		if n := met[fmt.Sprint(snapshotLog, string(users[slot]))]; n != want {
			t.Errorf("the log of slot %d is met %d times, want %d", slot, n, want)
		}
	}
	back, err := journal.recovered(p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if back.stateDigest() != k.stateDigest() {
		t.Error("another state")
	}
}

// TestSnapshotsAmidEverything takes snapshots while operations run at once.
func TestSnapshotsAmidEverything(t *testing.T) {
	journal := &tape{}
	cfg := snapshotConfig(journal)
	cfg.Defaults, cfg.MaxProcesses, cfg.MaxRateLimitUsers = unlimited(), 30, 5
	cfg.DequeueLease, cfg.ProcessRetention = 20*time.Millisecond, 30*time.Millisecond
	k := New(cfg)
	var photos []photo
	together(5, func(i int) {
		if i == 0 {
			for range 20 {
				photos = append(photos, journal.photograph(t, k, func([]byte) { time.Sleep(10 * time.Microsecond) }))
			}
			return
		}
		rnd := rand.New(rand.NewPCG(5, uint64(i)))
		for n := range 3000 {
			now := at(time.Duration(n) * time.Millisecond / 4)
			deed{rnd.IntN(deedKinds), rnd.IntN(40), rnd.IntN(35), 0}.do(k, &now)
		}
	})
	for i, p := range photos {
		back, err := journal.recovered(p, cfg)
		if err != nil {
			t.Fatalf("snapshot %d from %d to %d of %d: %v", i, p.index, p.through, journal.last(), err)
		}
		if back.stateDigest() != k.stateDigest() {
			t.Errorf("snapshot %d: another state", i)
		}
	}
}
