package workspace

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"trunkline/engine/exacta/fault"
)

// keptPoints is how many rollback points Prune keeps (exacta §4.18).
const keptPoints = 10

// LoadPoint reads a rollback point: FS-001 if there is none, ST-002 if it is damaged.
func (p *Project) LoadPoint(id string) (*Point, *fault.Fault) {
	if !isID(id) {
		return nil, fault.New("FS-001", "missing: rollback point", "rollback point")
	}
	pt := &Point{ID: id, p: p}
	d, err := pt.folder(false)
	if err != nil {
		return nil, faultOf(err, pt.rel())
	}
	defer d.close()
	text, _, err := d.read("manifest.json", maxStored)
	if err == unix.ENOENT {
		return nil, faultOf(err, pt.rel())
	}
	if err != nil {
		return nil, damaged(faultOf(err, pt.rel()+"/manifest.json").Detail)
	}
	pt, problem := parseManifest(p, id, text)
	if problem != "" {
		return nil, damaged("rollback/" + id + "/manifest.json: " + problem)
	}
	return pt, nil
}

// Points returns all readable rollback points, the newest first.
func (p *Project) Points() ([]*Point, *fault.Fault) {
	points, _, f := p.points()
	return points, f
}

// points returns all readable points, the newest first, and the names of folders without a
// manifest.
func (p *Project) points() (points []*Point, empty []string, f *fault.Fault) {
	d, err := p.existingStore()
	if err == unix.ENOENT {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, faultOf(err, storeName)
	}
	defer d.close()
	all, err := d.open("rollback")
	if err == unix.ENOENT {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, faultOf(err, storeName+"/rollback")
	}
	defer all.close()
	names, err := all.list()
	if err != nil {
		return nil, nil, faultOf(err, storeName+"/rollback")
	}
	slices.Sort(names)
	for _, id := range names {
		pt, f := p.LoadPoint(id)
		switch {
		case f == nil:
			points = append(points, pt)
		case f.Code == "FS-001" && isID(id):
			empty = append(empty, id)
		}
	}
	slices.SortStableFunc(points, func(a, b *Point) int {
		return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(b.CreatedAt, a.CreatedAt))
	})
	return points, empty, nil
}

// Verify reads all original bytes of the point: ST-002 if some are not there or not those that were
// saved, and the way back does not lead to its end.
func (pt *Point) Verify() *fault.Fault {
	d, err := pt.folder(false)
	if err != nil {
		return damaged(faultOf(err, pt.rel()).Detail)
	}
	defer d.close()
	for _, e := range pt.Entries {
		if e.Blob == "" {
			continue
		}
		if sum, err := d.hash(e.Blob); err != nil || sum != e.Pre {
			return damaged("rollback/" + pt.ID + "/" + e.Blob)
		}
	}
	return nil
}

// Recovered is a set of diffs that Recover undid; its Fault is FS-006 if not completely.
type Recovered struct {
	ID    string
	Fault *fault.Fault
}

// Recover undoes the sets of diffs that a crash interrupted, the newest first (exacta §5.6, D32),
// and drops their points unless files are in conflict. A point that is damaged stays as it is.
// Points of plans are the caller's, who has their state.
func (p *Project) Recover() ([]Recovered, *fault.Fault) {
	points, _, f := p.points()
	var out []Recovered
	for _, pt := range points {
		if pt.Sealed || pt.Kind != DiffSetPoint {
			continue
		}
		d, err := p.store()
		if err != nil {
			return out, faultOf(err, storeName)
		}
		d.close()
		undone := Recovered{pt.ID, pt.Undo(0)}
		if undone.Fault == nil {
			_ = pt.Drop()
		}
		out = append(out, undone)
	}
	return out, f
}

// Drop removes the point. Its changes, if there are any, stay.
func (pt *Point) Drop() *fault.Fault {
	pt.discard()
	return faultOf(pt.p.removePoint(pt.ID), pt.rel())
}

// removePoint removes the folder of a point, the manifest first: without it a folder is no point.
func (p *Project) removePoint(id string) error {
	d, err := p.store()
	if err != nil {
		return err
	}
	defer d.close()
	all, err := d.open("rollback")
	if err != nil {
		return err
	}
	defer all.close()
	folder, err := all.open(id)
	if err != nil {
		return err
	}
	defer folder.close()
	if err := folder.remove("manifest.json"); err != nil && err != unix.ENOENT {
		return err
	}
	if err := folder.sync(); err != nil {
		return err
	}
	names, err := folder.list()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := folder.remove(name); err != nil {
			return err
		}
	}
	return all.rmdir(id)
}

// Prune drops all but the 10 newest points (exacta §4.18). Those with a pinned id, with conflicts,
// and sets of diffs that are not undone stay. Folders without a manifest are removed. One that
// cannot be removed does not keep the others: the first fault is returned at the end.
func (p *Project) Prune(pinned ...string) *fault.Fault {
	points, empty, f := p.points()
	if f != nil {
		return f
	}
	for i, pt := range points {
		unfinished := pt.Kind == DiffSetPoint && !pt.Sealed
		if i < keptPoints || unfinished || pt.Conflicts > 0 || slices.Contains(pinned, pt.ID) {
			continue
		}
		f = cmp.Or(f, pt.Drop())
	}
	for _, id := range empty {
		if !slices.Contains(pinned, id) {
			f = cmp.Or(f, faultOf(p.removePoint(id), storeName+"/rollback"))
		}
	}
	return f
}
