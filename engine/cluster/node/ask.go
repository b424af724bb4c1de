package node

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Bounds of questions.
const (
	// maxQuestion bounds a question, in bytes.
	maxQuestion = 4 << 10
	// maxAnswering is how many questions a node answers at a time. One more gets no answer.
	maxAnswering = 16
)

// askPrefix begins the subjects of questions: one of each node and one of all, behind the name of
// the cluster.
func askPrefix(cluster string) string { return cluster + "_ASK." }

// everyNode is the last word of the subject of all nodes. An id is shown in hexadecimal digits.
const everyNode = "all"

// Answer has answer called with each question that a node of the cluster asks this one, or all, on
// a goroutine of its own, until Close.
func (n *Node) Answer(cluster, id string, answer func(question []byte) []byte) error {
	slots := make(chan struct{}, maxAnswering)
	take := func(m *nats.Msg) {
		if len(m.Data) > maxQuestion || m.Reply == "" {
			return
		}
		select {
		case slots <- struct{}{}:
		default:
			return
		}
		go func() {
			defer func() { <-slots }()
			_ = m.Respond(answer(m.Data)) // who asks waits no longer than it wants to
		}()
	}
	for _, word := range []string{everyNode, hex.EncodeToString([]byte(id))} {
		if _, err := n.conn.Subscribe(askPrefix(cluster)+word, take); err != nil {
			return fmt.Errorf("cannot listen to questions of other nodes: %w", err)
		}
	}
	return nil
}

// ErrNoNode means that no node with that id answers.
var ErrNoNode = errors.New("no node with this id answers")

// Ask asks a node, and returns its answer.
func (n *Node) Ask(ctx context.Context, cluster, id string, question []byte) ([]byte, error) {
	m, err := n.conn.RequestWithContext(ctx, askPrefix(cluster)+hex.EncodeToString([]byte(id)), question)
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, ErrNoNode
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask node %q: %w", id, err)
	}
	return m.Data, nil
}

// AskAll asks all nodes, this one too, and returns the answers. It waits until expect have
// answered, 0 for an unknown number, or none has for a second.
func (n *Node) AskAll(ctx context.Context, cluster string, question []byte, expect int) ([][]byte, error) {
	answers, err := gather(ctx, n.conn, askPrefix(cluster)+everyNode, question, expect)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the other nodes: %w", err)
	}
	return answers, nil
}
