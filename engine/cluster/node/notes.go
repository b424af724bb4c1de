package node

import (
	"fmt"

	"github.com/nats-io/nats.go"
)

const (
	// maxNote is the longest note, in bytes.
	maxNote = 4 << 10
	// notesWaiting is how many notes wait for their reader; further ones are lost.
	notesWaiting = 256
)

// Send sends a note to all nodes that hear a subject, this one too. It may be lost. One that is
// longer than maxNote is an error.
func (n *Node) Send(subject string, note []byte) error {
	if len(note) > maxNote {
		return fmt.Errorf("cannot send a note of %d bytes, at most %d", len(note), maxNote)
	}
	return n.conn.Publish(subject, note)
}

// Hear calls f with each note of a subject that comes, one after the other, until Close. A note is
// lent until f returns; those of more than maxNote are left out.
func (n *Node) Hear(subject string, f func(note []byte)) error {
	sub, err := n.conn.Subscribe(subject, func(m *nats.Msg) {
		if len(m.Data) <= maxNote {
			f(m.Data)
		}
	})
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(notesWaiting, notesWaiting*maxNote)
}
