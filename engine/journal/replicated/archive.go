package replicated

import "strings"

// Archive is sets of chunks beside the snapshots, and as safe. Records of the log name those that
// count.
type Archive struct{ s *Store }

// archivePrefix begins the names of its sets; those of snapshots begin with a number.
const archivePrefix = "archive-"

// Archive returns the one of the log. The names of its sets have up to 56 letters and digits.
func (s *Store) Archive() Archive { return Archive{s} }

// Put adds chunk n of a set, counted from 0, and is durable when it returns. A number is put once,
// whatever comes of it.
func (a Archive) Put(set string, n uint32, chunk []byte) error {
	if err := a.s.err(); err != nil {
		return err
	}
	return a.s.cfg.Chunks.Put(a.s.ctx, archivePrefix+set, n, chunk)
}

// Get calls f with the first n chunks of a set in order; chunk is lent until f returns. Fewer are
// an error. It stops at the first error of f and returns it as it is.
func (a Archive) Get(set string, n uint32, f func(chunk []byte) error) error {
	return a.s.cfg.Chunks.Get(a.s.ctx, archivePrefix+set, n, f)
}

// Sweep drops the sets that are not used, of this owner and of those before it: used knows all that
// they have recorded. Before the first append it does nothing.
func (a Archive) Sweep(used func(set string) bool) {
	a.s.dropSets(func(set string) bool {
		name, mine := strings.CutPrefix(set, archivePrefix)
		return mine && !used(name)
	})
}
