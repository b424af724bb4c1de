package workspace

import (
	"cmp"
	"slices"

	"trunkline/engine/exacta/fault"
)

// maxCached is how many answers of planners a project keeps (exacta §4.20).
const maxCached = 256

// cachePath is where the answers are.
func cachePath() []string { return []string{"cache", "planner"} }

// LoadAnswer returns the cached answer of a planner (exacta §4.20); ok is false if there is none.
// key is a SHA-256.
func (p *Project) LoadAnswer(key string) (answer []byte, ok bool) {
	b, err := p.loadIn(cachePath(), key)
	return b, err == nil
}

// SaveAnswer caches the answer of a planner and removes the oldest ones beyond 256.
func (p *Project) SaveAnswer(key string, answer []byte) *fault.Fault {
	if f := p.saveIn(cachePath(), key, answer); f != nil {
		return f
	}
	d, err := p.existingStore()
	for _, c := range cachePath() {
		if err != nil {
			return faultOf(err, storeName)
		}
		var next dir
		next, err = d.open(c)
		d.close()
		d = next
	}
	if err != nil {
		return faultOf(err, storeName)
	}
	defer d.close()
	names, err := d.list()
	if err != nil || len(names) <= maxCached {
		return faultOf(err, storeName)
	}
	type answerFile struct {
		name string
		sec  int64
		nsec int64
	}
	files := make([]answerFile, 0, len(names))
	for _, name := range names {
		if st, err := d.lstat(name); err == nil && name != key+".json" {
			files = append(files, answerFile{name, int64(st.Mtim.Sec), int64(st.Mtim.Nsec)})
		}
	}
	slices.SortFunc(files, func(a, b answerFile) int {
		return cmp.Or(cmp.Compare(a.sec, b.sec), cmp.Compare(a.nsec, b.nsec), cmp.Compare(a.name, b.name))
	})
	for _, f := range files[:max(0, len(files)+1-maxCached)] {
		if err := d.remove(f.name); err != nil {
			return faultOf(err, storeName)
		}
	}
	return nil
}
