package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"trunkline/engine/journal"
)

// Limits of a control message.
const (
	// maxCuts bounds the cuts that are not purged yet. Each is an act of an operator.
	maxCuts = 256
	// maxSnapshots bounds the snapshots that count. A Log keeps two, and one more for a moment.
	maxSnapshots = 16
	// maxSetName bounds the name of a set.
	maxSetName = 64
)

// The parts of a control message, in bytes. The picture is in doc.go.
const (
	controlVersion = 1
	controlHeader  = 16
	cutBytes       = 16
	entryBytes     = 24
	sumBytes       = 4
)

// roster is what a control message holds.
type roster struct {
	at    uint64 // its sequence, 0 for none
	last  uint64 // the highest number of a snapshot that ever counted
	cuts  []cut  // oldest first
	snaps []entry
}

// cut hides the blocks before a sequence whose first index is from or above.
type cut struct {
	seq  uint64
	from journal.Index
}

// entry is a snapshot that counts.
type entry struct {
	number uint64
	sum    uint64 // of its chunks
	chunks uint32
	set    string
	meta   []byte
}

func (r *roster) encode() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, 512), controlVersion, 0)
	b = le.AppendUint16(b, uint16(len(r.cuts)))
	b = le.AppendUint32(b, uint32(len(r.snaps)))
	b = le.AppendUint64(b, r.last)
	for _, c := range r.cuts {
		b = le.AppendUint64(le.AppendUint64(b, c.seq), c.from)
	}
	for i := range r.snaps {
		e := &r.snaps[i]
		b = le.AppendUint64(le.AppendUint64(b, e.number), e.sum)
		b = le.AppendUint32(b, e.chunks)
		b = le.AppendUint16(le.AppendUint16(b, uint16(len(e.set))), uint16(len(e.meta)))
		b = append(append(b, e.set...), e.meta...)
	}
	return le.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

var errControl = errors.New("cannot decode control message")

// decodeRoster accepts exactly what encode makes.
func decodeRoster(b []byte) (roster, error) {
	le := binary.LittleEndian
	end := len(b) - sumBytes
	switch {
	case end < controlHeader:
		return roster{}, fmt.Errorf("%w: it is cut off", errControl)
	case le.Uint32(b[end:]) != crc32.Checksum(b[:end], crc32.MakeTable(crc32.Castagnoli)):
		return roster{}, fmt.Errorf("%w: its checksum is wrong", errControl)
	case b[0] != controlVersion:
		return roster{}, fmt.Errorf("%w: version %d, want %d", errControl, b[0], controlVersion)
	}
	cuts, snaps, rest := int(le.Uint16(b[2:])), le.Uint32(b[4:]), b[controlHeader:end]
	if b[1] != 0 || cuts > maxCuts || snaps > maxSnapshots || len(rest) < cuts*cutBytes {
		return roster{}, fmt.Errorf("%w: its parts do not fit", errControl)
	}
	r := roster{last: le.Uint64(b[8:])}
	for ; cuts > 0; cuts-- {
		r.cuts = append(r.cuts, cut{seq: le.Uint64(rest), from: le.Uint64(rest[8:])})
		rest = rest[cutBytes:]
	}
	for ; snaps > 0; snaps-- {
		e, n := decodeEntry(rest)
		if n == 0 {
			return roster{}, fmt.Errorf("%w: a snapshot in it is cut off", errControl)
		}
		r.snaps = append(r.snaps, e)
		rest = rest[n:]
	}
	if len(rest) > 0 || !r.rises() {
		return roster{}, fmt.Errorf("%w: its parts do not fit", errControl)
	}
	return r, nil
}

// decodeEntry returns the first snapshot and its length, 0 where it does not fit.
func decodeEntry(b []byte) (e entry, n int) {
	le := binary.LittleEndian
	if len(b) < entryBytes {
		return e, 0
	}
	set, meta := int(le.Uint16(b[20:])), int(le.Uint16(b[22:]))
	n = entryBytes + set + meta
	if n > len(b) || set == 0 || set > maxSetName || meta > journal.MaxMetaBytes {
		return e, 0
	}
	e = entry{number: le.Uint64(b), sum: le.Uint64(b[8:]), chunks: le.Uint32(b[16:])}
	e.set, e.meta = string(b[entryBytes:entryBytes+set]), slices.Clone(b[entryBytes+set:n])
	return e, n
}

// rises reports whether cuts and snapshots are in order.
func (r *roster) rises() bool {
	if n := len(r.snaps); n > 0 && r.snaps[n-1].number > r.last {
		return false
	}
	return slices.IsSortedFunc(r.cuts, func(a, b cut) int { return order(a.seq, b.seq) }) &&
		slices.IsSortedFunc(r.snaps, func(a, b entry) int { return order(a.number, b.number) })
}

// order is cmp.Compare for numbers of which none may be there twice.
func order(a, b uint64) int {
	if a > b {
		return 1
	}
	return -1
}

// find returns the snapshot of a number, nil for none.
func (r *roster) find(number uint64) *entry {
	i := slices.IndexFunc(r.snaps, func(e entry) bool { return e.number == number })
	if i < 0 {
		return nil
	}
	return &r.snaps[i]
}

// control takes over what the last control message holds; nil is none.
func (s *Store) control(m *Message) error {
	var r roster
	if m != nil {
		var err error
		if r, err = decodeRoster(m.Data); err != nil {
			return &journal.DamageError{Where: fmt.Sprintf("message %d of the stream", m.Seq), Err: err}
		}
		r.at = m.Seq
	}
	s.seen.Lock()
	defer s.seen.Unlock()
	s.seen.roster = r
	return nil
}

func (s *Store) cuts() []cut {
	s.seen.Lock()
	defer s.seen.Unlock()
	return s.seen.cuts
}

// snapshot returns the snapshot of a number that counts.
func (s *Store) snapshot(number uint64) (entry, bool) {
	s.seen.Lock()
	defer s.seen.Unlock()
	if e := s.seen.find(number); e != nil {
		return *e, true
	}
	return entry{}, false
}

// change appends a control message that holds what change makes of the last one. first is the index
// of the last block that is not cut then; 0 where no block is cut.
func (s *Store) change(first journal.Index, cuts bool, change func(r *roster, after uint64) error) error {
	s.aside <- struct{}{}
	defer func() { <-s.aside }()
	var next roster
	f, err := s.send(func(a *Append) error {
		s.seen.Lock()
		next = roster{last: s.seen.last, cuts: slices.Clone(s.seen.cuts), snaps: slices.Clone(s.seen.snaps)}
		s.seen.Unlock()
		if err := change(&next, a.After); err != nil {
			return err
		}
		if !cuts {
			first = s.lastFirst
		}
		a.Message = Message{Kind: KindControl, First: first, Data: next.encode()}
		return nil
	})
	if err == nil {
		err = s.settle(f)
	}
	if err != nil {
		return err
	}
	next.at = f.a.Last()
	s.seen.Lock()
	defer s.seen.Unlock()
	s.seen.roster = next
	return nil
}

// CutBlocks implements journal.Store.
func (s *Store) CutBlocks(from journal.Index) error {
	var last journal.Index
	err := s.Blocks(max(from, 1)-1, func(first journal.Index, _ []byte) error {
		if first < from {
			last = first
		}
		return errStop
	})
	if err != nil && err != errStop {
		return err
	}
	st, err := s.cfg.Stream.State(s.ctx)
	if err != nil {
		return fmt.Errorf("cannot cut journal from index %d: %w", from, err)
	}
	return s.change(last, true, func(r *roster, after uint64) error {
		r.cuts = slices.DeleteFunc(r.cuts, func(c cut) bool { return c.seq <= st.First })
		if len(r.cuts) == maxCuts {
			return fmt.Errorf("cannot cut journal from index %d: it was cut %d times since the last snapshot", from, maxCuts)
		}
		r.cuts = append(r.cuts, cut{seq: after + 1, from: from})
		return nil
	})
}
