package threads

import (
	"cmp"
	"slices"
)

// listBatch is how many threads List takes per hold of the lock of the table.
const listBatch = 256

// Listed is a thread as operators see it, of any workspace.
type Listed struct {
	View
	// Number is its place in the order of creation, from 1 on, Latest the number of its last
	// message.
	Number, Latest uint64
}

// List calls visit for the threads that were made before the one of a number, 0 for all, newest
// first, until visit returns false. No lock is held: visit may be slow.
func (e *Engine) List(before uint64, visit func(*Listed) bool) {
	for {
		batch := e.numbers.before(before)
		for _, t := range batch {
			if l := t.listed(); !visit(&l) {
				return
			}
		}
		if len(batch) < listBatch {
			return
		}
		before = batch[len(batch)-1].made.Number
	}
}

// Show returns a thread of any workspace. ok is false if there is none.
func (e *Engine) Show(id []byte) (l Listed, ok bool) {
	t := e.find(id)
	if t == nil {
		return l, false
	}
	return t.listed(), true
}

func (t *thread) listed() Listed {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Listed{t.view(), t.made.Number, t.latest}
}

// before returns the threads before a number, 0 for the end, latest first, at most listBatch.
func (n *numbers) before(number uint64) []*thread {
	n.Lock()
	defer n.Unlock()
	end := len(n.list)
	if number > 0 {
		end, _ = slices.BinarySearchFunc(n.list, number, func(t *thread, number uint64) int { return cmp.Compare(t.made.Number, number) })
	}
	batch := slices.Clone(n.list[max(0, end-listBatch):end])
	slices.Reverse(batch)
	return batch
}

// sort puts the list into the order of numbers, which a snapshot does not have.
func (n *numbers) sort() {
	n.Lock()
	defer n.Unlock()
	slices.SortFunc(n.list, func(a, b *thread) int { return cmp.Compare(a.made.Number, b.made.Number) })
}
