package replicated

import (
	"errors"
	"fmt"

	"trunkline/engine/journal"
)

// Replica is what one node keeps of a stream, read there whatever the others have. Any goroutine
// may call its methods.
type Replica interface {
	// Held returns what there is: First, Last and Deleted of State. An error means that the replica
	// cannot be looked at now.
	Held() (State, error)
	// Load calls f with one message, which is lent. An error of f is returned as it is; another one
	// means that the message is not there, or not what was written.
	Load(seq uint64, f func(m *Message) error) error
}

// Place is a block of a replica.
type Place struct {
	// Seq is the sequence of its first message.
	Seq uint64
	// Index is that of its last record.
	Index journal.Index
	// Hash stands for the log up to its end: replicas that hold the same have the same.
	Hash uint64
}

// Audit verifies the replica of one node. It is for one goroutine.
type Audit struct {
	s         *Store
	replica   Replica
	partition uint32
	mode      journal.Mode

	next  uint64 // the next sequence, 0 to begin again
	cuts  []cut
	chain *journal.Chain
	whole joiner
}

// NewAudit returns an Audit of a replica of the stream of s.
func (s *Store) NewAudit(r Replica, partition uint32, mode journal.Mode) *Audit {
	return &Audit{s: s, replica: r, partition: partition, mode: mode}
}

// messageCost is what a message counts beside its data in a Round, in bytes.
const messageCost = 100

// Round verifies the next messages, at least some bytes of them unless the replica ends before. It
// returns true at its end; the Round after that begins at the first message again. A replica that
// lacks messages, or has others than were written, is a *journal.DamageError. Any other error means
// that it could not be read now.
func (a *Audit) Round(bytes int) (whole bool, err error) {
	held, err := a.held()
	if err != nil {
		return false, err
	}
	if cuts := a.s.cuts(); a.next < held.First || len(cuts) != len(a.cuts) {
		a.next, a.cuts, a.chain, a.whole = held.First, cuts, nil, joiner{}
	}
	for ; a.next <= held.Last && bytes > 0; a.next++ {
		err := a.replica.Load(a.next, func(m *Message) error {
			bytes -= len(m.Data) + messageCost
			return a.take(m)
		})
		if err != nil {
			return false, a.failed(err)
		}
	}
	if a.next <= held.Last {
		return false, nil
	}
	a.next = 0
	return true, nil
}

// held is Held of a replica without holes.
func (a *Audit) held() (State, error) {
	held, err := a.replica.Held()
	if err == nil && held.Deleted > 0 {
		err = &journal.DamageError{Where: "copy of the stream on this node", Err: fmt.Errorf("%d messages are missing", held.Deleted)}
	}
	return held, err
}

func (a *Audit) take(m *Message) error {
	if !carries(m) || hidden(a.cuts, m) {
		return nil
	}
	block, err := a.whole.next(m)
	if block == nil || err != nil {
		return err
	}
	if a.chain == nil {
		a.chain = journal.NewChain(a.partition, a.mode, m.First)
	}
	_, err = a.chain.Next(m.First, block)
	return err
}

// failed returns what an error of the next message means: nothing where that was purged or is being
// copied from another node.
func (a *Audit) failed(err error) error {
	seq := a.next
	a.next = 0
	switch held, now := a.replica.Held(); {
	case now != nil:
		return now
	case held.First > seq || held.Last < seq:
		return nil
	case errors.As(err, new(*journal.DamageError)):
		return err
	case a.replica.Load(seq, func(*Message) error { return nil }) == nil:
		return nil
	}
	return &journal.DamageError{Where: fmt.Sprintf("message %d in the copy of the stream on this node", seq), Err: err}
}

// tipWithin is how many messages at the end of a replica Tip looks at: what is not a block is rare
// there, and a block may have that many parts.
const tipWithin = 2 * maxParts

// Tip returns the last block of the replica, the zero Place where no block is near its end.
func (a *Audit) Tip() (Place, error) {
	held, err := a.held()
	if err != nil {
		return Place{}, err
	}
	cuts := a.s.cuts()
	for seq := held.Last; seq >= held.First && held.Last-seq < tipWithin; seq-- {
		is := false
		err = a.replica.Load(seq, func(m *Message) error {
			is = m.Kind == KindBlock && !hidden(cuts, m) && seq+uint64(m.Parts) <= held.Last
			return nil
		})
		if err != nil {
			return Place{}, fmt.Errorf("cannot read message %d: %w", seq, err) // a Round finds out why
		}
		if is {
			return a.At(seq)
		}
	}
	return Place{}, nil
}

// Has reports whether the replica reaches from a sequence or below it to that sequence.
func (a *Audit) Has(seq uint64) bool {
	held, err := a.replica.Held()
	return err == nil && held.First <= seq && seq <= held.Last
}

// At returns the block at a sequence.
func (a *Audit) At(seq uint64) (Place, error) {
	p := Place{Seq: seq}
	var whole joiner
	for p.Index == 0 {
		err := a.replica.Load(seq, func(m *Message) error {
			block, err := whole.next(m)
			if block == nil || err != nil {
				return err
			}
			v, err := journal.NewChain(a.partition, a.mode, m.First).Next(m.First, block)
			if err == nil {
				p.Index, p.Hash = v.Last, v.Hash
			}
			return err
		})
		if err != nil {
			return Place{}, fmt.Errorf("cannot read message %d: %w", seq, err)
		}
		seq++
	}
	return p, nil
}
