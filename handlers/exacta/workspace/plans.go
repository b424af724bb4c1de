package workspace

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"trunkline/engine/projects/errcode"
)

// keptPlans is how many files of plans PrunePlans keeps: those of rejected, expired and executed
// ones are only read by people.
const keptPlans = 32

// PrunePlans drops all but the newest files of plans. Those with a pinned id stay. What a crash
// left of a file that was being written is removed. It must not run while a plan is saved.
func (p *Project) PrunePlans(pinned ...string) *errcode.Fault {
	return p.prune(keptPlans, pinned, "plan")
}

// prune drops all but the newest files <id>.json of a directory of the storage.
func (p *Project) prune(keep int, pinned []string, path ...string) *errcode.Fault {
	rel := storeName + "/" + strings.Join(path, "/")
	d, err := p.folder(path...)
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return faultOf(err, rel)
	}
	defer d.close()
	names, err := d.list()
	if err != nil {
		return faultOf(err, rel)
	}
	type file struct {
		name string
		at   int64
	}
	var drop []string
	var files []file
	for _, name := range names {
		id, isFile := strings.CutSuffix(name, ".json")
		left, isTemp := strings.CutSuffix(name, ".json.tmp")
		st, err := d.lstat(name)
		switch {
		case err != nil || regularMode(st) != nil:
		case isTemp && isID(left):
			drop = append(drop, name)
		case isFile && isID(id) && !slices.Contains(pinned, id):
			files = append(files, file{name, st.Mtim.Nano()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(b.at, a.at), strings.Compare(a.name, b.name)) })
	for _, f := range files[min(len(files), max(keep-len(pinned), 0)):] {
		drop = append(drop, f.name)
	}
	for _, name := range drop {
		if err := d.remove(name); err != nil && err != unix.ENOENT {
			return faultOf(err, rel)
		}
	}
	return nil
}

// maxCached is how many answers of planners a project keeps (exacta §4.20).
const maxCached = 256

// LoadAnswer returns the answer of a planner that the cache has under key, a SHA-256 (exacta
// §4.20); ok is false if there is none that can be read. The file lies in the project: what it
// holds is not to be trusted.
func (p *Project) LoadAnswer(key string) (answer []byte, ok bool) {
	b, err := p.loadIn([]string{"cache", "planner"}, key)
	return b, err == nil
}

// SaveAnswer puts an answer into the cache, and removes the oldest ones beyond 256. It must not run
// while another one is saved.
func (p *Project) SaveAnswer(key string, answer []byte) *errcode.Fault {
	if f := p.saveIn([]string{"cache", "planner"}, key, answer); f != nil {
		return f
	}
	return p.prune(maxCached, []string{key}, "cache", "planner")
}
