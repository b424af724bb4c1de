package journaltool

import (
	"fmt"
	"slices"

	"trunkline/engine/journal"
)

// Recovery is what can be done about a damaged journal.
type Recovery struct {
	// Starts is set when a server starts on it as it is: what is damaged is older than the newest
	// snapshot, or is a snapshot that a start passes over.
	Starts bool `json:"starts"`
	// Possible is set when a server started with --recover-to-index Index starts and has everything
	// up to it. Only a backup helps where neither is.
	Possible bool   `json:"possible"`
	Index    uint64 `json:"index"`
	// LosesFrom and LosesTo are the records given up by that, 0 for none. LosesTo is the last one
	// that is known of; 0 if none is.
	LosesFrom uint64 `json:"loses_from"`
	LosesTo   uint64 `json:"loses_to"`
	// LosesSnapshots are the generations given up.
	LosesSnapshots []uint64 `json:"loses_snapshots"`

	rows bool // whether rows of agent threads are damaged
	open bool // whether there may be more than is known of
}

// setVerdict draws the conclusion from what was found; mendable reports whether an operator can
// make a server open the directory at all.
func (r *Report) setVerdict(mendable bool) {
	if mendable {
		r.beginning()
	}
	r.Sound = r.DamageCount == 0
	if r.Sound {
		return
	}
	r.Recovery = &Recovery{LosesSnapshots: []uint64{}, rows: r.rows}
	if !mendable {
		return
	}
	r.Recovery.Starts = r.starts(0)
	if r.Recovery.Starts {
		r.Recovery.passOver(r.Snapshots)
	} else if to := r.recoverable(); to > 0 {
		r.Recovery.recover(r, to)
	}
}

// beginning checks that what the log no longer holds is in a snapshot.
func (r *Report) beginning() {
	first := r.begins()
	if first <= 1 || slices.ContainsFunc(r.Snapshots, func(s Snapshot) bool { return s.Index+1 >= first }) {
		return
	}
	r.damaged(Damage{Where: r.Dir, Index: 1, Until: first, Error: fmt.Sprintf("the log begins at index %d, and no snapshot holds what was before", first)})
}

// recoverable returns the highest index to which a server could recover, 0 for none.
func (r *Report) recoverable() journal.Index {
	to := []journal.Index{r.LastIndex}
	for _, d := range r.Damages {
		if !d.snapshot && d.cut <= r.LastIndex {
			to = append(to, d.cut)
		}
	}
	slices.Sort(to)
	for _, i := range slices.Backward(to) {
		if i > 0 && r.starts(i) {
			return i
		}
	}
	return 0
}

// starts reports whether a server would start, with --recover-to-index if to is not 0.
func (r *Report) starts(to journal.Index) bool {
	forced := to != 0
	if !forced {
		to = r.LastIndex
		if r.refused != nil || slices.ContainsFunc(r.Snapshots, func(s Snapshot) bool { return s.unlisted }) {
			return false
		}
	}
	s := r.startingPoint(to, forced)
	if s == nil {
		return false
	}
	if r.begins() > s.Index+1 && to > s.Index {
		return false
	}
	return !slices.ContainsFunc(r.Damages, func(d Damage) bool {
		return !d.snapshot && d.Index <= to && (d.Until == 0 || s.Index+1 < d.Until) || !forced && !d.snapshot && d.Until == 0
	})
}

// startingPoint returns the snapshot that a start reads: an empty one if there is none, nil if it
// is damaged.
func (r *Report) startingPoint(to journal.Index, forced bool) *Snapshot {
	for i := range slices.Backward(r.Snapshots) {
		s := &r.Snapshots[i]
		switch {
		case s.Error == "" && s.Through <= to:
			return s
		case !forced && !s.passed:
			return nil
		}
	}
	return &Snapshot{}
}

func (v *Recovery) passOver(all []Snapshot) {
	for _, s := range all {
		if s.passed {
			v.LosesSnapshots = append(v.LosesSnapshots, s.Generation)
		}
	}
}

func (v *Recovery) recover(r *Report, to journal.Index) {
	v.Possible, v.Index = true, to
	if v.open = r.refused != nil; v.open || r.highest > to {
		v.LosesFrom = to + 1
	}
	if r.highest > to {
		v.LosesTo = r.highest
	}
	for _, s := range r.Snapshots {
		if s.Error != "" || s.Through > to {
			v.LosesSnapshots = append(v.LosesSnapshots, s.Generation)
		}
	}
}

// Advice returns in words what can be done.
func (v *Recovery) Advice() string {
	switch {
	case v.rows:
		return "messages of agent threads cannot be read; restore a backup"
	case v.Starts && len(v.LosesSnapshots) > 0:
		return fmt.Sprintf("a server starts on it and loses no record; it gives up the snapshots %v", v.LosesSnapshots)
	case v.Starts:
		return "a server starts on it: the newest snapshot is behind the damage, which goes with the log before it when two more snapshots are written"
	case !v.Possible:
		return "no index can be recovered to; restore a backup"
	}
	text := fmt.Sprintf("trunkline serve --recover-to-index %d keeps all up to index %d", v.Index, v.Index)
	switch {
	case v.LosesFrom == 0:
		text += " and loses no record"
	case v.open && v.LosesTo == 0:
		text += fmt.Sprintf(" and loses for good whatever is at %d and after", v.LosesFrom)
	case v.open:
		text += fmt.Sprintf(" and loses %d to %d for good, and whatever is after", v.LosesFrom, v.LosesTo)
	default:
		text += fmt.Sprintf(" and loses %d to %d for good", v.LosesFrom, v.LosesTo)
	}
	if len(v.LosesSnapshots) > 0 {
		text += fmt.Sprintf("; it gives up the snapshots %v", v.LosesSnapshots)
	}
	return text
}
