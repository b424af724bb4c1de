package replicated

import (
	"errors"
	"fmt"

	"trunkline/engine/journal"
)

// split cuts a block into parts of at most some bytes; 0: one part.
func split(block []byte, most int) (parts [][]byte) {
	if most <= 0 {
		return [][]byte{block}
	}
	for len(block) > most {
		parts = append(parts, block[:most:most])
		block = block[most:]
	}
	return append(parts, block)
}

// joiner puts blocks together again. Messages come in order, from one that is no part on.
type joiner struct {
	first journal.Index
	left  int // parts that are missing
	buf   []byte
}

// next takes a block or a part. It returns a block when it is whole, nil before; the block is lent
// until the next call, and as long as the message is.
func (j *joiner) next(m *Message) (block []byte, err error) {
	switch {
	case m.Kind == KindBlock && j.left == 0:
		if j.first, j.left = m.First, m.Parts; j.left == 0 {
			return m.Data, nil
		}
		j.buf = append(j.buf[:0], m.Data...)
		return nil, j.check(m)
	case m.Kind == KindPart && j.left > 0 && m.First == j.first:
		j.buf = append(j.buf, m.Data...)
		if j.left--; j.left > 0 {
			return nil, j.check(m)
		}
		return j.buf, j.check(m)
	}
	return nil, j.damage(m, errors.New("a block and the parts of another one are mixed"))
}

func (j *joiner) check(m *Message) error {
	if j.left < maxParts && len(j.buf) <= journal.MaxStoredBlock {
		return nil
	}
	return j.damage(m, fmt.Errorf("a block of %d bytes, and %d parts to come", len(j.buf), j.left))
}

func (j *joiner) damage(m *Message, err error) error {
	return &journal.DamageError{Where: fmt.Sprintf("message %d of the stream", m.Seq), Index: m.First, Err: err}
}
