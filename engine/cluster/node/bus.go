package node

import "github.com/nats-io/nats.go"

// Publish sends a message to all nodes that hear its subject now, this one too.
func (n *Node) Publish(subject string, b []byte) error { return n.conn.Publish(subject, b) }

// Hear calls f with every message of a subject, one at a time, until Close. b is lent.
func (n *Node) Hear(subject string, f func(b []byte)) error {
	_, err := n.conn.Subscribe(subject, func(m *nats.Msg) { f(m.Data) })
	return err
}
