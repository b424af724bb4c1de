package projects

import (
	"math"
	"testing"

	"trunkline/engine/projects/codec"
)

// TestOtherLimits: what is not a default is in force, at the limit and one above.
func TestOtherLimits(t *testing.T) {
	l := Limits{JournalEvents: 100, ReplayCacheEntries: 2, LogEventLevel: "WARN"}.WithDefaults()
	j := NewJournal(0, &l)
	fill(j, 100, nil)
	if st := j.Status(); st.Oldest != 1 {
		t.Errorf("%+v", st)
	}
	fill(j, 1, nil)
	if st := j.Status(); st.Oldest != 2 || st.Last != 101 {
		t.Errorf("%+v", st)
	}
	if _, got := j.Copy(nil, math.MaxInt, &Cursor{Next: 1, All: true}, math.MaxUint64); got != CopiedLost {
		t.Errorf("a lost cursor: %v", got)
	}

	r, sum := NewReplays(&l), Sum{}
	for i := range 3 {
		r.Begin(nil, codec.ID{byte(i)}, &sum, new(asker), 1, new(Origin))
		r.End(codec.ID{byte(i)}, &Answer{Line: []byte("x")}, true)
	}
	for i, want := range []Outcome{Unknown, Stored, Stored} {
		if _, got, _ := r.Look(nil, codec.ID{byte(i)}, &sum, nil, 1); got != want {
			t.Errorf("answer %d: %v, want %v", i, got, want)
		}
	}

	for _, level := range Levels() {
		if want := level == "ERROR" || level == "WARN"; l.logs(level) != want {
			t.Errorf("%s is sent: %v", level, !want)
		}
	}
}
