package orchtest

import (
	"bytes"
	"testing"

	"trunkline/engine/connection"
	"trunkline/engine/orchestration"
	"trunkline/fuzz/rounds"
)

// recorder keeps the changes an engine records, encoded, and checks that each is read back as it
// was written.
type recorder struct {
	t       *testing.T
	records [][]byte
	kinds   map[orchestration.ChangeKind]int
}

func (r *recorder) journal(c *orchestration.Change) uint64 {
	b := orchestration.AppendChange(nil, c)
	var back orchestration.Change
	if err := orchestration.ParseChange(b, &back); err != nil || !bytes.Equal(orchestration.AppendChange(nil, &back), b) {
		r.t.Errorf("%s: %v", c.Kind, err)
	}
	r.records = append(r.records, b)
	r.kinds[c.Kind]++
	return uint64(len(r.records))
}

// replay applies records, the first of which has index first, to an engine.
func replay(t *testing.T, e *orchestration.Engine, first int, records [][]byte) {
	t.Helper()
	var c orchestration.Call
	var ch orchestration.Change
	for i, b := range records {
		if err := orchestration.ParseChange(b, &ch); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if err := e.Apply(&c, &ch, uint64(first+i)); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		for j := range b {
			b[j] ^= 0xff // nothing may be kept of it
		}
	}
	for _, b := range records {
		for j := range b {
			b[j] ^= 0xff
		}
	}
}

// TestReplay: what an engine gave its journal makes an empty engine hold the same, after each of
// many random programs, piece by piece and all at once.
func TestReplay(t *testing.T) {
	runs, seed := rounds.Pick(150, rounds.Of(400, 500))/raceSlowdown, newSeed()
	t.Logf("seed %d", seed)
	rec := &recorder{t: t, kinds: make(map[orchestration.ChangeKind]int)}
	cfg := roomy()
	cfg.Journal = rec.journal
	r := newRunner()
	r.d = drive(cfg)
	again := orchestration.New(roomy())
	applied, most := 0, int64(0)
	r.atEnd = func() {
		replay(t, again, applied+1, rec.records[applied:])
		applied = len(rec.records)
		if got, want := digest(again), digest(r.d.e); got != want {
			t.Fatalf("digest %x, want %x after %d records", got, want, applied)
		}
		most = max(most, again.Active())
	}
	r.runPrograms(t, seed, runs, func() bool { return most >= 2 && len(rec.unseen()) == 0 })
	if most < 2 {
		t.Errorf("at most %d sessions were compared", most)
	}
	whole := orchestration.New(roomy())
	replay(t, whole, 1, rec.records)
	replay(t, again, applied+1, rec.records[applied:])
	if got, want := digest(whole), digest(again); got != want {
		t.Errorf("digest %x, want %x", got, want)
	}
	if live, back := r.d.e.Stats(), whole.Stats(); live.Sessions != back.Sessions || live.Envelopes != back.Envelopes {
		t.Errorf("%+v, want %+v", back, live)
	}
	for _, k := range rec.unseen() {
		t.Errorf("no %s among %d records", k, len(rec.records))
	}
}

// unseen returns the kinds of changes that no record has yet. Nothing drops an envelope here: there
// is room for all.
func (rec *recorder) unseen() (kinds []orchestration.ChangeKind) {
	for k := orchestration.ChangeEnvelope; k <= orchestration.ChangeSessionDrop; k++ {
		if rec.kinds[k] == 0 && k != orchestration.ChangeEnvelopeDrop {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// manyPrograms bounds the search for what a test must have seen: with the rarest kind of change in
// one of 50 programs, one of 10^17 tests has none.
const manyPrograms = 2_000

// runPrograms runs so many random programs, and more as long as what the test must have seen is
// missing: few are enough only by luck.
func (r *runner) runPrograms(t *testing.T, seed uint64, runs int, complete func() bool) {
	t.Helper()
	for n := 0; n < runs || n < manyPrograms && !complete(); n++ {
		if step, diff := r.run(makeProgram(seeded(seed, uint64(n)))); diff != "" {
			t.Fatalf("run %d step %d%s", n, step, diff)
		}
	}
}

// TestSnapshot: a snapshot that is taken while requests go on, and the changes since it was begun
// replayed on top of it, also those that it has already, make an empty engine hold the same as the
// one it was taken of.
func TestSnapshot(t *testing.T) {
	runs, seed := rounds.Pick(25, rounds.Of(60, 75))/raceSlowdown, newSeed()
	t.Logf("seed %d", seed)
	rec := &recorder{t: t, kinds: make(map[orchestration.ChangeKind]int)}
	cfg := roomy()
	cfg.Journal = rec.journal
	r := newRunner()
	r.d = drive(cfg)
	sessions := 0
	r.atEnd = func() {
		// Taken now, in the middle of the next program and at its end: records are of different
		// moments.
		begun := len(rec.records)
		var snapshot [][]byte
		var c orchestration.Call
		n := 0
		if err := r.d.e.WriteSnapshot(&c, func(b []byte) error {
			snapshot = append(snapshot, bytes.Clone(b))
			if n++; n%2 == 1 { // something happens between two records
				r.d.report(r.pids[n%2], report{agent: "s1", tokensIn: -1, tokensOut: -1})
				r.d.next(r.pids[0])
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		back := orchestration.New(roomy())
		for _, b := range snapshot {
			if err := back.LoadRecord(&c, b); err != nil {
				t.Fatal(err)
			}
		}
		from := max(begun-3, 0) // the ones before may be replayed as well
		replay(t, back, from+1, rec.records[from:])
		if got, want := digest(back), digest(r.d.e); got != want {
			t.Fatalf("digest %x, want %x: %d records of a snapshot, %d changes since", got, want, len(snapshot), len(rec.records)-begun)
		}
		sessions = max(sessions, int(back.Active()))
	}
	r.runPrograms(t, seed, runs, func() bool { return sessions >= 2 })
	if sessions < 2 {
		t.Errorf("at most %d sessions were compared", sessions)
	}
}

// digest asks for a digest at one time that all engines of a test share.
func digest(e *orchestration.Engine) uint64 {
	return e.Digest(&orchestration.Call{Now: connection.Instant{Mono: 1 << 50, Wall: 1 << 40}})
}
