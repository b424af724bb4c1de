package workspace

import (
	"cmp"
	"slices"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// keptPoints is how many rollback points Prune keeps (exacta §4.18).
const keptPoints = 10

// LoadPoint reads a rollback point: FS-001 if there is none, ST-002 if it is damaged.
func (p *Project) LoadPoint(id string) (*Point, *errcode.Fault) {
	if !isID(id) {
		return nil, errcode.New("FS-001", "missing: rollback point", "rollback point")
	}
	pt := &Point{ID: id, p: p}
	d, err := pt.folder(false)
	if err != nil {
		return nil, faultOf(err, pt.rel())
	}
	defer d.close()
	text, _, err := d.read("manifest.json", maxRecord)
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
	pt.Proven = p.proves("rollback/"+id, text)
	return pt, nil
}

// Points returns all readable rollback points, the newest first.
func (p *Project) Points() ([]*Point, *errcode.Fault) {
	found, f := p.points()
	return found.points, f
}

// found is what lies in the folder of rollback points.
type found struct {
	points []*Point         // the readable ones, the newest first
	empty  []string         // folders of points that were not made, or dropped, to the end
	bad    []*errcode.Fault // ST-002 of everything else
}

// points reads the folder of rollback points.
func (p *Project) points() (out found, f *errcode.Fault) {
	all, err := p.folder("rollback")
	if err == unix.ENOENT {
		return out, nil
	}
	if err != nil {
		return out, faultOf(err, storeName+"/rollback")
	}
	defer all.close()
	names, err := all.list()
	if err != nil {
		return out, faultOf(err, storeName+"/rollback")
	}
	slices.Sort(names)
	for _, id := range names {
		pt, f := p.LoadPoint(id)
		switch {
		case f == nil:
			out.points = append(out.points, pt)
		case f.Code == "FS-001" && isID(id) && all.isLeft(id):
			out.empty = append(out.empty, id)
		case f.Code == "ST-002":
			out.bad = append(out.bad, f)
		default:
			out.bad = append(out.bad, damaged("rollback/"+printable(id)+": "+f.Detail))
		}
	}
	slices.SortStableFunc(out.points, func(a, b *Point) int {
		return cmp.Or(cmp.Compare(b.seq, a.seq), cmp.Compare(b.CreatedAt, a.CreatedAt))
	})
	return out, nil
}

// isLeft reports whether the folder of a point is what a crash leaves of one that was being made or
// dropped: it is empty, or has a manifest that does not count.
func (d dir) isLeft(id string) bool {
	folder, err := d.open(id)
	if err != nil {
		return false
	}
	defer folder.close()
	names, err := folder.list()
	return err == nil && (len(names) == 0 || slices.Contains(names, goneManifest))
}

// goneManifest is the name of a manifest that is being written, or whose point is being dropped.
const goneManifest = "manifest.json.tmp"

// Verify reads all original bytes of the point: ST-002 if some are not there or not those that were
// saved, and the way back does not lead to its end.
func (pt *Point) Verify() *errcode.Fault {
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

// Recovered is a rollback point that an open has to speak of. Its Fault is nil where it was undone,
// FS-006 where that was not possible for all files, and ST-002 where it stays as it is.
type Recovered struct {
	ID    string // "" where it is not known
	Kind  string // of a point that can be read
	Fault *errcode.Fault
	// Foreign is set for a point that is not proven to be of this installation and root. Nothing is
	// taken back by it.
	Foreign bool
}

// Recover undoes the sets of diffs that a crash interrupted, the newest first (exacta §5.6, D32),
// and drops their points unless files are in conflict. What cannot be read stays as it is, and so
// do points that are not proven and, of plans, those that are not complete: they are the caller's,
// who has their state.
func (p *Project) Recover() ([]Recovered, *errcode.Fault) {
	found, f := p.points()
	var out []Recovered
	for _, bad := range found.bad {
		out = append(out, Recovered{Fault: bad})
	}
	for _, pt := range found.points {
		r := Recovered{ID: pt.ID, Kind: pt.Kind, Foreign: !pt.Proven}
		switch {
		case pt.Sealed || len(pt.Entries) == 0 && (pt.Kind == PlanPoint || r.Foreign):
			if r.Foreign {
				out = append(out, r)
			}
			continue
		case pt.Kind == PlanPoint:
			r.Fault = damaged("rollback/" + pt.ID + ": no state names this execution, which is not complete")
		case r.Foreign:
			r.Fault = damaged("rollback/" + pt.ID + ": a set of diffs that is not complete, and not of this installation")
		}
		if r.Fault != nil {
			out = append(out, r)
			continue
		}
		d, err := p.store()
		if err != nil {
			return out, faultOf(err, storeName)
		}
		d.close()
		if r.Fault = pt.Undo(0); r.Fault == nil {
			_ = pt.Drop()
		}
		out = append(out, r)
	}
	return out, f
}

// Drop removes the point. Its changes, if there are any, stay.
func (pt *Point) Drop() *errcode.Fault {
	pt.discard()
	return faultOf(pt.p.removePoint(pt.ID), pt.rel())
}

// removePoint removes the folder of a point. The name of its manifest goes first, and with it the
// point, the manifest itself last: until then it marks a folder that is no point any more.
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
	if err := folder.rename("manifest.json", goneManifest); err != nil && err != unix.ENOENT {
		return err
	}
	if err := folder.sync(); err != nil {
		return err
	}
	names, err := folder.list()
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == goneManifest })
	for _, name := range append(names, goneManifest) {
		if err := folder.remove(name); err != nil && err != unix.ENOENT {
			return err
		}
	}
	return all.rmdir(id)
}

// Prune drops all but the 10 newest points (exacta §4.18). Those with a pinned id, with conflicts,
// and sets of diffs that are not undone stay. Folders without a manifest are removed. One that
// cannot be removed does not keep the others: the first fault is returned at the end.
func (p *Project) Prune(pinned ...string) *errcode.Fault {
	found, f := p.points()
	if f != nil {
		return f
	}
	for i, pt := range found.points {
		unfinished := pt.Kind == DiffSetPoint && !pt.Sealed
		if i < keptPoints || unfinished || pt.Conflicts > 0 || slices.Contains(pinned, pt.ID) {
			continue
		}
		f = cmp.Or(f, pt.Drop())
	}
	for _, id := range found.empty {
		if !slices.Contains(pinned, id) {
			f = cmp.Or(f, faultOf(p.removePoint(id), storeName+"/rollback"))
		}
	}
	return f
}
