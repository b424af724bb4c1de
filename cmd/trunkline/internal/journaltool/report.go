package journaltool

import (
	"fmt"
	"time"

	"trunkline/engine/journal"
)

// maxDamages is how many damages a Report lists. There may be as many as blocks; what is behind the
// last one listed is then taken for lost.
const maxDamages = 100

// Report is what is known of a journal after it was verified.
type Report struct {
	Dir   string `json:"dir"`
	Mode  string `json:"mode"`
	Sound bool   `json:"sound"`
	// Closed is set when a server closed the journal after its last block; else it died, which is
	// no damage.
	Closed bool `json:"closed"`
	Totals
	Snapshots []Snapshot `json:"snapshots"`
	// Rows counts what agent threads keep beside the journal.
	Rows uint64 `json:"rows"`
	// Torn is the part of a record at the end of the log that a crash left: it was never
	// acknowledged, and the next start cuts it off.
	Torn *Place `json:"torn_tail"`
	// LostMarks are the files with the mark that are missing or torn. One of two is no damage: the
	// other one guards the log, and the next start makes it again.
	LostMarks []string `json:"lost_marks"`
	// Damages are the first maxDamages of DamageCount, in the order of the log and then of the
	// snapshots.
	Damages     []Damage  `json:"damages"`
	DamageCount int       `json:"damage_count"`
	Recovery    *Recovery `json:"recovery"`

	rows    bool                 // whether rows are damaged
	refused *journal.DamageError // why nothing but the beginning is shown, or nothing at all
	highest journal.Index        // that was ever seen, also if it cannot be had
}

// Totals is what is in a log. Times are nil for an empty one.
type Totals struct {
	Epochs     uint64     `json:"epochs"`
	FirstEpoch uint64     `json:"first_epoch"`
	LastEpoch  uint64     `json:"last_epoch"`
	FirstIndex uint64     `json:"first_index"`
	LastIndex  uint64     `json:"last_index"`
	Records    uint64     `json:"records"`
	Claims     uint64     `json:"claims"`
	Blocks     uint64     `json:"blocks"`
	Bytes      uint64     `json:"bytes"`
	FirstTime  *time.Time `json:"first_time"`
	LastTime   *time.Time `json:"last_time"`
}

func (t *Totals) add(b *journal.BlockView) {
	at := moment(b.Time)
	if t.Blocks == 0 {
		t.FirstIndex, t.FirstTime, t.FirstEpoch = b.First, &at, b.Epoch
	}
	if b.Epoch != t.LastEpoch {
		t.Epochs++
	}
	t.LastIndex, t.LastTime, t.LastEpoch = b.Last, &at, b.Epoch
	t.Blocks++
	t.Bytes += uint64(b.Bytes)
	if b.Claim {
		t.Claims++
	} else {
		t.Records += b.Last - b.First + 1
	}
}

// Snapshot is a generation.
type Snapshot struct {
	Generation uint64    `json:"generation"`
	Index      uint64    `json:"index"`
	Through    uint64    `json:"through"`
	Epoch      uint64    `json:"epoch"`
	Time       time.Time `json:"time"`
	Bytes      uint64    `json:"bytes"`
	Records    uint64    `json:"records"`
	Error      string    `json:"error,omitempty"`

	unlisted bool // whether a start trips over it although it would not read it
	passed   bool // whether a start passes over it
}

func snapshotOf(s *journal.SnapshotInfo) Snapshot {
	return Snapshot{Generation: s.Number, Index: s.Index, Through: s.Through, Epoch: s.Epoch, Time: moment(s.Time), Bytes: s.Bytes}
}

// Place is a place in a file.
type Place struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

// Damage is something that is not as it was written.
type Damage struct {
	// Where names a file, a block or a snapshot.
	Where string `json:"where"`
	// Index is the first index that cannot be had, 0 where none is known.
	Index uint64 `json:"index"`
	// Until is the first index behind it that can be had again, 0 for none.
	Until uint64 `json:"until"`
	Error string `json:"error"`

	snapshot bool
	cut      journal.Index // the end of the last block before it
}

// damaged adds a damage of the log. Behind the last one that fits nothing is taken to be good.
func (r *Report) damaged(d Damage) {
	r.DamageCount++
	switch n := len(r.Damages); {
	case n < maxDamages:
		r.Damages = append(r.Damages, d)
	case !d.snapshot:
		r.Damages[n-1].Until = 0
	}
}

// refuse notes that a server does not even open the directory. Where the walk ended at the same
// place, that is reported already.
func (r *Report) refuse(damage *journal.DamageError) {
	r.refused = damage
	if n := len(r.Damages); n > 0 && r.Damages[n-1].Until == 0 {
		return
	}
	r.damaged(Damage{Where: damage.Where, Index: damage.Index, Error: words(damage), cut: max(damage.Index, 1) - 1})
}

// begins returns the first index that the log holds, in whatever state; 0 if it is empty.
func (r *Report) begins() journal.Index {
	first := r.FirstIndex
	for _, d := range r.Damages {
		if !d.snapshot && (first == 0 || d.Index < first) {
			first = d.Index
		}
	}
	return first
}

// Err returns the first damage as an error, nil for a sound journal.
func (r *Report) Err() error {
	if len(r.Damages) == 0 {
		return nil
	}
	d := r.Damages[0]
	more := ""
	if r.DamageCount > 1 {
		more = fmt.Sprintf(", and %d more", r.DamageCount-1)
	}
	return fmt.Errorf("the journal in %s is damaged at index %d (%s): %s%s", r.Dir, d.Index, d.Where, d.Error, more)
}
