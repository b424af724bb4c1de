package orchtest

import (
	"bytes"
	"testing"

	"trunkline/engine/orchestration"
)

// recorder keeps the changes an engine tells, encoded, and checks that each is read back as it was written.
type recorder struct {
	t       *testing.T
	records [][]byte
	kinds   map[orchestration.ChangeKind]int
}

func (r *recorder) journal(c *orchestration.Change) {
	b := orchestration.AppendChange(nil, c)
	var back orchestration.Change
	if err := orchestration.ParseChange(b, &back); err != nil || !bytes.Equal(orchestration.AppendChange(nil, &back), b) {
		r.t.Errorf("%s: %v", c.Kind, err)
	}
	r.records = append(r.records, b)
	r.kinds[c.Kind]++
}

// replay applies records to an engine.
func replay(t *testing.T, e *orchestration.Engine, records [][]byte) {
	t.Helper()
	var c orchestration.Call
	var ch orchestration.Change
	for i, b := range records {
		if err := orchestration.ParseChange(b, &ch); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if err := e.Apply(&c, &ch); err != nil {
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

// TestReplay: what an engine told its journal makes an empty engine hold the same, after each of many random programs, piece by piece
// and all at once.
func TestReplay(t *testing.T) {
	runs, seed := 4_000/raceSlowdown, newSeed()
	if testing.Short() {
		runs = min(runs, 400)
	}
	t.Logf("seed %d", seed)
	rec := &recorder{t: t, kinds: make(map[orchestration.ChangeKind]int)}
	cfg := roomy()
	cfg.Journal = rec.journal
	r := newRunner()
	r.d = drive(cfg)
	again := orchestration.New(roomy())
	applied, most := 0, int64(0)
	r.atEnd = func() {
		replay(t, again, rec.records[applied:])
		applied = len(rec.records)
		if got, want := again.Digest(), r.d.e.Digest(); got != want {
			t.Fatalf("digest %x, want %x after %d records", got, want, applied)
		}
		most = max(most, again.Active())
	}
	for n := range runs {
		p := makeProgram(seeded(seed, uint64(n)))
		if step, diff := r.run(p); diff != "" {
			t.Fatalf("run %d step %d%s", n, step, diff)
		}
	}
	if most < 2 {
		t.Errorf("at most %d sessions were compared", most)
	}
	whole := orchestration.New(roomy())
	replay(t, whole, rec.records)
	replay(t, again, rec.records[applied:])
	if got, want := whole.Digest(), again.Digest(); got != want {
		t.Errorf("digest %x, want %x", got, want)
	}
	if live, back := r.d.e.Stats(), whole.Stats(); live.Sessions != back.Sessions || live.Envelopes != back.Envelopes {
		t.Errorf("%+v, want %+v", back, live)
	}
	for k := orchestration.ChangeEnvelope; k <= orchestration.ChangeSessionDrop; k++ {
		if rec.kinds[k] == 0 && k != orchestration.ChangeEnvelopeDrop {
			t.Errorf("no %s among %d records", k, len(rec.records))
		}
	}
}
