package exacta

import (
	"strconv"
	"strings"

	"trunkline/engine/exacta/diff"
	"trunkline/engine/exacta/fault"
	"trunkline/engine/exacta/secret"
	"trunkline/handlers/exacta/workspace"
)

// apply does an ApplyDiffSet (exacta §4.12).
func (j *job) apply() *fault.Fault {
	changes, places, err := j.changes()
	if err != nil {
		return err
	}
	if err := j.act(); err != nil {
		return err
	}
	ws := j.p.disk.ws
	point, err := ws.NewPoint(j.w.Point.String(), workspace.DiffSetPoint, j.p.srv.cfg.Clock.Text())
	if err != nil {
		return err
	}
	err = j.commit(point, changes)
	if err != nil {
		if undo := point.Undo(0); undo != nil {
			return undo
		}
		_ = point.Drop()
		return placed(err, changes, places)
	}
	j.w.Applied, j.w.Lost = len(changes), point.Lost
	_ = ws.Prune(point.ID) // no execution runs; older points may stay
	return nil
}

func (j *job) commit(point *workspace.Point, changes []workspace.Change) *fault.Fault {
	if err := point.Add(changes...); err != nil {
		return err
	}
	if err := point.Prepare(); err != nil {
		return err
	}
	if j.stopped() {
		return fault.New("IPC-010", "")
	}
	if err := point.Commit(nil); err != nil {
		return err
	}
	return point.Seal()
}

// placed names the diff that a fault of the disk is about (exacta §4.12).
func placed(err *fault.Fault, changes []workspace.Change, places []string) *fault.Fault {
	for k := range changes {
		if strings.HasSuffix(err.Detail, ": "+changes[k].Path) {
			return fault.New(err.Code, places[k]+err.Detail, err.Values...)
		}
	}
	return err
}

// changes checks all diffs of a set against the tree (exacta §4.16), and returns where in the set
// each change stands.
func (j *job) changes() (out []workspace.Change, places []string, err *fault.Fault) {
	if _, err := j.p.disk.config(); err != nil {
		return nil, nil, err
	}
	seen := make(map[string]bool)
	for i, text := range j.w.Request.Args.Diffs {
		at := "diffs[" + strconv.Itoa(i) + "] "
		patch, bad := diff.Parse(text)
		if bad != nil {
			return nil, nil, bad.Fault(at)
		}
		if patch.Op == diff.None {
			continue
		}
		old, err := j.target(patch, at, text, seen)
		if err != nil {
			return nil, nil, err
		}
		data, bad := patch.Apply(old)
		if bad != nil {
			return nil, nil, bad.Fault(at)
		}
		out = append(out, workspace.Change{Path: patch.Path, Op: opOf(patch.Op), Data: data, Pre: sumOf(old)})
		places = append(places, at)
	}
	return out, places, nil
}

// target makes the checks of rule 6 of exacta §4.16 and returns the content of a target.
func (j *job) target(patch *diff.Patch, at, text string, seen map[string]bool) ([]byte, *fault.Fault) {
	path := patch.Path
	if j.p.disk.rules.Load().Denied(path, false) {
		return nil, fault.New("SEC-002", at+"denied: "+path, path)
	}
	old, err := j.read(path, patch.Op)
	if err != nil {
		return nil, fault.New(err.Code, at+err.Detail, err.Values...)
	}
	if secret.Find([]byte(text)) {
		return nil, fault.New("SEC-003", at+"secret: in "+path) // without "in" the path is redacted
	}
	if seen[path] {
		return nil, fault.New("VAL-003", at+"duplicate_target: "+path)
	}
	if patch.Op == diff.Create {
		if err := j.misplaced(path, at, seen); err != nil {
			return nil, err
		}
	}
	seen[path] = true
	return old, nil
}

// misplaced refuses a new file whose directory is a file, or is a target of the set, and one that
// is the directory of another target.
func (j *job) misplaced(path, at string, seen map[string]bool) *fault.Fault {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if sum, _ := j.p.disk.ws.Hash(path[:i]); sum != "" || seen[path[:i]] {
			return fault.New("FS-001", at+"not_a_directory: "+path[:i], path)
		}
	}
	for other := range seen {
		if strings.HasPrefix(other, path+"/") {
			return fault.New("SEC-002", at+"not_regular: "+path, path)
		}
	}
	return nil
}
